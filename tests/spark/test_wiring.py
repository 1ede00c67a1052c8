"""What a fragment's plan must not let Spark conclude."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.model import Column, Deployment, Operator, Query, Sink, Site, Source, Watermark
from weft.plan import place
from weft.plan.fragments import cut
from weft.spark.analysis import analyse
from weft.spark.folders import Folders
from weft.spark.gate import Gate
from weft.spark.wiring import Plans, Wiring
from weft.spec import is_stateful, passes_through

COLUMNS = (Column("ts", "TIMESTAMP"), Column("k", "STRING"), Column("v", "BIGINT"))


def joined(folder: Path) -> Deployment:
    """Two files joined within a minute."""
    sources = tuple(Source(name, "a", "csv", COLUMNS, f"{name}.csv", event_time="ts") for name in ("left", "right"))
    within = "r.ts BETWEEN l.ts AND l.ts + INTERVAL 1 MINUTE"
    sql = f"SELECT l.k, l.v, r.v rv FROM left l JOIN right r ON l.k = r.k AND {within}"
    pairs = Operator("pairs", ("left", "right"), sql=sql, watermarks=(Watermark("10 seconds"),))
    query = Query("q", (pairs,), (Sink("pairs", "parquet", "out"),))
    return Deployment((Site("a"),), sources, (query,), folder=str(folder))


@pytest.mark.spark
def test_columns_of_ghosts_are_read_not_known_to_be_null(spark: Any, tmp_path: Path) -> None:
    deployment = joined(tmp_path)
    for source in deployment.sources:
        (tmp_path / f"{source.name}.csv").write_text("2024-01-01T00:00:00Z,k,1\n")
    plans = Plans(deployment, Folders(tmp_path / ".weft"), analyse(spark, deployment).schemas)

    def stateful(query: Query, operator: Operator) -> bool:
        return is_stateful(operator)

    (fragment,) = cut(deployment, place(deployment), stateful, passes_through)
    trunk = Wiring(spark, plans, fragment, 1, Gate(tmp_path / "gate.json")).trunk()
    plan = trunk._jdf.queryExecution().analyzed().toString()
    # A key that is null for sure lets Spark drop every record of the other side in a batch that only ghosts make.
    assert "EventTimeWatermark" in plan
    assert "null AS" not in plan
    assert "cast(null as" not in plan
