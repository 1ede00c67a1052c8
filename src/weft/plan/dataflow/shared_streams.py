"""What is shared, by whom, and what does that save? For people and programs, in plan, twin and live alike."""

from __future__ import annotations

from typing import Any

from weft.model import Deployment, Placement, dataflow
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.sharing import as_written


def shared_streams(deployment: Deployment) -> list[dict[str, Any]]:
    """Each stream that is made once for several: who uses it, which operators it stands for, and ms of work it saves.

    `saves` is work per second, by the rates and costs of the file.
    """
    sharing = deployment.sharing
    if sharing is None or not sharing.stands:
        return []
    flow = dataflow(deployment)
    before, now = ideal_rates(as_written(deployment)).load_ms, ideal_rates(deployment).load_ms
    found = []
    for stream, queries in sharing.users().items():
        operators = [one for one, other in sharing.stands.items() if other == stream]
        if not flow.makes(stream):
            continue
        # One that was made of several is work that nobody wrote.
        saved = sum(before.get(one, 0.0) - now.get(one, 0.0) for one in operators)
        saved -= now[stream] if stream not in before else 0.0
        found.append({"stream": stream, "queries": list(queries), "operators": operators, "saves": round(saved, 3)})
    return found


def sites_of_written(deployment: Deployment, placement: Placement) -> dict[str, dict[str, list[str]]]:
    """`{query: {operator: [site]}}` of the queries as written: an operator that is made once is where that is."""
    none: dict[str, dict[str, list[str]]] = {query.name: {} for query in deployment.queries}
    out = none | placement.as_json()
    sharing = deployment.sharing
    for stream, other in sharing.stands.items() if sharing is not None else ():
        query, _, operator = stream.partition(".")
        if stream not in placement.homes and other in placement.homes:
            out.setdefault(query, {})[operator] = list(placement.sites_of(other))
    return out


def reasons_of_written(deployment: Deployment, placement: Placement) -> dict[str, dict[str, str]]:
    """Why each operator is where it is, `{query: {operator: why}}`; one that is made once is told with its stream."""
    out: dict[str, dict[str, str]] = {}
    for stream, reason in placement.reasons.items():
        query, _, operator = stream.partition(".")
        out.setdefault(query, {})[operator] = reason
    sharing = deployment.sharing
    for stream, other in sharing.stands.items() if sharing is not None else ():
        query, _, operator = stream.partition(".")
        if stream not in placement.homes:
            out.setdefault(query, {})[operator] = f"made once, as {other}"
    return out
