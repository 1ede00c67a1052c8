"""How does Spark write local files? Without starting a process for each: they are private by the umask already.

Hadoop sets the mode of every file and folder that it makes. Without its native library, which pip's pyspark lacks, it
starts `chmod` for that, for every file of a checkpoint. All of these ask for what the umask of the process has given
already (`storage/private.py`). So local paths get a file system whose `setPermission` passes over that case. Where
that cannot be compiled (`compiled.py`), files are written as before.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from weft.spark.session.compiled import compiled

CLASS = "weft.PrivateFiles"
LOCAL = "file:///"


def write_without_chmod(session: SparkSession) -> bool:
    """Let Hadoop of this process write local files so; False where it goes on as it did."""
    try:
        _put_in_place(session.sparkContext)
    except Py4JError as error:
        logging.getLogger(__name__).warning("every local file starts a process: %s", error)
        return False
    return True


def _put_in_place(context: Any) -> None:
    jvm, gateway = context._jvm, context._gateway
    files = compiled(context, CLASS.rpartition(".")[2])
    where, conf = jvm.java.net.URI.create(LOCAL), context._jsc.hadoopConfiguration()
    files.initialize(where, conf)
    # Hadoop keeps one file system for each scheme and user. To hand it another is open only to its own package.
    names = ("java.net.URI", "org.apache.hadoop.conf.Configuration", "org.apache.hadoop.fs.FileSystem")
    kinds, words = gateway.new_array(jvm.java.lang.Class, 3), gateway.new_array(jvm.java.lang.Object, 3)
    for at, (name, word) in enumerate(zip(names, (where, conf, files), strict=True)):
        kinds[at], words[at] = jvm.java.lang.Class.forName(name), word
    put = jvm.java.lang.Class.forName(names[-1]).getDeclaredMethod("addFileSystemForTesting", kinds)
    put.setAccessible(True)
    put.invoke(None, words)
