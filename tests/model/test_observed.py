"""What was measured, as one value: complete or with what is missing, and as a line of JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from weft.model import (
    Cost,
    Deployment,
    Observed,
    ObservedOperator,
    ObservedQuery,
    ObservedSite,
    ObservedSource,
    Operator,
    Quantiles,
    Query,
    Sink,
    Site,
    Source,
    observed_from_json,
    observed_of,
)


def world() -> Deployment:
    operator = Operator("o", ("s",), sql="SELECT 1")
    return Deployment(
        (Site("a"), Site("b")), (Source("s", "a", "rate", ()),), (Query("q", (operator,), (Sink("o", "console"),)),)
    )


def parts() -> dict[str, dict]:
    latency = Quantiles(2.0, 1.5, 4.0, 5.0, 6.0)
    return {
        "sources": {"s": ObservedSource(12.5)},
        "operators": {"q.o": ObservedOperator(12.5, 6.25, 0.2, 0.5, 3, 10.0)},
        "sites": {"a": ObservedSite(0.3), "b": ObservedSite(None, up=False)},
        "queries": {"q": ObservedQuery(125, 62, latency, True)},
    }


def made(deployment: Deployment | None = None, **changes: dict) -> Observed:
    return observed_of(deployment or world(), 20.0, 10.0, **{**parts(), **changes})


def test_it_is_the_same_after_a_trip_through_json() -> None:
    whole = made()
    assert whole.complete
    assert observed_from_json(whole.to_json()) == whole
    assert b"\n" not in whole.to_json()


def test_what_else_stands_in_a_line_is_passed_over_and_nonsense_is_refused() -> None:
    line = json.loads(made().to_json()) | {"clock": 1.0, "channels": {}}
    line["operators"]["q.o"]["records_in"] = 7
    assert observed_from_json(json.dumps(line)) == made()
    for bad in ("", "{}", "[]", '{"at_s": "x", "period_s": 1, "complete": true}'):
        with pytest.raises(ValueError, match=r"\w"):
            observed_from_json(bad)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"sources": {}}, "rate of source s"),
        ({"sources": {"s": ObservedSource()}}, "rate of source s"),
        ({"operators": {}}, "records of operator q.o"),
        ({"operators": {"q.o": ObservedOperator(1.0, None, 0.1)}}, "records of operator q.o"),
        ({"operators": {"q.o": ObservedOperator(1.0, 1.0)}}, "cost of operator q.o"),
        ({"sites": {"b": ObservedSite(0.1)}}, "utilisation of site a"),
        ({"queries": {}}, "records of query q"),
    ],
)
def test_what_was_not_measured_is_named(changes: dict, missing: str) -> None:
    found = made(**changes)
    assert (found.complete, found.missing) == (False, (missing,))


def test_a_cost_is_not_missing_where_it_is_declared_or_nothing_came() -> None:
    bare = {"q.o": ObservedOperator(1.0, 1.0)}
    (query,) = world().queries
    declared = replace(query, operators=(replace(query.operators[0], cost_ms=Cost("constant", (1.0,))),))
    assert made(replace(world(), queries=(declared,)), operators=bare).complete
    assert made(operators={"q.o": ObservedOperator(0.0, 0.0)}).complete
