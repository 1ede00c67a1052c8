"""What this process writes of a small batch is what Spark's own writer would have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.spark.channels import small_batches
from weft.spark.channels.footers import write_parquet
from weft.spark.channels.partitions import Partitioning

pytestmark = pytest.mark.spark
EVERY_TYPE = """
SELECT id AS n, CAST(id AS TINYINT) AS t, CAST(id AS SMALLINT) AS s, CAST(id AS INT) AS i, CAST(id / 3 AS FLOAT) AS f,
  id / 7 AS d, CAST(id AS DECIMAL(9, 2)) AS small, CAST(id AS DECIMAL(30, 5)) AS large, id % 2 = 0 AS b,
  IF(id % 3 = 0, NULL, concat('k', id)) AS word, CAST(concat('b', id) AS BINARY) AS raw,
  DATE '1969-12-30' + CAST(id AS INT) AS day, TIMESTAMP '1960-02-29 23:59:59.123456' + make_interval(id) AS ts,
  TIMESTAMP_NTZ '2024-02-29 01:02:03.000004' AS plain, array(id, NULL) AS list, map('a', id) AS named,
  named_struct('x', id, 'y', array(named_struct('z', id))) AS nested,
  named_struct('start', TIMESTAMP '2024-01-01 00:00:00', 'end', TIMESTAMP '2024-01-01 01:00:00') AS w
FROM range(50)
"""


@pytest.mark.parametrize("query", [EVERY_TYPE, f"SELECT * FROM ({EVERY_TYPE}) WHERE n < 0"])
def test_files_hold_the_records_and_types_that_spark_writes(spark: Any, tmp_path: Path, query: str) -> None:
    records = spark.sql(query)
    few = write_parquet(records, tmp_path / "few", {}, ["ts", "w", "w.start", "plain"], few=True)
    many = write_parquet(records, tmp_path / "many", {}, ["ts", "w", "w.start", "plain"])
    assert (few.rows, few.times_us) == (many.rows, many.times_us)
    if not few.rows:
        assert few.files == ()
        return
    assert [file.name for file in (tmp_path / "few").iterdir()] == list(few.files)
    ours, theirs = spark.read.parquet(str(tmp_path / "few")), spark.read.parquet(str(tmp_path / "many"))
    assert ours.schema == theirs.schema
    assert sorted(ours.collect()) == sorted(theirs.collect())


def test_partitions_hold_what_spark_would_put_there(spark: Any, tmp_path: Path) -> None:
    made = "SELECT id, id % 7 AS k, TIMESTAMP '2024-01-01' + make_interval(0, 0, 0, id) AS ts FROM range(60)"
    records = spark.sql(made)
    how = Partitioning(4, ("k",))
    few = write_parquet(records, tmp_path / "few", {}, ["ts"], how, few=True)
    many = write_parquet(records, tmp_path / "many", {}, ["ts"], how)
    assert few.times_us == many.times_us
    assert dict(zip(few.parts, few.part_rows, strict=True)) == {
        part: sum(rows for other, rows in zip(many.parts, many.part_rows, strict=True) if other == part)
        for part in set(many.parts)
    }
    for name, part in zip(few.files, few.parts, strict=True):
        held = {row["id"] for row in spark.read.parquet(str(tmp_path / "few" / name)).collect()}
        other = spark.read.parquet(str(tmp_path / "many" / f"weft_partition={part}"))
        assert held == {row["id"] for row in other.collect()}


def test_what_arrow_has_no_type_for_spark_writes(spark: Any, tmp_path: Path) -> None:
    records = spark.sql("SELECT id, make_ym_interval(1, 2) AS since FROM range(3)")
    assert small_batches.write_small(records, tmp_path / "few", [], Partitioning()) is None
    assert write_parquet(records, tmp_path / "all", {}, [], few=True).rows == 3


def test_more_than_this_process_should_hold_spark_writes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(records: Any) -> Any:
        raise RuntimeError("Total size of serialized results is bigger than spark.driver.maxResultSize (256.0 MiB)")

    records = spark.range(5)
    monkeypatch.setattr(type(records), "toArrow", too_many)
    assert write_parquet(records, tmp_path / "all", {}, [], few=True).rows == 5
    monkeypatch.setattr(type(records), "toArrow", lambda records: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_parquet(records, tmp_path / "none", {}, [], few=True)
