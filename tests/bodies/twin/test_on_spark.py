"""The twin as Spark would run it: fragments that share a machine, and the same as the plan in the steady state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.plan_builders import deployment, op, placed, query, source, windowed
from weft.bodies import twin
from weft.model import CrashAt, MoveAt, Placement, RestartAt, Sink
from weft.plan.judging.batch_costs import SHIPPED
from weft.plan.judging.batch_projection import project_on_spark

COSTS = replace(SHIPPED, spread=0.1)


def chained() -> twin.Result:
    whole = deployment(["x", "y"], [source("s", "x")], query(op("a", "s"), windowed("w", "a"), op("b", "w")))
    return twin.run(whole, placed(a="x", w="y", b="y"), 200, seed=3, warmup_s=60, costs=COSTS)


def test_the_same_seed_gives_the_same_result() -> None:
    one, other = chained().as_json(), chained().as_json()
    assert {**one, "wall_s": 0} == {**other, "wall_s": 0}


@pytest.mark.parametrize(
    "sites", [("x", "x"), ("x", "y"), ("y", "y")], ids=["one fragment", "a hop", "a relay of the source"]
)
@pytest.mark.parametrize("window", [False, True])
def test_the_twin_agrees_with_the_plan(sites: tuple[str, str], window: bool) -> None:
    last = windowed("b", "a", cost_ms=0.1) if window else op("b", "a", cost_ms=0.1)
    whole = deployment(["x", "y"], [source("s", "x")], query(op("a", "s", cost_ms=0.1), last))
    placement = placed(a=sites[0], b=sites[1])
    said = project_on_spark(whole, placement, COSTS)["q"]
    seen = twin.run(whole, placement, 300, warmup_s=60, costs=COSTS).queries["q"]["latency_ms"]
    assert seen["p50"] == pytest.approx(said.p50_ms, rel=0.15)
    assert seen["p95"] == pytest.approx(said.p95_ms, rel=0.2)


def test_a_sink_at_another_site_costs_a_fragment() -> None:
    def p50(site: str) -> float:
        asked = query(op("a", "s", cost_ms=0.1), sinks=(Sink("a", "parquet", "out/a", site=site),))
        whole = deployment(["x", "y"], [source("s", "x")], asked)
        found = twin.run(whole, placed(a="x"), 100, warmup_s=30, costs=COSTS).queries
        assert list(found) == ["q"]
        return float(found["q"]["latency_ms"]["p50"])

    assert p50("y") > p50("x") + COSTS.stateless_ms


def test_the_first_batches_are_slow() -> None:
    whole = deployment(["x"], [source("s", "x")], query(op("a", "s", cost_ms=0.1)))
    from_start = twin.run(whole, placed(a="x"), 30, costs=COSTS).queries["q"]["latency_ms"]
    later = twin.run(whole, placed(a="x"), 60, warmup_s=30, costs=COSTS).queries["q"]["latency_ms"]
    assert from_start["max"] > COSTS.first_ms * COSTS.cooling, "the very first, without records, was over before"
    assert from_start["max"] < COSTS.first_ms
    told = twin.run(whole, placed(a="x"), 30, costs=COSTS).queries["q"]["after_start_ms"]
    assert told["p95"] == pytest.approx(later["p95"], rel=0.1)
    assert told["max"] < COSTS.first_ms
    assert later["max"] < COSTS.first_ms


def test_what_stays_where_a_window_left_is_a_fragment_without_state() -> None:
    whole = deployment(["x", "y"], [source("s", "x")], query(op("a", "s"), windowed("w", "a")))

    def p50(*happens: MoveAt, w: str) -> float:
        found = twin.run(replace(whole, scenario=happens), placed(a="x", w=w), 300, warmup_s=60, costs=COSTS)
        return float(found.queries["q"]["latency_ms"]["p50"])

    moved, placed_so = p50(MoveAt(20, "q.w", "y"), w="x"), p50(w="y")
    assert moved == pytest.approx(placed_so, rel=0.1)
    assert p50(MoveAt(20, "q.w", "x"), w="y") == pytest.approx(p50(w="x"), rel=0.1)


def test_moves_crashes_and_sites_are_told_of_sites() -> None:
    scenario = (MoveAt(20, "q.b", "x"), CrashAt(40, "y"), RestartAt(50, "y"))
    whole = deployment(["x", "y"], [source("s", "x"), source("t", "y")], query(op("a", "s"), op("b", "a", "t")))
    whole = replace(whole, scenario=scenario)
    found = twin.run(whole, Placement({"q.a": "x", "q.b": "y"}), 80, costs=COSTS)
    assert [(move.from_, move.to) for move in found.moves] == [("y", "x")]
    (change,) = found.changes
    assert (change["by"], change["wish"], change["state"]) == ("scenario", {"move": {"q.b": "x"}}, "done")
    assert list(found.sites) == ["x", "y"]
    assert all(0 <= one["utilisation"] <= 1 for one in found.sites.values())
    assert {row["site"] for row in found.utilisation_rows} == {"x", "y"}, "the picture is of sites, too"
    for name, one in found.sites.items():
        shares = [row["utilisation"] for row in found.utilisation_rows if row["site"] == name]
        assert sum(shares) / len(shares) == pytest.approx(one["utilisation"], abs=0.1)
    assert found.placement == {"q": {"a": ["x"], "b": ["y"]}}
    assert {row["site"] for row in found.operator_rows} == {"x"}
    # Two sources of 100 a second, and what waited for the site that was down is not lost.
    assert found.queries["q"]["records_out"] > 0.85 * 80 * 200
