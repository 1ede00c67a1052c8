"""What Spark 4.3 and Python said in real runs, shortened where the same stack is told twice."""

# ruff: noqa: E501

from __future__ import annotations

PROXY = """\
pyspark.errors.exceptions.captured.StreamingQueryException: An exception was raised by the Python Proxy. \
Return Message: Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/src/weft/spark/fragments/writing.py", line 160, in write
    self._write_batch(frame, batch, ahead)
  File "/opt/src/weft/spark/channels/footers.py", line 33, in look_at
    records.write.mode("append").options(**options).parquet(str(folder))
  File "/venv/lib/python3.11/site-packages/pyspark/sql/readwriter.py", line 2099, in parquet
    self._jwrite.parquet(path)
"""
PLAN = """

=== Streaming Query ===
Identifier: q.all#0.0 [id = 66f29ef5-71a7-4b4f-9a02-880e45023ff0, runId = 5cf4d014-ada2-4ace-bbe8-1a8282955f4f]
Current Committed Offsets: {{}}

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 66f29ef5, [queryName=q.all#0.0, checkpointLocation={checkpoint}], Append
"""
STACK = """
	at org.apache.spark.sql.errors.QueryExecutionErrors$.apply(QueryExecutionErrors.scala:869)
	at java.base/java.lang.Thread.run(Thread.java:840)
"""


def in_a_batch(text: str, checkpoint: str = "/state/fragments/q.all/checkpoint-0") -> str:
    """An error of a job that a batch's writer started."""
    called = "py4j.protocol.Py4JJavaError: An error occurred while calling o192.parquet.\n: "
    return f"{PROXY}{called}{text}{PLAN.format(checkpoint=checkpoint)}"


def in_python(text: str) -> str:
    """An error that a batch's writer raised in Python."""
    return f"{PROXY}{text}{PLAN.format(checkpoint='/state/fragments/q.all/checkpoint-0')}"


READING = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file://{file}.  "
    "SQLSTATE: KD001" + STACK + "Caused by: "
)
PARSING = "\nParse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'. "
BAD_CSV = (
    READING + "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
    "detected in record parsing: [{row}]." + PARSING + " SQLSTATE: 22023" + STACK
    + 'Caused by: java.lang.NumberFormatException: For input string: "{value}"\n\t... 31 more\n'
)  # fmt: skip
SHORT_CSV = (
    READING + "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
    "detected in record parsing: [2,null]." + PARSING + " SQLSTATE: 22023" + STACK
    + "Caused by: org.apache.spark.SparkRuntimeException: [MALFORMED_CSV_RECORD] Malformed CSV record: 2 SQLSTATE: KD000\n"
)  # fmt: skip
BAD_JSON = (
    READING + "org.apache.spark.SparkRuntimeException: [MALFORMED_RECORD_IN_PARSING.CANNOT_PARSE_STRING_AS_DATATYPE] "
    'Malformed records are detected in record parsing: {{"id":3,"v":"oops"}}.' + PARSING
    + "Cannot parse the value 'oops' of the field `v` as target spark data type DoubleType from the input type "
    "StringType. SQLSTATE: 22023" + STACK
)  # fmt: skip
NO_JSON = (
    READING + "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
    "detected in record parsing: [null,null]." + PARSING + " SQLSTATE: 22023" + STACK
    + "Caused by: com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input within/between Object entries\n"
)  # fmt: skip
UNTOLD_JSON = (
    READING + "org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are "
    "detected in record parsing: [null,null]." + PARSING + " SQLSTATE: 22023" + STACK
)  # fmt: skip
CUT_OFF = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file://{file}.  "
    "SQLSTATE: KD001" + STACK + "Caused by: java.io.EOFException: Unexpected end of input stream\n\t... 31 more\n"
)  # fmt: skip
NO_PARQUET = (
    READING + "java.lang.RuntimeException: file:{file} is not a Parquet file. Expected magic number at tail, but found "
    "[97, 108, 108, 10]" + STACK
)
VANISHED = (
    "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
    "file://{file}. File does not exist. It is possible the underlying files have been updated.\nYou can explicitly "
    "invalidate the cache in Spark by running 'REFRESH TABLE tableName' command. SQLSTATE: KD001" + STACK
    + "Caused by: java.io.FileNotFoundException: File file:{file} does not exist\n"
)  # fmt: skip
FULL = (
    "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:{folder}. "
    "SQLSTATE: 58030" + STACK + "Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device"
    + STACK + "Caused by: java.io.IOException: No space left on device\n\t... 41 more\n"
)  # fmt: skip
NOT_MADE = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 31.0 failed 1 times, most recent "
    "failure: Lost task 1.0 in stage 31.0 (TID 33) (host executor driver): java.io.IOException: Mkdirs failed to create "
    "file:{folder}/_temporary/0/_temporary/attempt_2026_0031_m_000001_33" + STACK + "\nDriver stacktrace:" + STACK
    + "Caused by: java.io.IOException: Mkdirs failed to create file:{folder}/_temporary/0/_temporary/attempt_2026_0031\n"
)  # fmt: skip
STATE_GONE = (
    "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] An error occurred during "
    "loading state. Error reading delta file file:{file} of HDFSStateStoreProvider[stateStoreProviderId="
    "StateStoreProviderId[ storeId=StateStoreId[ operatorId=0, partitionId=0, storeName=default ] ]]: file:{file} does "
    "not exist. SQLSTATE: 58030" + STACK + "Caused by: java.io.FileNotFoundException: File file:{file} does not exist\n"
)
STATE_CUT = (
    "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.  "
    "SQLSTATE: 58030" + STACK + "Caused by: java.io.EOFException" + STACK
)
COMMITS = (
    "pyspark.errors.exceptions.captured.StreamingQueryException: Failed to read log file file:{file}. "
    "[MALFORMED_LOG_FILE] Log file was malformed: failed to read correct log version from rubbish. SQLSTATE: KD002"
)
EMPTY = "Exception thrown in awaitResult: " + PLAN + (
    "Caused by: org.apache.spark.SparkException: Exception thrown in awaitResult: " + STACK
    + "Caused by: java.lang.IllegalStateException: batch 3 was never planned\n"
)  # fmt: skip
DIVISION = """\
pyspark.errors.exceptions.captured.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate \
divisor being 0 and return NULL instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. \
SQLSTATE: 22012
== SQL (line 1, position 12) ==
SELECT id, v / (id - id) AS v FROM r
           ^^^^^^^^^^^^^
"""
WORKER = """\
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "{folder}/rules.py", line 12, in over
    return look(frame)
           ^^^^^^^^^^^
  File "{folder}/rules.py", line 7, in look
    return frame[frame["nope"] > 1]
  File "/venv/lib/python3.11/site-packages/pandas/core/frame.py", line 4102, in __getitem__
    indexer = self.columns.get_loc(key)
{raised}
"""
DAMAGED = """\
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/src/weft/spark/channels/reader.py", line 40, in read
    raise Damaged(path)
weft.spark.storage.disk.Damaged: /state/streams/q.all/3: its checksum is another; `--fresh` starts over
"""
CRASHED = (
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)" + STACK
    + "Caused by: java.io.EOFException" + STACK
)  # fmt: skip
MEMORY = "java.lang.OutOfMemoryError: Java heap space" + STACK
