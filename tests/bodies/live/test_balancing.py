"""Sites that balance live: the moves of the twin, through the desk; losses, crashes, and what is not measured."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bodies.live.balanced import Balanced, all_at, balanced, busy
from weft.bodies.live.balancing.kept import Kept, KeptBalance
from weft.bodies.live.decision_file import kept_decisions
from weft.bodies.live.transport import DESK, balancer, host
from weft.bodies.twin import run as twin
from weft.cli.decided import decision_lines
from weft.model import Deployment, Link, Site
from weft.model.wishes import MoveTo
from weft.plan.changing.running_plan import Rules
from weft.plan.network.paths import Paths
from weft.protocol.balancing import Offer, Part
from weft.protocol.messages import encode

THREE_GOES = [("three", "left", "top", "left was at 70 %, above 60 %")]


def in_the_twin(deployment: Deployment, site: str = "left", **homes: str) -> list[tuple[str, str, str, str]]:
    found = twin(deployment, all_at(deployment, site, **homes), seconds=15, seed=1)
    return [(one.operator, one.from_, one.to, one.reason) for one in found.moves]


def has_moved(run: Balanced) -> object:
    return run.moves() and not any(one.state == "asked" for one in run.changes.asked.values())


WORLDS = {
    "above the mark": (busy(), {}, THREE_GOES),
    "two operators in two handovers": (busy(high=0.5, target=0.35), {}, None),
    "one that is idle asks": (busy(low=0.05, high=0.8), {}, None),
    "one that is busy enough asks for nothing": (busy(low=0.1, high=0.8), {"three": "top"}, []),
    "all as it should be": (busy(high=0.8), {}, []),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_loads_make_the_same_moves_for_the_same_reasons_in_twin_and_live(name: str, tmp_path: Path) -> None:
    deployment, homes, wanted = WORLDS[name]
    moves = in_the_twin(deployment, **homes)
    assert wanted is None or moves == wanted
    with balanced(deployment, all_at(deployment, "left", **homes), tmp_path) as run:
        run.until(lambda: len(run.moves()) == len(moves))
        run.during(3.0)
        assert run.moves() == moves
        assert all(one.wish.by == "balance" for one in run.changes.asked.values())
        assert {**run.believed()} == dict(run.changes.placement.homes)
        assert run.notes == [], "balancers never believed what is not so"


def test_a_move_says_why_and_its_numbers_stand_in_the_log(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        run.until(lambda: has_moved(run))
        assert re.fullmatch(
            r"moved there from left by balancing: left was at \d+ %, above 60 %",
            run.changes.placement.reasons["q.three"],
        )
        (entry,) = run.until(lambda: [one for one in kept_decisions(run.changes.state.path) if one["state"] == "done"])
        assert (entry["by"], entry["who"], entry["times"]) == ("balance", "balance", 1)
        assert entry["moves"] == [{"query": "q", "operator": "three", "from": "left", "to": "top"}]
        loads = entry["numbers"]["loads"]
        assert loads["left"]["cpu"]["before"] == pytest.approx(0.7, abs=0.02)
        assert loads["left"]["cpu"]["after"] == pytest.approx(0.55, abs=0.02)
        assert loads["top"]["cpu"] == {"before": 0.0, "after": pytest.approx(0.15, abs=0.02)}
        head, numbers = decision_lines(entry)
        assert re.search(r"balance, done: left was at \d+ %, above 60 %$", head)
        assert re.match(r"  load: left \d+% then \d+% of its cpu, top 0% then 1\d% of its cpu; marks: low 0%", numbers)


def test_nothing_is_taken_without_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Kept] = []
    write = KeptBalance.write

    def noted(self: KeptBalance, kept: Kept) -> None:
        written.append(kept)
        write(self, kept)

    monkeypatch.setattr(KeptBalance, "write", noted)
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        run.until(lambda: has_moved(run))
    took = [one.reason for kept in written for one in kept.took]
    assert took, "what was taken is kept until the desk has moved it"
    assert all(re.fullmatch(r"left was at \d+ %, above 60 %", reason) for reason in took)


def test_messages_between_balancers_and_reports_may_be_lost_and_doubled(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        kinds = {"BalanceFrom", "Offer", "OfferReply", "Handover", "Taken", "Report", "Reported"}
        run.transport.loses, run.transport.doubles = set(kinds), True
        run.until(lambda: has_moved(run), 60.0)
        run.during(2.0)
        assert set(run.transport.lost) == kinds
        assert run.moves() == THREE_GOES
        assert len(run.changes.asked) == 1, "what is said again is asked for once"
        assert run.believed() == dict(run.changes.placement.homes)


def test_a_taker_that_is_lost_amid_a_handover_declines_it_when_it_is_back_and_is_offered_anew(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        met: list[str] = []

        def meets(kind: str, to: object) -> bool:
            if kind == "Handover" and not met:
                met.append(kind)
                return True
            return False

        run.transport.met = meets
        run.until(lambda: met)
        run.sites.crash("top")
        run.reports.inbox.lose("top")
        run.during(1.0)
        run.sites.start("top")
        run.until(lambda: has_moved(run), 60.0)
        assert any("NotTaken" in line for line in run.story)
        assert run.moves() == THREE_GOES
        assert run.believed() == dict(run.changes.placement.homes)


def test_what_was_taken_and_not_told_before_a_crash_is_told_after_it(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        taken: list[str] = []

        def meets(kind: str, to: object) -> bool:
            if kind == "Taken":
                taken.append(kind)
            return bool(taken) and kind == "Report"  # nobody hears of it

        run.transport.met = meets
        run.until(lambda: taken)
        run.sites.crash("top")
        run.transport.met = lambda kind, to: False
        run.during(1.0)
        assert run.changes.asked == {}, "the desk has not heard of it"
        run.sites.start("top")
        run.until(lambda: has_moved(run), 60.0)
        run.during(2.0)
        assert run.moves() == THREE_GOES
        # What ran at the site that was lost may not have been back when it was asked for first.
        assert [one.state for one in run.changes.asked.values() if one.state != "refused"] == ["done"]


def test_a_period_without_a_whole_measurement_is_no_look(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        run.engines["left"].silent = {"q.one"}
        run.until(lambda: any("does not look" in line for line in run.story))
        run.during(2)
        assert run.changes.asked == {}
        (left,) = (body for body in run.sites.bodies() if body.name == "left")
        told = left.balancing.now()
        assert told is not None
        assert told.looked == (), "it has not looked"
        assert [line for line in run.story if "does not look" in line] == [
            "# left does not look at its loads: records of q.one are not measured"
        ]
        run.engines["left"].silent = set()
        run.until(lambda: has_moved(run))
        assert run.moves() == THREE_GOES


def test_a_cost_that_nobody_knows_is_an_incomplete_measurement(tmp_path: Path) -> None:
    (query,) = busy().queries
    operators = (replace(query.operators[0], cost_ms=None), *query.operators[1:])
    world = replace(busy(), queries=(replace(query, operators=operators),))
    with balanced(world, all_at(world, "left"), tmp_path) as run:
        run.until(lambda: any("cost of q.one" in line for line in run.story))
        run.during(2)
        assert run.changes.asked == {}


def test_a_quiet_run_moves_nothing(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        run.flow.per_s = 700.0
        run.during(8.0)
        assert run.changes.asked == {}
        assert run.notes == []


def test_what_others_move_is_known_to_balancers_soon(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        run.flow.per_s = 700.0
        run.during(1.5)
        run.changes.ask(MoveTo({"q.three": "top"}))
        run.until(lambda: run.notes and run.believed() == dict(run.changes.placement.homes))
        assert run.notes == ["balancers begin anew: q.three runs at top, and left holds it"]
        run.flow.per_s = 1000.0
        run.during(3.0)
        assert [move[0] for move in run.moves()] == ["three"], "left is at 55 % now"
        run.flow.per_s = 1250.0
        run.until(lambda: len(run.moves()) == 2)
        assert run.moves()[1][:3] == ("two", "left", "top"), "how busy left was when more came is chance"
        assert re.fullmatch(r"left was at 6\d %, above 60 %", run.moves()[1][3])


def test_where_the_desk_refuses_it_is_asked_again_until_it_is_possible(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        rules = run.changes.rules
        run.changes.rules = Rules(rules.cut, Paths(replace(busy(), links=(Link("right", "top", 5.0),))))
        run.until(lambda: len(run.changes.asked) >= 3)
        assert {one.state for one in run.changes.asked.values()} == {"refused"}
        run.changes.rules = rules
        run.until(lambda: has_moved(run))
        assert run.moves() == THREE_GOES
        run.until(lambda: {one["state"] for one in kept_decisions(run.changes.state.path)} == {"refused", "done"})


def test_where_rules_only_advise_sites_only_say_what_they_would_do(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path, advises=True) as run:
        (entry,) = run.until(run.controlling.decisions.advised)
        assert (entry["by"], entry["wish"]) == ("balance", {"move": {"q.three": "top"}})
        assert re.fullmatch(r"left was at \d+ %, above 60 %", entry["reason"])
        run.until(lambda: run.controlling.decisions.entries()[0]["times"] > 1)
        assert run.changes.asked == {}
        assert run.changes.placement == all_at(busy(), "left")


def test_a_desk_that_begins_anew_begins_a_greater_era(tmp_path: Path) -> None:
    with balanced(busy(), all_at(busy(), "left"), tmp_path) as run:
        run.until(lambda: has_moved(run))
    again = replace(busy(), sites=(*busy().sites, Site("alone")))
    with balanced(again, all_at(again, "left", three="top"), tmp_path) as run:
        heard = run.reports.inbox.sites
        told = dict.fromkeys(("left", "right", "top"), 2)  # a site without neighbours balances with nobody
        run.until(lambda: {site: held.balance.era for site, held in heard.items() if held.balance} == told)
        run.until(lambda: run.believed() == dict(run.changes.placement.homes))
        run.during(2)
        assert run.changes.asked == {}


def test_a_balancer_hears_only_balancers_of_its_era(tmp_path: Path) -> None:
    with balanced(busy(high=0.8), all_at(busy(), "left"), tmp_path) as run:
        run.until(lambda: len(run.believed()) == 3 and all(body.balancing.now() for body in run.sites.bodies()))
        story = len(run.story)
        offer = encode(Offer(900, ((Part("q.three", (1,)),),)))
        for sender in (host("left"), DESK, balancer("left", 2)):
            run.transport.send(sender, balancer("top", 1), offer)
        run.transport.send(balancer("left", 1), balancer("top", 2), offer)
        said = run.until(lambda: len(told := [one for one in run.story[story:] if "balance:top" in one]) >= 3 and told)
        assert all("refused a message from" in line for line in said)
        run.transport.send(balancer("left", 1), balancer("top", 1), offer)
        run.until(lambda: any("Offer(900" in line for line in run.story))
        assert len([line for line in run.story[story:] if "refused a message" in line]) == 3
