"""How do records pass a grouped function cheaply? Many in one binary: few rows for the shuffle, every type survives."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

PART, BLOB = "_weft_part", "_weft_blob"
ROWS_OUT = 16_384
BLOB_BYTES = 200_000
LOADING_CALLS = 8
CALLS = itertools.count()


def spare_the_collector() -> None:
    """Keep what this worker's first calls have loaded out of the garbage collection that Spark asks for after each.

    To look through pandas and compiled code takes 50 ms, more than the ordering of a hundred thousand records.
    """
    if next(CALLS) < LOADING_CALLS:
        gc.freeze()


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row for every batch of records and part: the records as one binary."""
    spare_the_collector()
    for batch in batches:
        parts = batch.column(batch.schema.get_field_index(PART)).to_numpy()
        records = batch.drop_columns([PART])
        for part in np.unique(parts):
            mine = records if len(np.unique(parts)) == 1 else records.filter(pa.array(parts == part))
            blobs = pa.array(blobs_of(pa.Table.from_batches([mine])), pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([part] * len(blobs), pa.int32()), blobs], names=[PART, BLOB])


def pack_or_sign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As `pack`; where nothing comes an empty row tells that a batch was run."""
    silent = True
    for packed in pack(batches):
        silent = False
        yield packed
    if silent:
        yield pa.RecordBatch.from_arrays([pa.array([0], pa.int32()), pa.array([b""], pa.binary())], names=[PART, BLOB])


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The records of every binary."""
    spare_the_collector()
    for batch in batches:
        for blob in batch.column(0):
            yield from from_bytes(blob.as_py()).to_batches(max_chunksize=ROWS_OUT)


def blobs_of(table: pa.Table) -> list[bytes]:
    """A table as binaries of a size that Java's heap takes easily."""
    rows = max(1, table.num_rows * BLOB_BYTES // max(1, table.nbytes))
    return [to_bytes(table.slice(first, rows)) for first in range(0, table.num_rows, rows)]


def to_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    """A table as one binary."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_bytes(blob: bytes) -> pa.Table:
    """The table in a binary."""
    return pa.ipc.open_stream(blob).read_all()
