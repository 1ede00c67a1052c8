"""Small deployments to try the twin on."""

from __future__ import annotations

from weft.model import Arrivals, Cost, Deployment, Link, Operator, Placement, Query, Queue, Sink, Site, Source


def source(name: str, site: str, arrivals: Arrivals, record_bytes: float = 100.0) -> Source:
    """A source of nothing but records."""
    return Source(name, site, "rate", (), arrivals=arrivals, record_bytes=record_bytes)


def step(name: str, *inputs: str, cost: Cost | float = 0.0, selectivity: float = 1.0, **more: object) -> Operator:
    """An operator that only costs."""
    work = cost if isinstance(cost, Cost) else Cost("constant", (cost,))
    return Operator(name, inputs, sql="SELECT 1", cost_ms=work, selectivity=selectivity, **more)  # type: ignore[arg-type]


def station(arrivals: Arrivals, cost: Cost, queue: Queue | None = None, capacity: float = 1.0) -> Deployment:
    """One source, one operator, one sink on one site."""
    query = Query("q", (step("o", "s", cost=cost, queue=queue),), (Sink("o", "console"),))
    return Deployment((Site("a", capacity=capacity),), (source("s", "a", arrivals),), (query,))


def placed(deployment: Deployment, **homes: str) -> Placement:
    """Every operator at the site named by keyword (`query__operator="site"`)."""
    del deployment
    found = {}
    for key, site in homes.items():
        query, operator = key.split("__")
        found[f"{query}.{operator}"] = site
    return Placement(found)


def pair(delay_ms: float, bandwidth_kbps: float | None = None) -> tuple[tuple[Site, ...], tuple[Link, ...]]:
    """Two sites and the link between them."""
    return (Site("a"), Site("b")), (Link("a", "b", delay_ms, bandwidth_kbps),)
