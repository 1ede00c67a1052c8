"""Of placements that the projection cannot tell apart: the least traffic, then the fewest sites, promises first."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.plan.plan_builders import deployment, op, query, source, windowed
from tests.plan.worlds import world
from weft.model import Deployment, Link, Placement, Promise, Site
from weft.plan import after_steps, counting_hops
from weft.plan.judging.accuracy import FLOOR_MS, RELATIVE, told_apart
from weft.plan.judging.projection import project
from weft.plan.policies.refine import refine, refined
from weft.plan.search.as_fast import AsFast, _of_all, _step_by_step
from weft.plan.search.needs_fluid import overloaded
from weft.plan.search.problem import problem
from weft.plan.search.sending import Latencies


def live(whole: Deployment, **more: object) -> Placement:
    return refine(counting_hops(whole), None, Random(0), after_steps(20_000), **more)  # type: ignore[arg-type]


def test_what_differs_by_less_than_the_floor_or_the_error_is_not_told_apart() -> None:
    assert not told_apart(1.0, 1.0 + FLOOR_MS)
    assert told_apart(1.0, 1.1 + FLOOR_MS)
    assert not told_apart(1000.0, 1000.0 * (1 + RELATIVE))
    assert told_apart(1000.0, 1000.0 * (1 + RELATIVE) + 1)
    assert told_apart(700.0, 400.0)


def test_raw_records_do_not_leave_a_gateway_to_save_a_fraction_of_a_millisecond() -> None:
    over = op("over", "hourly", cost_ms=0.1, site="office")
    whole = deployment(
        ["gateway", Site("office", capacity=4.0)], [source("s", "gateway", 100.0)],
        query(windowed("hourly", "s", cost_ms=0.1, selectivity=0.1), over),
    )  # fmt: skip
    found = live(whole)
    assert found.home("q.hourly") == "gateway"
    assert found.reasons["q.hourly"].startswith("beside its input s; as fast on office, where ")
    assert found.reasons["q.hourly"].endswith(" kbps more would travel")


@pytest.mark.parametrize("rate_per_s", [500.0, None])
def test_a_filter_stays_where_its_records_are_also_when_their_rate_is_not_known(rate_per_s: float | None) -> None:
    told = op("told", "few", cost_ms=0.1, site="cloud")
    whole = deployment(
        ["graz", Site("cloud", capacity=4.0)], [source("s", "graz", rate_per_s)],
        query(op("few", "s", cost_ms=0.1, selectivity=0.03), told),
    )  # fmt: skip
    assert live(whole).home("q.few") == "graz"


def factories(**more: object) -> Deployment:
    """Three factories around a cloud; a window over the records of all of them."""
    sites = ["graz", Site("lyon", capacity=1.5), "porto", Site("cloud", capacity=4.0)]
    links = tuple(Link(name, "cloud", 10.0) for name in ("graz", "lyon", "porto"))
    streams = [source("g", "graz", 500.0), source("l", "lyon", 600.0), source("p", "porto", 400.0)]
    union = op("all", "g", "l", "p", cost_ms=0.1, sql=" UNION ALL ".join(f"SELECT * FROM {one}" for one in "glp"))
    minute = windowed("minute", "all", cost_ms=0.1, selectivity=0.02)
    return deployment(sites, streams, query(union, minute, **more), links=links)


def test_records_do_not_go_through_the_cloud_to_another_factory() -> None:
    found = live(factories())
    assert (found.home("q.all"), found.home("q.minute")) == ("cloud", "cloud")
    assert found.reasons["q.all"].startswith("least traffic; as fast on lyon, where ")


def test_a_reason_names_the_next_best_site_and_not_the_worst() -> None:
    found = live(factories(to="cloud"))
    assert found.reasons["q.all"].startswith("least latency; on lyon it would be 2")


def test_a_window_has_its_result_when_the_slowest_input_has_come() -> None:
    given = problem(counting_hops(factories()))
    homes = given.homes(Placement({"q.all": "lyon", "q.minute": "lyon"}))
    assert Latencies(given)(homes)[0] == pytest.approx(250.0 + 20.0, rel=0.01)


def test_promises_bind_before_traffic() -> None:
    def filter_at(promise_ms: float | None) -> str:
        few = op("few", "s", cost_ms=20.0, selectivity=0.03)
        told = op("told", "few", cost_ms=0.1, site="cloud")
        asked = query(few, told, promise=Promise(latency_ms=promise_ms))
        return live(deployment(["graz", Site("cloud", capacity=4.0)], [source("s", "graz", 10.0)], asked)).home("q.few")

    assert filter_at(None) == "graz"
    assert filter_at(270.0) == "cloud"


def test_of_placements_that_send_as_much_the_fewest_sites() -> None:
    found = live(deployment(["x", "y", "z"], [source("s", "x", 10.0)], query(op("a", "s"), op("b", "a"), to="z")))
    assert {found.home("q.a"), found.home("q.b")} <= {"x", "z"}


def test_a_price_for_moves_is_not_paid_for_a_tie() -> None:
    whole = counting_hops(deployment(
        ["graz", Site("cloud", capacity=4.0)], [source("s", "graz", 100.0)],
        query(op("few", "s", cost_ms=0.1, selectivity=0.03), op("told", "few", cost_ms=0.1, site="cloud")),
    ))  # fmt: skip
    running = Placement({"q.few": "cloud", "q.told": "cloud"})
    assert refine(whole, running, Random(0), after_steps(1000), price=20.0).home("q.few") == "cloud"
    assert refine(whole, running, Random(0), after_steps(1000)).home("q.few") == "graz"


@pytest.mark.parametrize("seed", range(12))
def test_drawn_worlds_send_no_more_and_are_as_fast_and_keep_their_promises(seed: int) -> None:
    whole = counting_hops(world(seed, operators=9, objective="latency", promised=True, sinks=True, moving=False))
    given = problem(whole)
    fast = given.placement(refined(given, None, Random(seed), after_steps(20_000)), "fast")
    if overloaded(given, given.homes(fast)):
        return
    lean = refine(whole, None, Random(seed), after_steps(20_000))
    judge = AsFast(given, given.homes(fast))
    before, after = (judge.sending.whole(given.homes(one).tolist()) for one in (fast, lean))
    assert after <= before * (1 + 1e-9)
    assert judge.holds(given.homes(lean))
    kept = [name for name, one in project(whole, fast, hop_ms=250.0).items() if one.admitted]
    assert all(project(whole, lean, hop_ms=250.0)[name].admitted for name in kept)


@pytest.mark.parametrize("seed", range(12))
def test_going_step_by_step_is_not_far_from_looking_at_all(seed: int) -> None:
    given = problem(counting_hops(world(seed, operators=5, sites=3, objective="latency", moving=False)))
    fastest = refined(given, None, Random(seed), after_steps(20_000))
    judge, free = AsFast(given, fastest), np.full(len(fastest), -1, np.int64)
    least = judge.sending.whole(_of_all(judge, free).tolist())
    found = judge.sending.whole(_step_by_step(judge, free).tolist())
    assert least <= found * (1 + 1e-9)
    assert found <= 1.25 * least + 1e-9


def test_the_lab_without_hops_is_judged_by_latency_alone() -> None:
    whole = deployment(
        ["gateway", Site("office", capacity=4.0)], [source("s", "gateway", 100.0)],
        query(op("hourly", "s", cost_ms=0.1, selectivity=0.1), op("over", "hourly", cost_ms=0.1, site="office")),
    )  # fmt: skip
    place = replace(whole.control.place, hop_ms=0.0)
    whole = replace(whole, control=replace(whole.control, place=place))
    assert refine(whole, None, Random(0), after_steps(1000)).home("q.hourly") == "office"
