"""How is Spark set? What differs from its defaults, and why; what a user sets wins."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Java for records that come slowly. A collector without threads of its own, as there is little to collect. Most of such
# a run is the compiler: its first level is enough. With that level Java would reserve 48 MB for code, which long runs
# fill: then it compiles no more.
SLOW = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
# Java for bulk: fragments side by side wait for a collector with one thread, a twelfth of the throughput on two cores.
# It would take whatever room it is given; the young records of batches need little. With less than this it collects so
# often that throughput suffers (160 MB: a tenth).
BULK = "-XX:+UseParallelGC -Xms256m -XX:NewSize=160m -XX:MaxNewSize=240m"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")
EXCLUDED = "spark.sql.optimizer.excludedRules"
SOCKET_CHARS = 1 + len(".00000000-0000-0000-0000-000000000000.sock")
SOCKET_CHARS_MAX = 103  # the least that any system takes
LOG4J = """status = error
name = weft
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex{{8}}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 4MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
logger.noise.name = org.apache.spark.sql.execution.streaming
logger.noise.level = error
"""


def with_conf(ours: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """Settings of which the user's win; what Java is told, and rules that are left out, are what both say."""
    both = {**ours, **conf}
    if EXCLUDED in ours and EXCLUDED in conf:
        both[EXCLUDED] = f"{ours[EXCLUDED]},{conf[EXCLUDED]}"
    if JAVA_OPTIONS in ours and JAVA_OPTIONS in conf:
        mine = ours[JAVA_OPTIONS]
        if _COLLECTOR.search(conf[JAVA_OPTIONS]):
            mine = _COLLECTOR.sub("", mine.replace(BULK, ""))
        both[JAVA_OPTIONS] = f"{mine} {conf[JAVA_OPTIONS]}"
    return both


def on_a_cluster(master: str) -> bool:
    """True if tasks run in processes that Spark's master starts, maybe on other machines."""
    return not master.startswith("local")


def settings(log4j: Path | None, folder: Path | None, java: str = "", cluster: bool = False) -> dict[str, str]:
    """What differs from Spark's defaults, and why; `folder` is where temporary files go, `java` more for Java."""
    own = (
        {}
        if log4j is None or folder is None
        else {
            # Java keeps a file of figures in the temporary folder itself, unless it is told not to.
            JAVA_OPTIONS: f'-Dlog4j2.configurationFile={log4j.as_uri()} "-Djava.io.tmpdir={folder}" '
            f"-XX:+PerfDisableSharedMem -Xss4m {java}".rstrip(),
            "spark.local.dir": str(folder),
            "spark.python.unix.domain.socket.dir": str(folder),
            # Over TCP the small messages to a worker wait for each other's receipts: 40 ms a batch of a channel.
            "spark.python.unix.domain.socket.enabled": str(os.name == "posix" and _fits(folder)).lower(),
        }
    )
    if cluster:
        # Folders of this process mean nothing to tasks elsewhere: each machine has its own.
        for key in ("spark.local.dir", "spark.python.unix.domain.socket.dir"):
            own.pop(key, None)
        own["spark.python.unix.domain.socket.enabled"] = "false"
        own["spark.executor.extraJavaOptions"] = f"{BULK} -Xss4m"
    return own | {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": os.environ.get("WEFT_DRIVER_MEMORY", "2g"),
        # What small batches give is fetched; one that turns out to be large is Spark's to write.
        "spark.driver.maxResultSize": "256m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        # Two cores share a handful of small batches: the default of 200 would be all overhead.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        # A record that a filter drops while parsing would be missing from the counts, and a bad one from the policy.
        "spark.sql.csv.filterPushdown.enabled": "false",
        "spark.sql.json.filterPushdown.enabled": "false",
        # Footers of channel files tell row counts and greatest event times for free, but only with this type.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Hadoop's usual way to a local file starts a process (chmod, stat) for every file it makes, and as many again
        # for a checksum file beside it: most of the time that a small batch spends on its checkpoint.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINTS,
        # What Hadoop makes with a mode of its own is for its user alone, as all the rest is.
        "spark.hadoop.fs.permissions.umask-mode": "077",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        # Lets a stateful query restart from its checkpoint with other inputs and stateless operators.
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
        "spark.sql.streaming.offsetLog.formatVersion": "2",
        # It moves a semi join below the mark on a column that says that it is the event time: then nothing that comes
        # late from the left is left out, and no state ever ends.
        EXCLUDED: "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
        "spark.sql.streaming.pollingDelay": "25ms",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.numRecentProgressUpdates": "32",
        # Finished jobs are of no use here, and keeping them grows the heap.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "500",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Otherwise what is sent to Python is weighed after every record, a seventh of such a batch's time. Records
        # are still counted: ten thousand at once, so that only records of 200 kB each could be too much.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    }


def _fits(folder: Path) -> bool:
    """Whether a socket in a folder has a name that the kernel takes; Spark calls it by a number of its own."""
    return len(str(folder)) + SOCKET_CHARS <= SOCKET_CHARS_MAX
