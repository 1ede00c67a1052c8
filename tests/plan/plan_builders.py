"""Small deployments to plan: sites in a row or a tree, sources with a rate, operators that name what they read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from weft.model import (
    Column,
    Constant,
    Cost,
    Deployment,
    Link,
    Operator,
    Placement,
    Query,
    Sink,
    Site,
    Source,
    Watermark,
)

SCHEMA = (Column("ts", "TIMESTAMP"), Column("k", "STRING"), Column("v", "DOUBLE"))


def source(name: str, site: str, rate_per_s: float | None = 100.0, **more: Any) -> Source:
    arrivals = more.pop("arrivals", Constant(rate_per_s) if rate_per_s is not None else None)
    return Source(name, site, "rate", SCHEMA, arrivals=arrivals, event_time="ts", **more)


def op(name: str, *inputs: str, cost_ms: float | None = 1.0, **more: Any) -> Operator:
    sql = more.pop("sql", f"SELECT * FROM {inputs[0]}")
    more.setdefault("selectivity", 1.0)
    return Operator(name, inputs, sql=sql, cost_ms=None if cost_ms is None else Cost("constant", (cost_ms,)), **more)


def windowed(name: str, upstream: str, **more: Any) -> Operator:
    sql = f"SELECT window(ts, '1 minute') w, k, sum(v) v FROM {upstream} GROUP BY 1, 2"
    return op(name, upstream, sql=sql, watermarks=(Watermark("10 seconds"),), **more)


def query(*operators: Operator, name: str = "q", to: str | None = None, **more: Any) -> Query:
    end = more.pop("sinks", (Sink(operators[-1].name, "parquet", f"out/{name}", site=to),))
    return Query(name, operators, end, **more)


def deployment(sites: Any, sources: Any, *queries: Query, **more: Any) -> Deployment:
    """Sites as names or values, joined in a row by links of 10 ms unless links are given."""
    places = tuple(Site(site) if isinstance(site, str) else site for site in sites)
    row = tuple(Link(a.name, b.name, 10.0) for a, b in pairwise(places))
    return Deployment(places, tuple(sources), queries, links=more.pop("links", row), **more)


def placed(**homes: str) -> Placement:
    """Operators of query `q` on their sites."""
    return Placement({f"q.{name}": site for name, site in homes.items()})
