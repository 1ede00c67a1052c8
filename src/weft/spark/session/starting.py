"""One Spark for all embedded sites, of our own or beside a program's: a fair pool per site, small shuffles, quiet."""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from weft.model.running import MASTER
from weft.spark.session import reader_processes
from weft.spark.session.class_archive import MAKES_S_MAX, ClassArchive
from weft.spark.session.code import packed_code
from weft.spark.session.lent import active, beside
from weft.spark.session.private_files import write_without_chmod
from weft.spark.session.settings import BULK, LOG4J, SLOW, on_a_cluster, settings, with_conf
from weft.spark.storage import temporary
from weft.spark.storage.private import private_files

WORKERS = Path(__file__).parent / "workers"
JAVA_ENDS_S_MAX = 10.0
_classes = ClassArchive()


def start_session(
    logs: Path,
    modules: Sequence[str] = (),
    master: str = MASTER,
    conf: Mapping[str, str] | None = None,
    record: Path | None = None,
    slow: bool = False,
) -> SparkSession:
    """A session for all sites of this process; Spark's own messages go to a file in `logs`.

    Where the program has a Spark already it is one beside the program's own, which keeps all its settings. `record` is
    a file that tells a later run which temporary folder to remove, should this one be killed. Where records come
    slowly (`slow`), Java compiles in a hurry.
    """
    logs = logs.resolve()
    paths = [os.path.abspath(module) for module in modules]
    running = SparkContext._active_spark_context
    java = SLOW if slow else BULK
    session = _own(logs, paths, master, conf or {}, record, java) if running is None else beside(running, conf or {})
    # What is on the path of a Java process that lives already stays as it was: functions bring theirs along.
    known = session.sparkContext.environment.get("PYTHONPATH", "")
    session.sparkContext.environment["PYTHONPATH"] = _joined([str(WORKERS), *paths], known)
    from weft.spark.channels.reader import ChannelSource
    from weft.spark.sources.rate import RateSource

    _register(session, ChannelSource, RateSource)
    return session


def _own(
    logs: Path, modules: Sequence[str], master: str, conf: Mapping[str, str], record: Path | None, java: str
) -> SparkSession:
    """A Spark of our own: private, in one temporary folder, with Python processes that start quickly."""
    private_files()
    atexit.unregister(end_java)
    atexit.register(end_java)
    folder = temporary.claim(record)
    logs.mkdir(parents=True, exist_ok=True)
    log4j = logs / "log4j2.properties"
    log4j.write_text(LOG4J.format(path=logs / "spark.log"))
    # Workers would otherwise take the first python on the PATH, which may lack the packages.
    cluster = on_a_cluster(master)
    os.environ["PYSPARK_PYTHON"] = sys.executable if cluster else reader_processes.interpreter()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Functions of the user's modules run in workers too; WORKERS makes each of those processes start sooner.
    os.environ["PYTHONPATH"] = _joined([str(WORKERS), *modules], os.environ.get("PYTHONPATH", ""))
    builder = SparkSession.builder.appName("weft").master(master)
    told = settings(log4j, folder, f"{_classes.options(folder)} {java}".strip(), cluster)
    for key, value in with_conf(told, conf).items():
        builder = builder.config(key, value)
    with _environment(TMPDIR=str(folder), **_locale()), _temporary_in(folder):
        session = builder.getOrCreate()
    write_without_chmod(session)
    if cluster:
        session.sparkContext.addPyFile(str(packed_code(folder, modules)))
    process = getattr(session.sparkContext._gateway, "proc", None)
    if process is not None:
        (folder / temporary.JAVA).write_text(str(process.pid))
    return session


def end_java() -> None:
    """At the end of the process: let the Java process go and remove what lies in temporary space."""
    if SparkContext._active_spark_context is not None or not temporary.is_claimed():
        return  # a Spark that still runs has its folder removed by the reader forker
    # Whoever is still in a conversation with Java would tell at length that it has ended.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.stdin is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            process.stdin.close()
            process.wait(MAKES_S_MAX if _classes.is_made() else JAVA_ENDS_S_MAX)
    _classes.keep()
    temporary.release()


@contextmanager
def _temporary_in(folder: Path) -> Iterator[None]:
    """While Java starts, temporary files of this process lie in a folder."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Values that processes which start meanwhile find in their environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _locale() -> dict[str, str]:
    """What Java is told of names of files, where it would not find those with other letters than English ones.

    Python takes them for UTF-8 with LC_ALL=C, too; Java would pass over such files without a word.
    """
    asked = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "C"
    plain = asked.partition(".")[0] in ("C", "POSIX") and not asked.lower().replace("-", "").endswith("utf8")
    return {"LC_ALL": "C.UTF-8"} if plain and sys.getfilesystemencoding() == "utf-8" else {}


def _joined(first: Sequence[str], rest: str) -> str:
    return os.pathsep.join(dict.fromkeys([*first, *(path for path in rest.split(os.pathsep) if path)]))


# What Spark itself puts into the environment of a data source's processes.
PUT_BY_SPARK = {
    "SPARK_LOCAL_DIRS": "",
    "SPARK_AUTH_SOCKET_TIMEOUT": "15",
    "SPARK_BUFFER_SIZE": "65536",
    "SPARK_REUSE_WORKER": "1",
    "SPARK_SIMPLIFIED_TRACEBACK": "1",
    "PYSPARK_SPARK_SESSION_UUID": "",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}


def _register(session: SparkSession, *kinds: type[DataSource]) -> None:
    """Let Spark know our sources, with every key it will set in their environment already there.

    All readers of a source share one map in Java, which is not made for threads, and Spark puts its keys into it
    whenever a reader starts: two first starts at once would leave it broken, and every task after them would fail.
    Keys that are there only change their values.
    """
    with active(session):
        session.sparkContext.environment.update(PUT_BY_SPARK)
        for kind in kinds:
            session.dataSource.register(kind)
