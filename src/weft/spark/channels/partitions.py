"""How is a stream split by key? Each record lies in the partition that a stable hash of its key columns names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMN = "weft_partition"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How many partitions a stream has, and the columns whose values decide; one partition needs none."""

    count: int = 1
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1 or (self.count > 1 and not self.key):
            raise ValueError(f"{self.count} partitions by {self.key or 'no column'}: must be 1, or more with a key")


WHOLE = Partitioning()


def with_partition(records: DataFrame, partitioning: Partitioning) -> DataFrame:
    """Records with the partition of each: Spark's xxHash64 of the key, the same in every process and run."""
    from pyspark.sql import functions as F

    columns = [F.col(f"`{name}`") for name in partitioning.key]
    return records.withColumn(COLUMN, F.pmod(F.xxhash64(*columns), F.lit(partitioning.count)).cast("int"))
