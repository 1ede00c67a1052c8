"""What was just written? Parquet's own footers tell rows and greatest times without another pass."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F


@dataclass(frozen=True, slots=True)
class Written:
    """Files of one batch: how many records and bytes, and the greatest value of the time columns asked for."""

    rows: int = 0
    bytes: int = 0
    files: tuple[str, ...] = ()
    times_us: dict[str, int] = field(default_factory=dict)
    folder: Path | None = None


def look_at(records: DataFrame, folder: Path, format_: str, options: dict[str, str], measured: list[str]) -> Written:
    """Write records to a new folder and report what lies there."""
    if format_ == "console":
        return _show(records, options)
    # For each folder that Spark has to make it starts a process, chmod: those whose names are known are made here.
    (folder / "_temporary" / "0" / "_temporary").mkdir(parents=True)
    if format_ == "parquet":
        records.write.mode("append").options(**options).parquet(str(folder))
        return _from_footers(folder, measured)
    seen = Observation()
    counted = records.observe(seen, F.count(F.lit(1)).alias("rows"))
    counted.write.mode("append").format(format_).options(**options).save(str(folder))
    rows = int(seen.get["rows"])
    files = tuple(sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")))) if rows else ()
    return Written(rows, sum((folder / name).stat().st_size for name in files), files, {}, folder)


def _show(records: DataFrame, options: dict[str, str]) -> Written:
    rows = records.limit(int(options.get("numRows", "20"))).collect()
    count = records.count() if rows else 0
    for row in rows:
        print(" | ".join(str(value) for value in row), flush=True)
    if count > len(rows):
        print(f"... and {count - len(rows)} more", flush=True)
    return Written(count)


def _from_footers(folder: Path, measured: list[str]) -> Written:
    import pyarrow.parquet as pq

    rows = size = 0
    files: list[str] = []
    times: dict[str, int] = {}
    for name in sorted(os.listdir(folder)) if folder.exists() else []:
        if name.startswith((".", "_")):
            continue
        path = folder / name
        footer = pq.read_metadata(path)
        if footer.num_rows == 0:
            continue
        rows += footer.num_rows
        size += path.stat().st_size
        files.append(name)
        for column in measured:
            greatest = _greatest(footer, column)
            if greatest is not None:
                times[column] = max(greatest, times.get(column, greatest))
    return Written(rows, size, tuple(files), times, folder)


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
