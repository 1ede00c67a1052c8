"""How do records become blobs? Arrow streams of a bounded size, each of one partition.

A small batch is fetched through Arrow. A large one is written by Spark to a folder of this machine first, and goes to
the broker from there, file by file, so that this process never holds all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.spark.channels import footers
from weft.spark.channels.manifest import Written
from weft.spark.channels.partitions import COLUMN, Partitioning
from weft.spark.channels.small_batches import fetched, times_us

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

BLOB_BYTES = 4 << 20
Put = Callable[[list[bytes]], list[str]]


def write_blobs(
    records: DataFrame, folder: Path, measured: list[str], partitioning: Partitioning, few: bool, put: Put
) -> Written:
    """Hand a batch, of `few` records or many, to the broker; `put` says where blobs lie."""
    table = fetched(records, partitioning) if few else None
    if table is None:
        return to_blobs(footers.write_parquet(records, folder, {}, measured, partitioning, False), put)
    blobs: list[bytes] = []
    parts: list[int] = []
    rows: list[int] = []
    for part in range(partitioning.count):
        for blob, count in _blobs(_of_part(table, part, partitioning.count)):
            blobs.append(blob)
            parts.append(part)
            rows.append(count)
    return _written(put, blobs, parts, rows, times_us(table, measured), partitioning.count > 1)


def write_aside(
    records: DataFrame, folder: Path, measured: list[str], partitioning: Partitioning, few: bool
) -> Written:
    """Write a batch to a folder of this machine."""
    return footers.write_parquet(records, folder, {}, measured, partitioning, few)


def to_blobs(written: Written, put: Put) -> Written:
    """Hand what lies in a folder to the broker."""
    import pyarrow.parquet as pq

    names: list[str] = []
    parts: list[int] = []
    rows: list[int] = []
    size = 0
    own_parts = written.parts or (0,) * len(written.files)
    for name, part in zip(written.files, own_parts, strict=True):
        assert written.folder is not None
        file = pq.ParquetFile(written.folder / name)
        for group in range(file.num_row_groups):
            for blob, count in _blobs(file.read_row_group(group)):
                names += put([blob])
                parts.append(part)
                rows.append(count)
                size += len(blob)
    several = bool(written.parts)
    return Written(
        written.rows, size, tuple(names), written.times_us, None, tuple(parts) if several else (),
        tuple(rows) if several else (),
    )  # fmt: skip


def _written(
    put: Put, blobs: list[bytes], parts: list[int], rows: list[int], times: dict[str, int], several: bool
) -> Written:
    names = put(blobs) if blobs else []
    size = sum(len(blob) for blob in blobs)
    if not several:
        return Written(sum(rows), size, tuple(names), times)
    return Written(sum(rows), size, tuple(names), times, None, tuple(parts), tuple(rows))


def _of_part(table: pa.Table, part: int, count: int) -> pa.Table:
    import pyarrow.compute as pc

    return table if count == 1 else table.filter(pc.equal(table.column(COLUMN), part)).drop_columns([COLUMN])


def _blobs(table: Any) -> Iterator[tuple[bytes, int]]:
    """A table as Arrow streams, none much larger than a blob may be, each with its number of records."""
    import pyarrow as pa

    each = max(1, round(table.num_rows * BLOB_BYTES / max(1, table.nbytes)))
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for start in range(0, table.num_rows, each):
        piece = table.slice(start, each)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, piece.schema, options=options) as stream:
            stream.write_table(piece)
        yield sink.getvalue().to_pybytes(), piece.num_rows
