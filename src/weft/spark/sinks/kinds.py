"""Which formats can a sink have? One line each; what checks and plans know of them is said in `model/formats.py`."""

from __future__ import annotations

from weft.spark.sinks.console import Console
from weft.spark.sinks.files import FolderOfFiles
from weft.spark.sinks.kafka import KafkaTopic
from weft.spark.sinks.kind import SinkKind

SINKS: dict[str, SinkKind] = {
    "parquet": FolderOfFiles("parquet"),
    "csv": FolderOfFiles("csv"),
    "json": FolderOfFiles("json"),
    "console": Console(),
    "kafka": KafkaTopic(),
}
