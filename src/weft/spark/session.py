"""One local Spark for all embedded sites: small shuffles, a fair pool per site, quiet."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from weft.spark import nursery

WORKERS = Path(__file__).parent / "workers"
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
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


def start_session(logs: Path, modules: Sequence[str] = (), cores: int = 2) -> SparkSession:
    """The session that all sites of this process share; Spark's own messages go to a file in `logs`."""
    logs.mkdir(parents=True, exist_ok=True)
    log4j = logs / "log4j2.properties"
    log4j.write_text(LOG4J.format(path=logs / "spark.log"))
    # Workers would otherwise take the first python on the PATH, which may lack the packages.
    os.environ["PYSPARK_PYTHON"] = nursery.interpreter()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Functions of the user's modules run in workers too; WORKERS makes each of those processes start sooner.
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(WORKERS), *modules, *before]))
    builder = SparkSession.builder.appName("weft").master(f"local[{cores}]")
    for key, value in settings(log4j).items():
        builder = builder.config(key, value)
    # A program may have a session already (tests, notebooks): then it is that one, with its own settings.
    session = builder.getOrCreate()
    from weft.spark.rate import RateSource
    from weft.spark.reader import LogSource

    _register(session, LogSource, RateSource)
    return session


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
    environment = session.sparkContext.environment
    before = dict(environment)
    environment.update(PUT_BY_SPARK)
    try:
        for kind in kinds:
            session.dataSource.register(kind)
    finally:
        environment.clear()
        environment.update(before)


def settings(log4j: Path) -> dict[str, str]:
    """What differs from Spark's defaults, and why."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": os.environ.get("WEFT_DRIVER_MEMORY", "2g"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()} -XX:+UseG1GC -Xss4m",
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
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        # Lets a stateful query restart from its checkpoint with other inputs and stateless operators.
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
        "spark.sql.streaming.offsetLog.formatVersion": "2",
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
        # Over TCP the small messages to a worker wait for each other's receipts: 40 ms for every batch of a channel.
        "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
    }
