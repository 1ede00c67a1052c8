"""Replicas: together on few sites, never two of one operator on one, and how likely the query then is up."""

from __future__ import annotations

import dataclasses
import itertools
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, query, source
from weft.lab.s_lab6 import enumerated
from weft.lab.s_lab6 import network as lab_network
from weft.model import Deployment, Link, Placement, Site
from weft.plan import PLANNERS, NoPlacement, after_steps
from weft.plan.judging.availability import availability, availability_of, availability_when
from weft.plan.policies.replicas import REPLICA_PLANNERS, with_backups

SITES = [f"s{at:02}" for at in range(20)]


def network(operators: int = 9, cost_ms: float = 1.0, seed: int = 0) -> Deployment:
    rng = Random(seed)
    links = tuple(Link(one, two, rng.uniform(5, 100)) for one, two in itertools.combinations(SITES, 2))
    asked = query(*(op(f"o{at}", f"o{at - 1}" if at else "s", cost_ms=cost_ms) for at in range(operators)))
    return deployment(SITES, [source("s", rng.choice(SITES))], asked, links=links)


@pytest.mark.parametrize("policy", sorted(REPLICA_PLANNERS))
@settings(max_examples=15, deadline=None)
@given(degree=st.integers(1, 4), cost_ms=st.floats(0.1, 6.0), seed=st.integers(0, 99))
def test_no_two_replicas_of_one_operator_share_a_site(policy: str, degree: int, cost_ms: float, seed: int) -> None:
    found = REPLICA_PLANNERS[policy](network(cost_ms=cost_ms, seed=seed), degree, Random(seed))
    for sites in map(found.sites_of, found.homes):
        assert len(set(sites)) == len(sites) == degree


def test_replicas_gather_on_as_few_sites_as_load_allows() -> None:
    # 100 records/s of 1 ms: nine operators fill 0.9 of one site; of 4 ms two fit each.
    light = REPLICA_PLANNERS["collocated"](network(cost_ms=1.0), 2, Random(0))
    assert len({site for sites in map(light.sites_of, light.homes) for site in sites}) == 2
    heavy = REPLICA_PLANNERS["collocated"](network(cost_ms=4.0), 2, Random(0))
    assert len({site for sites in map(heavy.sites_of, heavy.homes) for site in sites}) == 5


@pytest.mark.parametrize("seed", range(3))
def test_a_command_reaches_what_the_lab_measures(seed: int) -> None:
    whole = lab_network(20, 9, seed)
    placed = PLANNERS["collocated"](whole, None, Random(seed), after_steps(1))
    found = with_backups(whole, placed, 2)
    wanted = REPLICA_PLANNERS["collocated"](whole, 2, Random(seed))
    assert (found.homes, found.backups) == (wanted.homes, wanted.backups)


def test_an_operator_that_fits_nowhere_is_named() -> None:
    with pytest.raises(NoPlacement, match=r"q\.o0 fits nowhere"):
        REPLICA_PLANNERS["collocated"](network(cost_ms=20.0), 2, Random(0))
    with pytest.raises(NoPlacement, match="21 replicas need as many sites"):
        REPLICA_PLANNERS["optimal"](network(), 21, Random(0))


def test_availability_is_exact_for_few_sites_and_sampled_close_to_it() -> None:
    failing = dict.fromkeys("abcd", 0.1)
    assert availability([("a", "b"), ("a", "b")], failing, Random(0)) == pytest.approx(0.99)
    assert availability([("a", "b"), ("c", "d")], failing, Random(0)) == pytest.approx(0.99**2)
    assert availability([("a", "b"), ("b", "c")], failing, Random(0)) == pytest.approx(0.9 + 0.1 * 0.81)
    many = {f"x{at}": 0.1 for at in range(44)}
    pairs = [(f"x{at}", f"x{at + 22}") for at in range(22)]
    assert availability(pairs, many, Random(0)) == pytest.approx(0.99**22, abs=0.01)


def test_every_way_to_fail_is_counted_as_figure_4_2_does() -> None:
    """Synergy §4.3.1: two replicas each of 3, 5 and 10 operators on 2 to 2n of 30 sites, all ways for 5 to fail."""
    # By hand: all on one pair, both of which fail in C(28, 3) of C(30, 5) ways; on separate pairs, inclusion-exclusion.
    ways = math.comb(30, 5)
    apart = [1 - (n * math.comb(28, 3) - math.comb(n, 2) * math.comb(26, 1)) / ways for n in (3, 5, 10)]
    assert [enumerated(n, 2) for n in (3, 5, 10)] == pytest.approx([1 - math.comb(28, 3) / ways] * 3)
    assert [enumerated(n, 2 * n) for n in (3, 5, 10)] == pytest.approx(apart)
    for n in (3, 5, 10):
        by_sites = [enumerated(n, used) for used in range(2, 2 * n + 1, 2)]
        assert by_sites == sorted(by_sites, reverse=True)
    assert apart == sorted(apart, reverse=True)


def test_counting_ways_to_fail_is_looking_at_each_of_them() -> None:
    sites = [f"n{at}" for at in range(9)]
    replicas = [("n0", "n1"), ("n1", "n2"), ("n4", "n0")]
    each = [all(set(pair) - set(down) for pair in replicas) for down in itertools.combinations(sites, 3)]
    assert availability_when(replicas, sites, 3, Random(0)) == pytest.approx(sum(each) / len(each))


def test_backups_join_primaries_that_are_placed_already() -> None:
    whole = network(operators=3)
    homes = Placement({"q.o0": "s03", "q.o1": "s03", "q.o2": "s07"})
    found = with_backups(whole, homes, 2)
    assert list(found.homes.values()) == ["s03", "s03", "s07"]
    assert found.sites_of("q.o2") == ("s07", "s03")
    assert found.sites_of("q.o0") == ("s03", "s07")
    failing = tuple(dataclasses.replace(site, failure_probability=0.1) for site in whole.sites)
    shaky = dataclasses.replace(whole, sites=failing)
    # The source's site has no backup; primaries and backups share two sites.
    expected = 0.9 * 0.99 if shaky.sources[0].site not in ("s03", "s07") else 0.9
    assert availability_of(shaky, shaky.queries[0], found, Random(0)) == pytest.approx(expected)


def test_two_collocated_replicas_come_near_the_optimum_where_others_need_three() -> None:
    def mean(policy: str, degree: int) -> float:
        total = 0.0
        for seed in range(12):
            found = REPLICA_PLANNERS[policy](network(cost_ms=1.2, seed=seed), degree, Random(seed))
            total += availability_when([found.sites_of(stream) for stream in found.homes], SITES, 3, Random(seed))
        return total / 12

    best, ours = mean("optimal", 2), mean("collocated", 2)
    assert ours >= 0.98 * best
    assert mean("random", 2) < 0.95 * best
    assert mean("partition", 2) < 0.98 * best
    assert mean("random", 3) > mean("random", 2)


def test_replicas_keep_links_to_spare() -> None:
    links = (Link("x", "y", 1, bandwidth_kbps=90), Link("x", "z", 50))
    # 100 records/s of 100 bytes: 80 kbps, so y takes one backup's stream and z the other.
    asked = query(op("a", "s"), op("b", "a"))
    whole = deployment([Site("x"), Site("y"), Site("z")], [source("s", "x")], asked, links=links)
    found = REPLICA_PLANNERS["latency"](whole, 2, Random(0))
    assert found.as_json() == {"q": {"a": ["x", "y"], "b": ["x", "z"]}}
