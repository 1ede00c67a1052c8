"""The channels that the suite is run with: how each is opened, and what its writer is given."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.channels.memory_channel import MemoryChannel, partition_of
from tests.spark.kafka import brokers
from weft.spark.channels import footers
from weft.spark.channels.channel import Channel, Writer
from weft.spark.channels.folders import Folders
from weft.spark.channels.kinds import CHANNELS
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import COLUMN, WHOLE, Partitioning
from weft.spark.channels.position import BEGINNING, Position

COLUMNS = "k STRING, v BIGINT"
Row = tuple[str, int]


class Kind:
    """One kind of channel in a state folder."""

    def __init__(self, state: Path, channels: str, records: Callable[[list[dict[str, Any]]], Any]) -> None:
        self.folders = Folders(state, "run", channels=channels)
        self.records = records

    def open(self, name: str = "s") -> Channel:
        """A stream, as another process would open it."""
        return self.folders.stream(name)

    def commit(self, writer: Writer, batch: int, rows: list[Row], **facts: Any) -> Manifest:
        """One batch, written and committed."""
        written = writer.write(self.records([{"k": k, "v": v} for k, v in rows]), [])
        return committed(writer, batch, written, **facts)


def committed(writer: Writer, batch: int, written: Written, **facts: Any) -> Manifest:
    """Commit what was written."""
    total = (writer.last.rows_total if writer.last else 0) + written.rows
    manifest = Manifest(
        writer.segment, writer.epoch, writer.writer, batch, rows=written.rows, bytes=written.bytes, rows_total=total,
        files=written.files, parts=written.parts, part_rows=written.part_rows, **facts,
    )  # fmt: skip
    return writer.commit(manifest)


def read(
    channel: Channel,
    start: Position = BEGINNING,
    end: Position | None = None,
    partitions: Collection[int] | None = None,
) -> list[Row]:
    """The records between two positions, of some partitions or all, sorted."""
    manifests = [manifest for _, manifest in channel.commits(start, channel.end() if end is None else end)]
    tables = [channel.read(piece, ["k", "v"]) for piece in channel.pieces(manifests, partitions)]
    return sorted((row["k"], row["v"]) for table in tables for row in table.to_pylist())


def kind_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Callable[[], Any]) -> Kind:
    """The kind of channel that a test asks for; `spark` gives a session to those who need one."""
    if name == "memory":
        monkeypatch.setitem(CHANNELS, "memory", MemoryChannel)
        monkeypatch.setattr(MemoryChannel, "streams", {})
        return Kind(tmp_path, "memory", list)
    if name == "folder":
        monkeypatch.setattr(footers, "write_parquet", _arrow_parquet)
        return Kind(tmp_path, "folder", list)
    if name == "kafka":
        monkeypatch.setattr(footers, "write_parquet", _arrow_parquet)
        kind = Kind(tmp_path, "kafka", list)
        settings = {"bootstrap": brokers.broker().bootstrap, "prefix": f"t{secrets.token_hex(4)}."}
        kind.folders = replace(kind.folders, settings=settings)
        return kind
    session = spark()
    return Kind(tmp_path, "folder", lambda rows: session.createDataFrame(rows, COLUMNS))


def _arrow_parquet(
    rows: list[dict[str, Any]],
    folder: Path,
    options: dict[str, str],
    measured: list[str],
    partitioning: Partitioning = WHOLE,
    few: bool = False,
) -> Written:
    """What Spark would write, by Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    several = partitioning != WHOLE
    parts: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault(partition_of(row, partitioning) if several else 0, []).append(row)
    names = []
    for part, held in sorted(parts.items()):
        name = f"part-{zlib.crc32(repr(held).encode()):08x}.parquet"
        names.append(f"{COLUMN}={part}/{name}" if several else name)
        (folder / names[-1]).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(held), folder / names[-1])
    size = sum((folder / name).stat().st_size for name in names)
    found = Written(len(rows), size, tuple(names), {}, folder)
    if not several:
        return found
    counts = tuple(len(parts[part]) for part in sorted(parts))
    return Written(found.rows, found.bytes, found.files, {}, folder, tuple(sorted(parts)), counts)
