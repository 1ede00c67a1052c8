"""Hops cost, and where sites fill up or sources swing the fluid tells what the twin would say."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.plan.plan_builders import deployment, op, query, source
from tests.plan.worlds import world
from weft.bodies.twin import run
from weft.lab.schemes import SCHEMES
from weft.lab.schemes import deployment as drawn
from weft.model import Control, Deployment, Link, OnOff, Place, Placement, Poisson, Queue, Site
from weft.plan import HOP_MS, after_steps, counting_hops, place
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.judging.projection import latency_objective, utilisation
from weft.plan.policies.greedy import greedy_homes
from weft.plan.policies.refine import refine
from weft.plan.search.brute_force import score
from weft.plan.search.fluid import flow, fluid_ms, tides
from weft.plan.search.packed import pack
from weft.plan.search.problem import problem


def test_a_hop_counts_in_the_objective_as_the_projection_has_it() -> None:
    seen = 0
    for seed in range(20):
        whole = world(seed, operators=4, objective="latency", tangled=seed % 2 == 0, place={"hop_ms": 40.0})
        given = problem(whole)
        homes = np.array([Random(seed).randrange(len(given.sites)) for _ in given.operators], np.int64)
        placement = given.placement(homes, "")
        busy = utilisation(whole, placement, ideal_rates(whole))
        if all(busy[site.name] < min(0.99, site.quota) for site in whole.sites):
            seen += 1
            assert score(given.flat, homes.tolist()) == pytest.approx(latency_objective(whole, placement), rel=1e-9)
    assert seen > 2


def test_operators_stay_together_unless_leaving_is_worth_a_hop() -> None:
    # A second of work beside 0.1 ms: only the fast site's service tells the two apart.
    asked = query(op("a", "s", cost_ms=0.1), op("b", "a", cost_ms=0.1))
    sites = [Site("x"), Site("y", capacity=4.0)]
    whole = deployment(sites, [source("s", "x", 10.0)], asked, links=(Link("x", "y", 0.01),),
                       control=Control(Place("refine")))  # fmt: skip
    assert place(whole).home("q.a") == "y"
    assert place(counting_hops(whole)).home("q.a") == "x"
    assert counting_hops(whole).control.place.hop_ms == HOP_MS
    said = Deployment(whole.sites, whole.sources, whole.queries, whole.links, Control(Place("refine", hop_ms=0.0)))
    assert place(counting_hops(said)).home("q.a") == "y"


def the_fluid(whole: Deployment, placement: Placement) -> tuple[float, float]:
    """Latency and records a second out."""
    given = problem(whole, "latency")
    i, f, _ = pack(given.flat)
    homes = given.homes(placement)
    scratch = tides(given)
    found = fluid_ms(i, f, flow(given), np.concatenate([homes, given.flat.home[len(homes) :]]), scratch)
    return found, float(scratch.got.sum())


def test_without_overload_the_fluid_adds_up_delays_and_service() -> None:
    asked = query(op("a", "s", cost_ms=2.0), op("b", "a", cost_ms=3.0), to="y")
    whole = deployment(["x", "y"], [source("s", "x", 1.0)], asked)
    found, _ = the_fluid(whole, Placement({"q.a": "x", "q.b": "y"}))
    assert found == pytest.approx(10.0 + 5.0, rel=0.01)


def test_full_queues_lose_what_the_twin_loses() -> None:
    asked = query(*(op(f"o{at}", f"o{at - 1}" if at else "s", cost_ms=6.0, queue=Queue(20)) for at in range(3)))
    whole = deployment(["x", "y"], [source("s", "x", arrivals=Poisson(100.0))], asked)
    placement = Placement({"q.o0": "x", "q.o1": "x", "q.o2": "y"})
    _, out = the_fluid(whole, placement)
    twin = run(whole, placement, seconds=60, seed=1, warmup_s=16).queries["q"]
    assert out / 56 == pytest.approx(twin["records_out"] / 44, rel=0.15)


def test_sources_that_swing_are_mixed_on_sites() -> None:
    # Two steady and two swinging chains; a site with both swinging ones would be full half of the time.
    swinging = [source(name, "x", arrivals=OnOff(50.0, ratio=9.0)) for name in ("u", "v")]
    steady = [source(name, "x", 50.0) for name in ("s", "t")]
    chains = [
        query(*(op(f"o{at}", f"o{at - 1}" if at else name, cost_ms=2.0) for at in range(4)), name=f"q{name}")
        for name in ("u", "v", "s", "t")
    ]
    whole = deployment(["x", "y"], [*swinging, *steady], *chains, links=(Link("x", "y", 0.1),))
    found = refine(whole, None, Random(1), after_steps(20_000))
    load = {site: sum(1 for stream, home in found.homes.items() if stream[:2] in ("qu", "qv") and home == site)
            for site in ("x", "y")}  # fmt: skip
    assert load["x"] == load["y"] == 4


@pytest.mark.parametrize("name", ["scheme-2", "scheme-5"])
def test_where_sites_are_full_refine_is_well_below_greedy_in_the_twin(name: str) -> None:
    whole, _ = drawn(SCHEMES[name], 2)
    given = problem(whole, "potential")
    rival = given.placement(greedy_homes(given, as_printed=True), "")
    found = refine(whole, None, Random(2), after_steps(100_000))

    def latency(placement: Placement) -> float:
        result = run(whole, placement, seconds=60, seed=2, warmup_s=20, latency="contributing").queries.values()
        return float(sum(one["latency_ms"]["mean"] * one["records_out"] for one in result)
                     / sum(one["records_out"] for one in result))  # fmt: skip

    assert latency(found) < 0.7 * latency(rival)
