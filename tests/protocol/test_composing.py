"""Composing: what is shared, where new operators go, in which order attempts are made, and what a refusal says."""

from __future__ import annotations

from random import Random

import pytest

from weft.lab.composing_body import Body
from weft.plan.composing.graphs import assured, divided, merged, ranked, whole_slack, worth_keeping
from weft.plan.composing.impact import free_least, time_us
from weft.plan.composing.points import sharable, stages
from weft.plan.composing.values import Graph, Hop, Level, Origin, Piece, QueryPlan
from weft.protocol.composing import Admitted, Ask, Begin, ComposerLimits, Depart, Refused

ROOM = 1_000_000


class Flat:
    """All sites 1 ms apart, ways of 1 Mbps."""

    def delay_us(self, start: str, end: str) -> int:
        return 0 if start == end else 1_000

    def kbps(self, start: str, end: str) -> int:
        return 1_000


def chain(does: str, source: str, sink: str, load: int = 100_000, selectivity: int = 1_000) -> QueryPlan:
    pieces, before, stream = [], "s", f"s@{source}"
    for one in does.split():
        stream = f"{one}({stream})"
        pieces.append(Piece(one, one, stream, (before,), 1_000, load, 10, selectivity))
        before = one
    return QueryPlan((*pieces, Piece("out", "", "", (before,), site=sink)), (Origin("s", source, 10),))


def body(hosts: str, sites: str = "a b c", others: str = "", **limits: bool) -> Body:
    have = {one.partition(":")[0]: tuple(one.partition(":")[2].split(",")) for one in hosts.split()}
    return Body(dict.fromkeys(sites.split(), ROOM), Flat(), have, lambda site: tuple(others.split()),
                composer=ComposerLimits(**limits))  # fmt: skip


def answer(made: Body, name: str, plan: QueryPlan, *latencies_us: int, site: str = "a") -> Admitted | Refused:
    weights = range(len(latencies_us), 0, -1)
    levels = tuple(Level(one, weight) for one, weight in zip(latencies_us, weights, strict=True))
    made.ask(site, Ask(name, plan, levels), made.now_us)
    made.run()
    return made.words[name].answer


def homes(told: Admitted | Refused) -> str:
    assert isinstance(told, Admitted), told
    return " ".join(f"{hop.piece}@{hop.site}" for hop in told.graph.hops)


def test_a_full_site_has_no_time_and_a_bound_says_how_much_must_stay_free() -> None:
    assert time_us(1_000, 500_000, ROOM) == 2_000
    assert time_us(1_000, ROOM, ROOM) is None
    assert time_us(1_000, 2 * ROOM, ROOM) is None
    for bound_us in (1_001, 1_500, 7_777):
        free = free_least(1_000, bound_us)
        assert (time_us(1_000, ROOM - free, ROOM) or 0) <= bound_us
        assert (time_us(1_000, ROOM - free + 1, ROOM) or bound_us + 1) > bound_us


def test_shares_of_a_promise_keep_it_on_every_way_and_the_published_ones_do_not() -> None:
    hops = (Hop("o", "a", "s", 1_000, 0), Hop("p", "b", "o", 3_000, 500), Hop("q", "c", "o", 1_000, 500),
            Hop("out", "d", "p", 0, 500), Hop("out", "d", "q", 0, 500))  # fmt: skip
    graph = Graph(hops, 5_000)
    bounds = divided(graph, 7_000)
    assert all(bounds[hop.piece] >= hop.exec_us for hop in hops if hop.exec_us)
    assert max(assured(graph, bounds).values()) <= 7_000
    assert max(assured(graph, whole_slack(graph, 7_000)).values()) > 7_000


def test_ways_that_do_not_agree_where_streams_meet_are_no_graph() -> None:
    one = [Graph((Hop("o", "a", "s", 1, 0), Hop("j", site, "o", 1, 0)), 2) for site in "ab"]
    other = [Graph((Hop("p", "a", "t", 1, 0), Hop("j", "b", "p", 1, 0)), 2)]
    assert [[hop.site for hop in graph.hops if hop.piece == "j"] for graph in merged([one, other])] == [["b", "b"]]


def test_only_what_no_other_way_beats_is_kept_and_the_weightiest_level_is_chosen_then_the_least_phi() -> None:
    graphs = [Graph((), 10, 5), Graph((), 20, 3), Graph((), 30, 4), Graph((), 5, 9)]
    assert worth_keeping(graphs, frozenset(), 4) == [graphs[1], graphs[0], graphs[3]]
    levels = (Level(30, 1), Level(10, 5))
    assert [(level, graph.phi) for level, graph in ranked(graphs, levels)][:2] == [(levels[1], 5), (levels[1], 9)]


def test_the_maximum_sharable_points_are_those_nearest_to_the_results() -> None:
    plan = chain("o p q", "a", "b")
    streams = {piece.name: piece.stream for piece in plan.pieces}
    assert sharable(plan, {streams["o"], streams["p"]}) == ("p",)
    assert sharable(plan, {streams["q"], streams["o"]}) == ("q",)
    assert sharable(plan, set()) == ()


def test_new_operators_go_beside_what_they_read_or_who_reads_them_by_selectivity_then_elsewhere() -> None:
    less = Piece("o", "new", "x", ("s",), selectivity=1_000)
    more = Piece("o", "new", "x", ("s",), selectivity=1_001)
    further = [Piece("p", "p", "y", ("o",))]
    asked = [stages(one, further, {"p": ("c",)}, ("d",), "a", Flat(), 100, 2) for one in (less, more)]
    assert asked == [(("a",), ("c",), ("d",)), (("c",), ("a",), ("d",))]


def test_a_query_takes_the_freest_of_sites_that_have_its_operators() -> None:
    made = body("o:b,c p:b,c")
    assert homes(answer(made, "one", chain("o", "a", "a", load=400_000), 9_000)) == "o@b out@a"
    assert homes(answer(made, "two", chain("p", "a", "a", load=400_000), 9_000)) == "p@c out@a"


def test_the_same_again_leans_on_what_runs_and_takes_no_more_work() -> None:
    made = body("o:b p:b q:c")
    answer(made, "one", chain("o p", "a", "a"), 20_000)
    before = sum(keeper.load for keeper in made.keepers())
    told = answer(made, "two", chain("o p", "a", "c"), 20_000)
    assert (told.how, homes(told)) == ("shared", "p@b out@c")  # type: ignore[union-attr]
    assert sum(keeper.load for keeper in made.keepers()) == before
    longer = answer(made, "three", chain("o p q", "a", "c"), 30_000)
    assert homes(longer) == "p@b q@c out@c"


def test_where_what_is_shared_is_too_slow_it_is_probed_again_without_sharing() -> None:
    made = body("o:b,c")
    answer(made, "slow", chain("o", "a", "a"), 60_000)
    told = answer(made, "quick", chain("o", "a", "a"), 4_000)
    assert isinstance(told, Admitted)
    assert (told.how, told.promised_us) == ("alone", 4_000)


def test_where_no_operator_can_be_used_a_new_one_is_put_beside_and_then_a_whole_graph() -> None:
    made = body("o:b p:c")
    answer(made, "full", chain("o", "a", "b", load=900_000))
    assert homes(answer(made, "new", chain("o p", "a", "a"), 20_000)) == "o@a p@c out@a"
    apart = body("o:b", others="c", tells=False)
    for site in "ab":
        answer(apart, f"full {site}", chain("x", site, site, load=950_000))
    told = answer(apart, "whole", chain("o", "a", "a", load=100_000), 20_000)
    assert homes(told) == "o@c out@a"


def test_a_refusal_names_whose_promise_would_break_where_by_how_much_and_what_could_be_kept() -> None:
    made = body("o:b p:b", sites="b")
    answer(made, "first", chain("o", "b", "b"), 1_200, site="b")
    told = answer(made, "second", chain("p", "b", "b"), 9_000, site="b")
    assert isinstance(told, Refused)
    assert (told.broken.what, told.broken.site, told.broken.of) == ("promise", "b", "first")
    assert "p at b would break the promise of first" in told.reason
    assert "by 0.1 ms" in told.reason
    assert "no promise of latency could be kept now" in told.reason
    late = answer(body("o:b"), "third", chain("o", "a", "c"), 2_000)
    assert isinstance(late, Refused)
    assert (late.broken.what, late.broken.by, late.nearest_us) == ("latency", 112, 2_112)
    assert "above the 2.0 ms that it may take by 0.1 ms" in late.reason
    assert late.reason.endswith("latency_ms: 3 could be kept")


def test_the_nearest_promise_is_one_that_is_then_kept() -> None:
    made = body("o:b", deploys=False)
    told = answer(made, "strict", chain("o", "a", "c"), 2_000)
    assert isinstance(told, Refused)
    assert told.nearest_us == 1_112 + 1_000
    assert isinstance(answer(made, "again", chain("o", "a", "c"), told.nearest_us), Admitted)


def test_of_the_levels_a_query_would_take_the_weightiest_that_can_be_kept_is_promised() -> None:
    made = body("o:b", deploys=False)
    told = answer(made, "q", chain("o", "a", "c"), 2_000, 5_000, 50_000)
    assert isinstance(told, Admitted)
    assert told.promised_us == 5_000


def test_what_others_lean_on_stays_when_its_query_leaves_and_ends_with_the_last() -> None:
    made = body("o:b p:b")
    answer(made, "one", chain("o p", "a", "a"), 20_000)
    answer(made, "two", chain("o p", "a", "c"), 20_000, site="c")
    made.at(made.now_us, "a:", Depart("one"))
    made.run(made.now_us + 60_000_000)
    assert sum(keeper.load for keeper in made.keepers()) == 200_000
    made.at(made.now_us, "c:", Depart("two"))
    made.run(made.now_us + 60_000_000)
    assert [key for keeper in made.keepers() for key in keeper.rows] == []
    assert sum(keeper.load for keeper in made.keepers()) == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_requests_at_once_all_end_and_nothing_is_left_reserved(seed: int) -> None:
    rng = Random(seed)
    sites = [f"s{at:02}" for at in range(60)]
    hosts = {f"o{at}": tuple(rng.sample(sites, 5)) for at in range(30)}
    made = Body(dict.fromkeys(sites, ROOM), Flat(), hosts, lambda site: tuple(sites[:2]),
                composer=ComposerLimits(tells=False))  # fmt: skip
    for at in range(1_000):
        plan = chain(" ".join(rng.sample(list(hosts), rng.randint(1, 3))), rng.choice(sites), rng.choice(sites), 30_000)
        made.ask(rng.choice(sites), Ask(f"q{at}", plan, (Level(rng.randint(4_000, 20_000)),)), 0)
    made.run()
    assert len(made.words) == 1_000
    kinds = {type(one.answer) for one in made.words.values()}
    assert kinds == {Admitted, Refused}
    assert made.left_behind() == []
    assert all(keeper.load <= ROOM for keeper in made.keepers())


def test_keepers_and_composers_that_come_back_go_on_with_what_was_written_down() -> None:
    made = body("o:b")
    keeper = made.machines["b"]
    assert keeper.handle(Begin()) == []
    assert made.machines[made.composer("a")].handle(Begin()) == []
