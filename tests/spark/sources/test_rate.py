"""A timed source before it flows: one batch without records for every start, so that the slow one delays nothing."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql.types import LongType, StructField, StructType

from weft.model import Constant
from weft.spark.channels.folders import Folders
from weft.spark.sources.flowing import beat, let_flow
from weft.spark.sources.rate import COUNT, STARTS, RateReader, encode_arrivals
from weft.spark.sources.streams import read_flows, write_flows
from weft.spark.storage.disk import Disk


def reader(folders: Folders) -> RateReader:
    """As a start of the run makes it."""
    options = {"source": "s", "arrivals": encode_arrivals(Constant(1000.0)), "flows": str(folders.flows)}
    launches = str(read_flows(folders.flows)["launches"])
    return RateReader(StructType([StructField("v", LongType())]), {**options, "starts_min": launches})


def launched(folders: Folders, number: int) -> RateReader:
    write_flows(folders.flows, {**read_flows(folders.flows), "launches": number}, folders.disk)
    return reader(folders)


def test_every_start_begins_with_one_batch_without_records(tmp_path: Path) -> None:
    folders = Folders(tmp_path, "run", Disk(fsync=False))
    write_flows(folders.flows, {"starts": [], "flowed_s": 0.0, "factors": {}, "launches": 1}, folders.disk)
    offset = reader(folders).initialOffset()
    for start in (1, 2):
        source = launched(folders, start)
        first = source.latestOffset(offset, None)
        assert (first[COUNT], first[STARTS]) == (offset[COUNT], start)
        (span,) = source.partitions(offset, first)
        assert span.start == span.end, "there is a task, which warms up what tasks need"
        assert source.latestOffset(first, None) == first, "and then nothing, until sources flow"
        let_flow(folders)
        time.sleep(0.02)
        offset = source.latestOffset(first, None)
        assert offset[COUNT] > first[COUNT]
        (span,) = source.partitions(first, offset)
        assert (span.start, span.end) == (first[COUNT], offset[COUNT])
        beat(folders)
