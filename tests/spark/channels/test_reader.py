"""Spark reads a channel: all of it, or some of its partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.channels.channel_kinds import COLUMNS, Kind, committed, read
from weft.spark.channels.folders import Folders
from weft.spark.channels.gate import Gate
from weft.spark.channels.manifest import Written
from weft.spark.channels.partitions import Partitioning
from weft.spark.channels.reader import COMMITS_MAX, FORMAT, ChannelReader


def taken(spark: Any, kind: Kind, name: str, partitions: str | None, folder: Path) -> list[tuple[str, int]]:
    """What a streaming query takes from the stream, to its end."""
    options = {**kind.folders.reader_options(kind.open()), "reader": f"{name}~in", "tick": "1"}
    if partitions is not None:
        options["partitions"] = partitions
    stream = spark.readStream.format(FORMAT).name(name).options(**options).schema(COLUMNS).load()
    rows: list[Any] = []
    query = (
        stream.writeStream.option("checkpointLocation", str(folder / name))
        .foreachBatch(lambda frame, _: rows.extend(frame.collect()))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return sorted((row["k"], row["v"]) for row in rows)


@pytest.mark.parametrize("delay_ms", ["0", "1"])
def test_a_reader_whose_gate_opens_far_beyond_its_beginning_reads_on_from_there(delay_ms: str, tmp_path: Path) -> None:
    folders, place = Folders(tmp_path, "run"), COMMITS_MAX + 20
    log = folders.stream("s").create()
    writer = log.open_writer(1, "f")
    for batch in range(place + 1):
        committed(writer, batch, Written(rows=1))
    gate = Gate(tmp_path / "gate.json", waits=True)
    options = {**folders.reader_options(log), **gate.options("in"), "reader": "early~in", "delay_ms": delay_ms}
    reader = ChannelReader(None, options)  # type: ignore[arg-type]
    start = reader.latestOffset({"segment": 3, "tick": 0}, None)
    log.passed("old~in", place)
    log.retain()  # who reads before it has gone on meanwhile
    gate.open({"in": place})
    found = reader.latestOffset(start, None)
    assert found["segment"] == place + 1
    assert reader.latestOffset(found, None) == found, "there is no more"


@pytest.mark.spark
def test_streaming_queries_on_disjoint_partitions_share_the_records_out(spark: Any, tmp_path: Path) -> None:
    kind = Kind(tmp_path / "state", "folder", lambda rows: spark.createDataFrame(rows, COLUMNS))
    channel = kind.open().create(Partitioning(4, ("k",)))
    writer = channel.open_writer(1, "f")
    for batch in range(3):
        frame = spark.range(1000).selectExpr("concat('k', id % 37) AS k", f"id + {1000 * batch} AS v")
        committed(writer, batch, writer.write(frame, []))
    one, rest = taken(spark, kind, "one", "1", tmp_path), taken(spark, kind, "rest", "0,2,3", tmp_path)
    assert {k for k, _ in one}.isdisjoint(k for k, _ in rest)
    assert one
    assert sorted(one + rest) == read(channel) == taken(spark, kind, "all", None, tmp_path)
    assert len(one) + len(rest) == 3000
    files = next(channel.commits(0, 1))[1].files
    assert all(name.startswith("weft_partition=") for name in files), "each partition in files of its own"


@pytest.mark.spark
def test_a_stream_of_one_partition_lies_on_disk_as_ever(spark: Any, tmp_path: Path) -> None:
    kind = Kind(tmp_path / "state", "folder", lambda rows: spark.createDataFrame(rows, COLUMNS).coalesce(1))
    manifest = kind.commit(kind.open().open_writer(1, "f"), 0, [("a", 1)])
    folder = tmp_path / "state" / "streams" / "s"
    assert sorted(path.name for path in folder.iterdir()) == ["data", "epoch", "manifests", "readers"]
    (data,) = folder.glob("data/0000000000-1/*.parquet")
    assert manifest.files == (data.name,)
    assert b"part" not in (folder / "manifests" / "0000000000").read_bytes().replace(data.name.encode(), b"")
