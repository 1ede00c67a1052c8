"""Least-delay paths over links, and the tree rule."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Link, Site
from weft.plan.network.paths import Paths


def paths(sites: list[str | Site], *links: Link) -> Paths:
    first = sites[0] if isinstance(sites[0], str) else sites[0].name
    return Paths(deployment(sites, [source("s", first)], query(op("a", "s")), links=links))


def test_the_least_delay_wins_over_fewer_links() -> None:
    found = paths(["a", "b", "c"], Link("a", "c", 50), Link("a", "b", 10), Link("b", "c", 10)).between("a", "c")
    assert found is not None
    assert (found.sites, found.delay_ms) == (("a", "b", "c"), 20)


def test_of_equal_delays_the_way_over_fewer_links_wins() -> None:
    found = paths(["a", "b", "c"], Link("a", "b"), Link("b", "c"), Link("a", "c")).between("a", "c")
    assert found is not None
    assert found.sites == ("a", "c")


def test_a_path_is_as_wide_as_its_narrowest_link() -> None:
    wide = Link("a", "b", 1, bandwidth_kbps=500)
    narrow = Link("b", "c", 1, bandwidth_kbps=100, emulate=True)
    found = paths(["a", "b", "c", "d"], wide, narrow, Link("c", "d", 1)).between("a", "d")
    assert found is not None
    assert (found.bandwidth_kbps, found.emulate) == (100, True)


def test_a_oneway_link_leads_one_way() -> None:
    found = paths(["a", "b"], Link("a", "b", 5, oneway=True))
    assert found.why_not("a", "b") is None
    assert found.between("b", "a") is None
    assert found.why_not("b", "a") == "no path of links leads from b to a"


def test_a_site_reaches_itself_without_links() -> None:
    found = paths(["a"]).between("a", "a")
    assert found is not None
    assert (found.sites, found.delay_ms) == (("a",), 0.0)


TREE: list[str | Site] = [
    Site("gw-1", parent="north"), Site("gw-2", parent="north"), Site("gw-3", parent="south"),
    Site("north", parent="root"), Site("south", parent="root"), Site("root"), Site("cloud"), Site("lab"),
]  # fmt: skip
ALL_LINKED = [Link(a.name, b.name, 1) for a, b in itertools.combinations([s for s in TREE if isinstance(s, Site)], 2)]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("gw-1", "gw-1"), ("gw-1", "north"), ("gw-1", "root"), ("north", "root"), ("root", "cloud"), ("cloud", "lab"),
        ("cloud", "root"), ("gw-1", "cloud"),
    ],
)  # fmt: skip
def test_streams_flow_up_the_tree_and_freely_outside_it(start: str, end: str) -> None:
    assert paths(TREE, *ALL_LINKED).why_not(start, end) is None


@pytest.mark.parametrize(
    ("start", "end"),
    [("gw-1", "gw-2"), ("gw-1", "south"), ("north", "gw-1"), ("root", "north"), ("north", "south"), ("cloud", "gw-1")],
)
def test_streams_flow_neither_down_nor_sideways_in_the_tree(start: str, end: str) -> None:
    assert "tree rule" in (paths(TREE, *ALL_LINKED).why_not(start, end) or "")


def test_the_tree_rule_is_transitive_so_that_relays_open_no_way() -> None:
    rule = paths(TREE, *ALL_LINKED).tree_allows
    names = [site.name for site in TREE if isinstance(site, Site)]
    for a, b, c in itertools.product(names, repeat=3):
        assert rule(a, c) or not (rule(a, b) and rule(b, c))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9), st.booleans()), max_size=12))
def test_paths_are_as_short_as_trying_all_says(drawn: list[tuple[int, int, int, bool]]) -> None:
    links = [Link(f"s{a}", f"s{b}", d, oneway=o) for a, b, d, o in drawn if a != b]
    found = paths([f"s{at}" for at in range(6)], *links)
    least = {(f"s{a}", f"s{a}"): 0.0 for a in range(6)}
    for link in links:
        for way in [(link.from_, link.to)] + ([] if link.oneway else [(link.to, link.from_)]):
            least[way] = min(least.get(way, 1e9), link.delay_ms)
    names = [f"s{at}" for at in range(6)]
    for k, a, b in itertools.product(names, repeat=3):  # Floyd and Warshall
        through = least.get((a, k), 1e9) + least.get((k, b), 1e9)
        least[a, b] = min(least.get((a, b), 1e9), through)
    for a, b in itertools.product(names, repeat=2):
        path = found.between(a, b)
        assert (1e9 if path is None else path.delay_ms) == least[a, b]
        if path is not None:
            assert sum(found.link(*way).delay_ms for way in itertools.pairwise(path.sites)) == path.delay_ms
