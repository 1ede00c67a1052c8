"""How is a small batch written? By this process, through Arrow: Spark's own writer takes longer than the work does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.spark.channels.manifest import Written
from weft.spark.channels.partitions import COLUMN, Partitioning, with_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
TOO_MANY = "spark.driver.maxResultSize"
FILE = "part-00000.snappy.parquet"


def write_small(records: DataFrame, folder: Path, measured: list[str], partitioning: Partitioning) -> Written | None:
    """Write records to a new folder and report what lies there; None where Spark's writer must, nothing being written.

    That is where Arrow has no type for a column, or where there are more records than this process should hold.
    """
    table = fetched(records, partitioning)
    if table is None:
        return None
    if not table.num_rows:
        return Written(0, 0, (), {}, folder)
    metadata = {ROW_METADATA: records.schema.json().encode()}
    if partitioning.count == 1:
        size = _put(table, folder / FILE, metadata)
        return Written(table.num_rows, size, (FILE,), times_us(table, measured), folder)
    return _split(table, folder, measured, partitioning.count, metadata)


def fetched(records: DataFrame, partitioning: Partitioning) -> pa.Table | None:
    """All records at once, with the partition of each where there are several; None where Spark must write them."""
    split = records if partitioning.count == 1 else with_partition(records, partitioning)
    return _collected(split) if _has_types(split) else None


def _has_types(records: DataFrame) -> bool:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        schema = to_arrow_schema(records.schema, timezone="UTC")
    except (PySparkException, pa.ArrowException):
        return False
    return not any(pa.types.is_null(field.type) for field in schema)  # what Spark refuses to write, it refuses


def _collected(records: DataFrame) -> pa.Table | None:
    """All records at once; None where Spark finds them too many for this process."""
    try:
        return records.toArrow()
    except Exception as error:
        if TOO_MANY in str(error):
            return None
        raise


def _split(table: pa.Table, folder: Path, measured: list[str], count: int, metadata: dict[bytes, bytes]) -> Written:
    """Each partition in a folder of its own."""
    import pyarrow.compute as pc

    files, parts, rows, size = [], [], [], 0
    for part in range(count):
        held = table.filter(pc.equal(table.column(COLUMN), part)).drop_columns([COLUMN])
        if held.num_rows:
            name = f"{COLUMN}={part}/{FILE}"
            size += _put(held, folder / name, metadata)
            files.append(name)
            parts.append(part)
            rows.append(held.num_rows)
    times = times_us(table, measured)
    return Written(table.num_rows, size, tuple(files), times, folder, tuple(parts), tuple(rows))


def _put(table: pa.Table, path: Path, metadata: dict[bytes, bytes]) -> int:
    """One file, with what Spark's writer says of the columns; its size."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="snappy", store_schema=False)
    return path.stat().st_size


def times_us(table: pa.Table, measured: list[str]) -> dict[str, int]:
    """The greatest value of each time column (of a window: of its end), in microseconds."""
    import pyarrow.compute as pc

    found = {}
    for column in measured:
        values = _values(table, column)
        greatest = None if values is None else pc.max(values).as_py()
        if greatest is not None:
            found[column] = greatest
    return found


def _values(table: pa.Table, column: str) -> Any:
    """A time column as whole microseconds; None where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name, *inner = [column] if column in table.column_names else column.split(".")
    if name not in table.column_names:
        return None
    values = table.column(name)
    for field in inner:
        values = pc.struct_field(values, field)
    if pa.types.is_struct(values.type):
        if "end" not in [field.name for field in values.type]:
            return None
        values = pc.struct_field(values, "end")
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values
