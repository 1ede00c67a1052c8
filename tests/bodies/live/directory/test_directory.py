"""The sites of a run keep a directory: who offers what and how loaded they are, also as sites go and operators move."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.bodies.live.directory.ring import Ring, ring, until
from weft.bodies.live.directory import finding, offering
from weft.bodies.live.epochs import next_life
from weft.bodies.live.state import State
from weft.bodies.live.transport import DESK, FINDING, directory, guide
from weft.model import Control
from weft.model.wishes import MoveTo
from weft.protocol.agents import Neighbour
from weft.protocol.directory import AskOffers, Limits, site_key
from weft.protocol.hosting import Want
from weft.protocol.messages import encode

BEAT_S = 0.3
LEASE_S = BEAT_S * (Limits().lease + 1)
"""What was said just before a beat lasts a beat less than what was said just after."""
SLOW_S = 5.0
"""What a busy machine may need beside."""
ALL = {"q.a": ("x",), "q.b": ("y",), "r.c": ("z",)}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "BEAT_S", BEAT_S)
    monkeypatch.setattr(finding, "FIND_S", BEAT_S / 3)


def test_the_directory_says_where_each_stream_is_offered_and_what_each_site_offers(tmp_path: Path) -> None:
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL), run.where()
        assert until(lambda: all(run.load(site) is not None for site in ("x", "y", "z", "far")))
        assert {site: run.finding.of_site(site)["offers"] for site in ("x", "y", "z", "far")} == {  # type: ignore[index]
            "x": ["q.a"], "y": ["q.b"], "z": ["r.c"], "far": [],
        }  # fmt: skip


def test_an_operator_that_moves_is_offered_where_it_runs_then(tmp_path: Path) -> None:
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL)
        asked = run.changes.ask(MoveTo({"r.c": "y"}))
        assert until(lambda: asked.state == "done"), asked.why
        assert until(lambda: run.where() == {**ALL, "r.c": ("y",)}, SLOW_S), "it is told at once, before any lease ends"


def test_what_a_lost_site_offered_is_found_no_more_after_its_lease_and_again_when_it_is_back(tmp_path: Path) -> None:
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL)
        run.sites.crash("y")
        assert until(lambda: "q.b" not in run.where(), LEASE_S + SLOW_S)
        assert until(lambda: run.load("y") is None, LEASE_S + SLOW_S)
        assert run.finding.of_site("y") is None
        assert until(lambda: run.where() == {one: sites for one, sites in ALL.items() if one != "q.b"})
        back_at_y(run)
        assert until(lambda: run.where() == ALL)


def back_at_y(run: Ring) -> None:
    run.sites.start("y")
    run.desk.tell(Want("q.b", "y"))


def test_a_site_that_leaves_in_order_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "BEAT_S", 30.0)
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL)
        body = next(one for one in run.sites.bodies() if one.name == "y")
        body.companions[0].stop()
        assert until(lambda: "q.b" not in run.where(), SLOW_S)
        body.companions.clear()


def test_a_load_is_told_when_it_has_left_its_level_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offering, "BEAT_S", 1.0)
    with ring(tmp_path) as run:
        engine = run.sites.engines["x"]
        machine = next(one for one in run.sites.bodies() if one.name == "x").companions[0].carrier.machine  # type: ignore[attr-defined]
        engine.use(0.05)
        assert until(lambda: (run.load("x") or 0) > 0.02), "with the next beat, by the way"
        assert (machine.level, machine.updates) == (0, 0)
        engine.use(0.6)
        assert until(lambda: (run.load("x") or 0) > 0.5), run.load("x")
        assert machine.level == 2
        assert machine.updates > 0
        told = run.finding.of_site("x")
        assert told is not None
        assert (told["level"], told["levels"]) == (2, 5)


def test_without_shared_streams_there_is_no_directory_and_not_a_message(tmp_path: Path) -> None:
    with ring(tmp_path, Control()) as run:
        run.look()
        time.sleep(BEAT_S)
        assert not any(one.companions for one in run.sites.bodies())
        assert {kind: count for kind, count in run.transport.messages.items() if kind[0] != "finding"} == {}
        assert not (run.changes.state.path / "lives").exists()


def test_only_members_speak_with_the_directory_and_only_the_desk_asks_a_guide(tmp_path: Path) -> None:
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL)
        before = run.transport.messages["guide", "TellOffers"]
        for sender in (directory("y"), DESK, guide("y")):
            run.transport.send(sender, guide("x"), encode(AskOffers(1, site_key("x"))))
        run.transport.send(FINDING, guide("x"), encode(Neighbour()))
        run.transport.send(FINDING, guide("x"), b"noise")
        run.transport.send(DESK, directory("x"), encode(AskOffers(1, site_key("x"))))
        run.transport.send(guide("y"), FINDING, b"noise")
        time.sleep(0.2)
        assert run.transport.messages["guide", "TellOffers"] == before
        assert until(lambda: [line for line in run.story if "x refused a message from desk" in line])
        assert until(lambda: run.where() == ALL), "nothing is disturbed"


def test_a_holder_that_is_silent_is_passed_over(tmp_path: Path) -> None:
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL)
        parts = {one.name: one.companions[0] for one in run.sites.bodies()}
        for alone in parts:
            for site, part in parts.items():
                run.transport.open(guide(site), part._deliver)  # type: ignore[attr-defined]
                if site != alone:
                    run.transport.close(guide(site))
            run.finding._told.clear()
            assert until(lambda: run.where() == ALL), f"{alone} knows, or asks those who do"
        run.transport.close(guide("far"))
        assert until(lambda: run.where() == {}), "what nobody answers is not known any more"


def test_the_story_tells_of_what_is_offered_and_of_sites_and_not_of_every_beat(tmp_path: Path) -> None:
    with ring(tmp_path) as run:
        assert until(lambda: run.where() == ALL)
        time.sleep(4 * BEAT_S)
        assert [line for line in run.story if "OffersAre" in line]
        count = len(run.story)
        time.sleep(4 * BEAT_S)
        assert len(run.story) - count <= 2, run.story[count:]


def test_each_life_of_a_site_has_a_greater_number_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path / "state")
    state.disk.make(state.path)
    first = next_life(state, "a/b")
    assert next_life(state, "a/b") > first
    monkeypatch.setattr("time.time_ns", lambda: 5_000_000)
    assert next_life(state, "a/b") > first
    assert next_life(state, "c") == 5, "by the clock where nothing is kept"
    (state.path / "lives" / "c.json").write_text("noise")
    assert next_life(state, "c") == 5
