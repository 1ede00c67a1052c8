"""What was just written? Parquet's own footers tell rows and greatest times without another pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.spark.channels.manifest import Written
from weft.spark.channels.partitions import COLUMN, WHOLE, Partitioning, with_partition
from weft.spark.channels.small_batches import write_small
from weft.spark.storage.disk import Damaged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_parquet(
    records: DataFrame,
    folder: Path,
    options: dict[str, str],
    measured: list[str],
    partitioning: Partitioning = WHOLE,
    few: bool = False,
) -> Written:
    """Write records, be they `few` or not, to a new folder, each partition apart, and report what lies there."""
    written = write_small(records, folder, measured, partitioning) if few and not options else None
    if written is not None:
        return written
    _make(folder)
    if partitioning.count == 1:
        records.write.mode("append").options(**options).parquet(str(folder))
        return _from_footers(folder, measured)
    split = with_partition(records, partitioning)
    split.write.mode("append").options(**options).partitionBy(COLUMN).parquet(str(folder))
    return _from_footers(folder, measured, partitioning.count)


def write_text(records: DataFrame, folder: Path, format_: str, options: dict[str, str]) -> Written:
    """Write records to a new folder as files that tell nothing of themselves, and report what lies there."""
    _make(folder)
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    counted = records.observe(seen, F.count(F.lit(1)).alias("rows"))
    counted.write.mode("append").format(format_).options(**options).save(str(folder))
    rows = int(seen.get["rows"])
    files = tuple(_visible(folder)) if rows else ()
    if rows and not files:
        raise _gone(folder)
    return Written(rows, sum((folder / name).stat().st_size for name in files), files, {}, folder)


def _make(folder: Path) -> None:
    # For each folder that Spark has to make it starts a process, chmod: those whose names are known are made here.
    (folder / "_temporary" / "0" / "_temporary").mkdir(parents=True)


def _gone(folder: Path) -> Damaged:
    """What was just written is there: where it is not, it would look like a batch without records."""
    return Damaged(folder, "is gone while its batch was being written", "the same command writes it again")


def _from_footers(folder: Path, measured: list[str], partitions: int = 1) -> Written:
    import pyarrow.parquet as pq

    if not folder.is_dir():
        raise _gone(folder)
    rows = size = 0
    files: list[str] = []
    parts: list[int] = []
    part_rows: list[int] = []
    times: dict[str, int] = {}
    for name, part in _names(folder, partitions):
        path = folder / name
        footer = pq.read_metadata(path)
        if footer.num_rows == 0:
            continue
        rows += footer.num_rows
        size += path.stat().st_size
        files.append(name)
        if partitions > 1:
            parts.append(part)
            part_rows.append(footer.num_rows)
        for column in measured:
            greatest = _greatest(footer, column)
            if greatest is not None:
                times[column] = max(greatest, times.get(column, greatest))
    return Written(rows, size, tuple(files), times, folder, tuple(parts), tuple(part_rows))


def _names(folder: Path, partitions: int) -> Iterator[tuple[str, int]]:
    """The files of records below a folder, as paths within it, each with its partition."""
    if partitions == 1:
        yield from ((name, 0) for name in _visible(folder))
    for part in range(partitions) if partitions > 1 else ():
        within = f"{COLUMN}={part}"
        yield from ((f"{within}/{name}", part) for name in _visible(folder / within))


def _visible(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith((".", "_"))) if folder.exists() else []


def _greatest(footer: Any, column: str) -> int | None:
    """The greatest value of a timestamp column (of a window: of its end), in microseconds."""
    best: int | None = None
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group)
        for index in range(chunk.num_columns):
            cell = chunk.column(index)
            if cell.path_in_schema not in (column, f"{column}.end") or cell.statistics is None:
                continue
            if cell.statistics.has_min_max:
                moment = _microseconds(cell.statistics.max)
                best = moment if best is None else max(best, moment)
    return best


def _microseconds(value: Any) -> int:
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return int(value)
