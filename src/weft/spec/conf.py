"""Which of Spark's settings may a file change? All but those that results, counts or resuming depend on."""

from __future__ import annotations

from weft.model import Deployment
from weft.spec.problems import Problems, brief, did_you_mean

_PROMISE = "records would be missing or come twice after a crash"
_FILES = "channels and sinks know what was written by the files' names and footers"
_LOCAL = "state, channels and sinks are folders of this machine"
_NAMES = "checks and plans take the SQL of operators for what it means without it"
_CHECKPOINT = "restarts and moves read and write Spark's checkpoints themselves"
_WATERMARKS = "which records are late would depend on where operators run, or windows would never close"
_PYTHON = "Spark's Python processes must find what this one has"

KEPT = {
    "spark.master": "it has its own key: write `master`",
    "spark.submit.": "the run starts Spark itself; modules are found beside the deployment file",
    "spark.remote": "the run starts Spark itself; name a `master`",
    "spark.api.mode": "the run starts Spark itself; name a `master`",
    "spark.pyspark.": _PYTHON,
    "spark.executorEnv.PYTHONPATH": _PYTHON,
    "spark.executorEnv.PYSPARK_PYTHON": _PYTHON,
    "spark.python.daemon.module": _PYTHON,
    "spark.python.worker.module": _PYTHON,
    "spark.hadoop.fs.file.impl": _LOCAL,
    "spark.hadoop.fs.AbstractFileSystem.file.impl": _LOCAL,
    "spark.hadoop.fs.defaultFS": _LOCAL,
    "spark.hadoop.fs.default.name": _LOCAL,
    "spark.hadoop.mapreduce.fileoutputcommitter.": _FILES,
    "spark.hadoop.mapreduce.outputcommitter.": _FILES,
    "spark.hadoop.mapred.output.committer.class": _FILES,
    "spark.sql.sources.commitProtocolClass": _FILES,
    "spark.sql.sources.outputCommitterClass": _FILES,
    "spark.sql.parquet.output.committer.class": _FILES,
    "spark.sql.parquet.outputTimestampType": _FILES,
    "spark.sql.parquet.datetimeRebaseModeInWrite": _FILES,
    "spark.sql.parquet.int96RebaseModeInWrite": _FILES,
    "spark.sql.parquet.writeLegacyFormat": _FILES,
    "spark.sql.parquet.fieldId.": _FILES,
    "spark.sql.session.timeZone": "times are UTC everywhere; give a source its own with `options: {timeZone: ...}`",
    "spark.sql.timestampType": _NAMES,
    "spark.sql.caseSensitive": _NAMES,
    "spark.sql.csv.filterPushdown.enabled": "records that a filter drops while parsing would be missing from counts",
    "spark.sql.json.filterPushdown.enabled": "records that a filter drops while parsing would be missing from counts",
    "spark.sql.files.ignoreCorruptFiles": "files would be skipped without a word; say `bad_records` of the source",
    "spark.sql.files.ignoreMissingFiles": "files would be skipped without a word",
    "spark.sql.files.ignoredPathSegmentRegex": "files would be skipped without a word, or unfinished ones be read",
    "spark.sql.files.ignoreInvalidPartitionPaths": "files would be skipped without a word",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT,
    "spark.sql.streaming.checkpoint.": _CHECKPOINT,
    "spark.sql.streaming.offsetLog.": _CHECKPOINT,
    "spark.sql.streaming.queryEvolution.": _CHECKPOINT,
    "spark.sql.streaming.minBatchesToRetain": _CHECKPOINT,
    "spark.sql.streaming.checkUnfinishedRepartitionOnRestart": _CHECKPOINT,
    "spark.sql.streaming.fileSource.log.": _PROMISE,
    # RocksDB asks Hadoop for its local files with checksums, which Weft does without.
    "spark.sql.streaming.stateStore.providerClass": "state is kept by Spark's own provider so far",
    "spark.sql.streaming.stateStore.rocksdb.": "state is kept by Spark's own provider so far",
    "spark.sql.streaming.stateStore.autoSnapshotRepair.": _PROMISE,
    "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.": _PROMISE,
    "spark.sql.streaming.stopActiveRunOnRestart": _PROMISE,
    "spark.sql.streaming.unsupportedOperationCheck": "Spark would run what it cannot keep exact",
    "spark.sql.streaming.statefulOperator.": "Spark would run what it cannot keep exact",
    "spark.sql.streaming.multipleWatermarkPolicy": _WATERMARKS,
    "spark.sql.streaming.noDataMicroBatches.": _WATERMARKS,
    "spark.sql.streaming.numRecentProgressUpdates": "records are counted from them",
}
"""Settings, by key or by the beginning of their keys, that stay as Weft needs them, and why."""

_KNOWN = (
    "spark.driver.memory",
    "spark.driver.extraJavaOptions",
    "spark.local.dir",
    "spark.ui.enabled",
    "spark.ui.port",
    "spark.jars.packages",
    "spark.scheduler.mode",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.ansi.enabled",
    "spark.sql.parquet.compression.codec",
)


def check_spark(deployment: Deployment, problems: Problems) -> None:
    """Reports settings that must stay as they are, and on what sites that share one Spark differ."""
    where = {"spark": deployment.spark}
    where |= {f"sites[{index}].spark": site.spark for index, site in enumerate(deployment.sites)}
    for field, spark in where.items():
        for key in spark.conf:
            why = _why_not(key)
            if why is not None:
                problems.error(f"{field}.conf.{key}", why)
    for warning in deployment.shared_spark()[1]:
        problems.warn("sites", warning)


def is_kept(key: str) -> str | None:
    """Why a setting stays as Weft needs it, None where it may be changed."""
    if key in KEPT:
        return KEPT[key]
    return next((why for kept, why in KEPT.items() if kept.endswith(".") and key.startswith(kept)), None)


def _why_not(key: str) -> str | None:
    why = is_kept(key)
    if why is not None:
        return f"cannot be set: {why}; leave it out"
    if not key.startswith("spark."):
        hint = did_you_mean(f"spark.{key}", _KNOWN)
        return f"Spark's settings begin with `spark.`, found `{brief(key)}`{hint}"
    return None
