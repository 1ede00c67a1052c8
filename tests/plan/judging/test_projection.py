"""What a placement would do to its queries, computed by hand here."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.plan.plan_builders import deployment, op, placed, query, source
from weft.model import Deployment, Link, Operator, Placement, Promise, Queue, Sink, Site
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.judging.availability import availability_of
from weft.plan.judging.projection import Projection, latency_total_ms, project, utilisation

NO_PROMISE = Promise()


def of_q(whole: Deployment, placement: Placement) -> Projection:
    return project(whole, placement)["q"]


def alone(cost_ms: float, promise: Promise = NO_PROMISE, **more: Any) -> Projection:
    site = Site("x", capacity=more.pop("capacity", 1.0), failure_probability=more.pop("failure", 0.0))
    asked = query(op("a", "s", cost_ms=cost_ms, **more), promise=promise)
    return of_q(deployment([site], [source("s", "x")], asked), placed(a="x"))


def test_a_record_stays_as_long_as_in_an_m_m_1_queue() -> None:
    # 100 records/s of 5 ms fill half of the site: 5 / (1 - 0.5).
    assert alone(5.0).latency_ms == pytest.approx(10.0)
    # Capacity 2 halves service and utilisation: 2.5 / (1 - 0.25).
    assert alone(5.0, capacity=2.0).latency_ms == pytest.approx(2.5 / 0.75)


def test_all_operators_of_a_site_slow_each_other_down() -> None:
    asked = query(op("a", "s", cost_ms=2.0), op("b", "a", cost_ms=3.0))
    whole = deployment(["x", "y"], [source("s", "x")], asked)
    assert of_q(whole, placed(a="x", b="x")).latency_ms == pytest.approx(2 / 0.5 + 3 / 0.5)
    assert of_q(whole, placed(a="x", b="y")).latency_ms == pytest.approx(2 / 0.8 + 10 + 3 / 0.7)


def test_other_queries_count_on_the_same_site() -> None:
    mine, other = query(op("a", "s", cost_ms=2.0)), query(op("b", "s", cost_ms=3.0), name="r")
    whole = deployment(["x"], [source("s", "x")], mine, other)
    placement = Placement({"q.a": "x", "r.b": "x"})
    assert utilisation(whole, placement, ideal_rates(whole)) == {"x": pytest.approx(0.5)}
    assert of_q(whole, placement).latency_ms == pytest.approx(4.0)


def test_the_slowest_way_from_a_source_to_a_sink_counts() -> None:
    asked = query(op("a", "s", cost_ms=0.0), op("j", "a", "t", cost_ms=0.0), to="y")
    links = (Link("x", "m", 10), Link("far", "m", 70), Link("m", "y", 5))
    whole = deployment(["x", "m", "far", "y"], [source("s", "x"), source("t", "far")], asked, links=links)
    assert of_q(whole, placed(a="x", j="m")).latency_ms == pytest.approx(75.0)


def test_the_mean_counts_every_input_and_every_sink_by_its_records() -> None:
    # 100 records/s of s and 300 of t meet in j; a quarter of j's 400 go on through k to the second sink.
    asked = query(
        op("j", "s", "t", cost_ms=0.0),
        op("k", "j", cost_ms=0.0, selectivity=0.25),
        sinks=(Sink("j", "parquet", "out/j"), Sink("k", "parquet", "out/k", site="y")),
    )
    links = (Link("x", "m", 10), Link("far", "m", 70), Link("m", "y", 5))
    streams = [source("s", "x", 100.0), source("t", "far", 300.0)]
    said = of_q(deployment(["x", "m", "far", "y"], streams, asked, links=links), placed(j="m", k="m"))
    assert said.latency_ms == pytest.approx(75.0)
    assert said.mean_ms == pytest.approx(0.25 * 10 + 0.75 * 70 + 0.2 * 5)


def test_what_is_silent_counts_alike() -> None:
    asked = query(op("j", "s", "t", cost_ms=0.0))
    streams = [source("s", "x", None), source("t", "y", None)]
    assert of_q(deployment(["x", "y"], streams, asked), placed(j="y")).mean_ms == pytest.approx(5.0)


def test_a_full_site_has_no_latency_and_says_so() -> None:
    said = alone(10.0, Promise(latency_ms=1e9))
    assert said == Projection(None, 1.0, False, "site x is overloaded")
    unpromised = alone(11.0)
    assert (unpromised.latency_ms, unpromised.admitted) == (None, True)
    assert unpromised.reason == "site x is overloaded, but no latency was promised"


def test_availability_is_that_of_all_sites_a_query_uses_each_once() -> None:
    sites = [Site(name, failure_probability=share) for name, share in zip("xyz", (0.1, 0.2, 0.5), strict=True)]
    asked = query(op("a", "s", cost_ms=0.1), op("b", "a", cost_ms=0.1), to="y")
    whole = deployment(sites, [source("s", "x")], asked)
    assert of_q(whole, placed(a="x", b="x")).availability == pytest.approx(0.9 * 0.8)


@pytest.mark.parametrize(
    ("promise", "admitted", "reason"),
    [
        (Promise(), True, "nothing was promised"),
        (Promise(latency_ms=10.0), True, "keeps its promised latency"),
        (Promise(latency_ms=9.9), False,
         "latency 10.0 ms is above the promised 9.9 ms by 0.1 ms, 10.0 ms of it at x; latency_ms: 10 could be kept"),
        (Promise(availability=0.9), True, "keeps its promised availability"),
        (Promise(availability=0.95), False,
         "availability 0.9 is below the promised 0.95 by 0.05, most often down is x; availability: 0.9 could be kept"),
        (Promise(latency_ms=20.0, loss=0.0), True, "keeps its promised latency and loss"),
        (Promise(latency_ms=1.0, availability=1.0), False,
         "latency 10.0 ms is above the promised 1 ms by 9.0 ms, 10.0 ms of it at x; latency_ms: 10 could be kept; "
         "availability 0.9 is below the promised 1 by 0.1, most often down is x; availability: 0.9 could be kept"),
    ],
)  # fmt: skip
def test_a_query_is_admitted_where_every_promise_holds(promise: Promise, admitted: bool, reason: str) -> None:
    said = alone(5.0, promise, failure=0.1)
    assert (said.admitted, said.reason) == (admitted, reason)


def test_a_queue_that_drops_on_a_full_site_breaks_a_promise_of_no_loss() -> None:
    said = alone(20.0, Promise(loss=0.1), queue=Queue(10, "drop"))
    assert not said.admitted
    assert said.reason == "full queues lose 50.0% of records, promised were at most 10.0%; loss: 0.5 could be kept"
    assert alone(20.0, Promise(loss=0.1), queue=Queue(10, "block")).admitted


def test_the_objective_weighs_queries_and_has_no_value_where_one_has_no_bound() -> None:
    def two(second: Operator) -> tuple[Deployment, Placement]:
        asked = query(op("a", "s", cost_ms=5.0), weight=3.0), query(second, name="r")
        whole = deployment(["x", "y"], [source("s", "x")], *asked)
        return whole, Placement({"q.a": "x", "r.b": "y"})

    whole, placement = two(op("b", "s", cost_ms=5.0))
    assert latency_total_ms(whole, project(whole, placement)) == pytest.approx(3 * 10 + 20)
    whole, placement = two(op("b", "s", cost_ms=50.0))
    assert latency_total_ms(whole, project(whole, placement)) is None


def two_queries(promise: Promise = NO_PROMISE) -> tuple[Deployment, Placement]:
    """`late` reads what `early` makes at another site; the sink of `early` stands elsewhere."""
    early = query(op("a", "s", cost_ms=2.0), op("b", "a", cost_ms=1.0), name="early", to="far")
    late = query(op("c", "early.a", cost_ms=3.0), name="late", promise=promise)
    sites = [Site(name, failure_probability=0.1) for name in ("x", "y", "far")]
    links = (Link("x", "y", 10), Link("x", "far", 1000))
    whole = deployment(sites, [source("s", "x")], late, early, links=links)
    return whole, Placement({"early.a": "x", "early.b": "far", "late.c": "y"})


def test_a_query_that_reads_another_counts_from_the_sources_and_not_to_the_others_sink() -> None:
    whole, placement = two_queries()
    found = project(whole, placement)["late"]
    assert found.latency_ms == found.mean_ms == pytest.approx(2 / 0.8 + 10 + 3 / 0.7)
    assert found.availability == pytest.approx(0.9**2)
    assert project(whole, placement)["early"].latency_ms == pytest.approx(2 / 0.8 + 1000 + 1 / 0.9)


def test_its_promise_is_held_against_the_whole_way() -> None:
    whole, placement = two_queries(Promise(latency_ms=15.0))
    found = project(whole, placement)["late"]
    assert not found.admitted
    assert found.reason.startswith("latency 16.8 ms is above the promised 15 ms by 1.8 ms, ")


def test_it_needs_the_replicas_of_operators_that_it_reads() -> None:
    whole, placement = two_queries()
    with_backup = replace(placement, backups={"early.a": ("far",)})
    # The source at x, and c at y; a may also run at far.
    assert availability_of(whole, whole.query("late"), placement, Random(0)) == pytest.approx(0.9**2)
    assert availability_of(whole, whole.query("late"), with_backup, Random(0)) == pytest.approx(0.9**2)
    moved = replace(with_backup, homes={**placement.homes, "early.a": "y"})
    assert availability_of(whole, whole.query("late"), moved, Random(0)) == pytest.approx(0.9**2)
    lone = replace(placement, homes={**placement.homes, "early.a": "far"})
    assert availability_of(whole, whole.query("late"), lone, Random(0)) == pytest.approx(0.9**3)


def test_a_refusal_names_the_promise_by_how_much_where_and_what_could_be_kept() -> None:
    slow = query(
        op("a", "s", cost_ms=2.0), op("b", "a", cost_ms=1.0, site="y"), promise=Promise(5.0, availability=0.99)
    )
    sites = (Site("x"), Site("y", failure_probability=0.02))
    given = deployment(sites, [source("s", "x", 10.0)], slow, links=(Link("x", "y", 40.0),))
    said = project(given, placed(a="x", b="y"))["q"]
    assert not said.admitted
    late, down = said.reason.split("kept; ")
    assert (
        late
        == "latency 43.1 ms is above the promised 5 ms by 38.1 ms, 40.0 ms of it from x to y; latency_ms: 44 could be "
    )
    assert down == (
        "availability 0.98 is below the promised 0.99 by 0.01, most often down is y; availability: 0.98 could be kept"
    )
    kept = Promise(44.0, availability=0.98)
    assert project(replace(given, queries=(replace(slow, promise=kept),)), placed(a="x", b="y"))["q"].admitted
