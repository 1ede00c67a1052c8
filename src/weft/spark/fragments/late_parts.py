"""Whose are late records where an operator was made of several? Each part's are those that its condition keeps."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F

from weft.spark.fragments.late import Dropped, LateRecords
from weft.spark.fragments.outputs import Output


def late_of_parts(late: LateRecords, outputs: Sequence[Output], dropped: Dropped) -> dict[str, int]:
    """How many late records of the batch just run are of each part, by where they are counted: one look for all."""
    parts = [(output.stream, output.part) for output in outputs if output.part is not None]
    number = next((output.late for output in outputs if output.part is not None), None)
    if number is None:
        return {}
    records = late.records(number, dropped.watermark_ms)
    if records is None:
        return {stream: dropped.rows for stream, _ in parts}  # nobody can tell whose they were
    asked = [F.count(F.lit(1)) if part.where is None else F.count_if(F.expr(part.where)) for _, part in parts]
    row = records.agg(*(one.alias(f"c{at}") for at, one in enumerate(asked))).collect()[0]
    return {stream: int(row[at]) for at, (stream, _) in enumerate(parts)}
