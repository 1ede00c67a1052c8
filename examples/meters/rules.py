"""What counts as suspicious? Python functions that the deployment file names in `call`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def over_threshold(meters: DataFrame, kwh: float) -> DataFrame:
    """The meters whose use over a window exceeds a threshold, and how many times that is."""
    return meters.filter(F.col("kwh") > kwh).withColumn("times", F.round(F.col("kwh") / kwh, 2))
