"""Delays that sites measure are fed back live: each site of a query knows the slack of its own operators."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.bodies.live.delays import Delaying
from tests.plan.changing.test_next_plan import begun, rules
from tests.plan.plan_builders import deployment, op, query, source
from weft.bodies.live.changes import Changes
from weft.bodies.live.companions import companions_of
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.feedback import desk as feedback_desk
from weft.bodies.live.feedback import site as feedback_site
from weft.bodies.live.feedback.desk import DeskFeedback
from weft.bodies.live.feedback.times import SiteTimes
from weft.bodies.live.reports import Reports
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import State
from weft.bodies.live.transport import Address, InProcess
from weft.model import Control, Deployment, Link, Promise, Relief, Sink
from weft.model.wishes import MoveTo
from weft.plan.changing.fragments import Fragment
from weft.protocol.feedback import LEASE, DelayParts, DelayTold, DelayWord
from weft.protocol.hosting import Want
from weft.protocol.messages import Message, decode, encode
from weft.protocol.reporting import BatchDone, FragmentNow, Measured, SiteNow, Waiting

HOMES = {"q.a": "x", "q.b": "y"}
BEAT_S = 0.5
LONG_S = 30.0
LEFT = {"x": {"q.a": 4000.0}, "y": {"q.b": 4000.0}, "z": {"q.a": 4000.0, "q.b": 4000.0}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback_site, "BEAT_S", BEAT_S)
    monkeypatch.setattr(feedback_desk, "AGAIN_S", BEAT_S)


def whole(control: Control) -> Deployment:
    """Two operators at two sites, results at a third, and a site that has nothing to do with it."""
    links = (Link("x", "y", 0.0), Link("y", "z", 0.0))
    promised = Promise(latency_ms=5000.0)
    one = query(
        op("a", "s"), op("b", "a"), name="q", sinks=(Sink("b", "parquet", "out/q", site="z"),), promise=promised
    )
    given = deployment(["x", "y", "z", "far"], [source("s", "x", 100.0)], one, links=links)
    return replace(given, control=control)


class Losing(InProcess):
    """Loses the first of each kind of message, and says all others twice."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[type[Message], Address, Address], int] = {}

    def send(self, sender: Address, to: Address, data: bytes) -> None:
        key = (type(decode(data)), sender, to)
        self.seen[key] = self.seen.get(key, 0) + 1
        if not issubclass(key[0], DelayTold | DelayParts) or self.seen[key] > 1:
            super().send(sender, to, data)
            super().send(sender, to, data)


@dataclass
class Fed:
    """A run as the tests see it."""

    desk: DeskBody
    changes: Changes
    sites: Sites[Delaying]
    reports: Reports
    feedback: DeskFeedback
    transport: Losing

    def left(self) -> dict[str, dict[str, float]]:
        """The slack that each site told last that it knows."""
        self.reports.look()
        self.feedback.look()
        return {site: held.slack_ms for site, held in self.reports.inbox.sites.items() if held.slack_ms}


@contextmanager
def fed(folder: Path, control: Control | None = None) -> Iterator[Fed]:
    """Four sites with two operators, and a desk."""
    given = whole(Control(relief=Relief()) if control is None else control)
    state = State(folder / "state")
    state.disk.make(state.path)
    changes = Changes(state, rules(given))
    changes.begin(begun(given, HOMES), None)
    transport, story = Losing(), list[str]()
    reports = Reports(transport, lambda *event: None, lambda: None, story.append)
    reports.start()

    def companions(body):  # type: ignore[no-untyped-def]
        return companions_of(body, lambda: given, state, transport, story.append)

    sites = Sites(state, lambda site: Delaying(), transport, story.append, companions=companions)
    for site in given.sites:
        sites.start(site.name)
    desk = DeskBody(changes, transport, story.append, lambda site, silent: True)
    desk.start()
    try:
        assert desk.running.wait(LONG_S)
        yield Fed(desk, changes, sites, reports, DeskFeedback(changes, reports), transport)
    finally:
        desk.stop()
        changes.close()
        reports.stop()
        for one in sites.bodies():
            one.stop()


def until(true: Callable[[], bool], seconds: float = LONG_S) -> bool:
    deadline = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_every_site_of_a_query_knows_what_time_is_left_for_its_operators_though_words_are_lost(tmp_path: Path) -> None:
    with fed(tmp_path) as run:
        assert until(lambda: run.left() == LEFT), run.left()
        told = [key for key in run.transport.seen if key[0] is DelayTold]
        assert {sender.site for _, sender, _ in told} == {"x", "y", "z"}
        assert {to.site for _, _, to in told} == {"x", "y", "z"}, "through the hub, and nobody else hears of it"
        run.sites.engines["z"].delay_ms = 7000.0
        assert until(lambda: run.left().get("x") == {"q.a": -2000.0}), run.left()


def test_of_a_lost_site_nothing_is_believed_after_its_lease_and_all_is_known_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    with fed(tmp_path) as run:
        assert until(lambda: run.left() == LEFT), run.left()
        run.sites.crash("y")
        run.reports.inbox.lose("y")
        assert until(lambda: run.left() == {}, (LEASE + 2) * BEAT_S + LONG_S), run.left()
        run.sites.start("y")
        run.desk.tell(Want("q.b", "y"))
        assert until(lambda: run.left() == LEFT), run.left()


def test_what_moves_is_known_where_it_runs_then_and_a_site_that_runs_nothing_forgets(tmp_path: Path) -> None:
    with fed(tmp_path) as run:
        assert until(lambda: run.left() == LEFT), run.left()
        asked = run.changes.ask(MoveTo({"q.b": "z"}))
        assert until(lambda: asked.state == "done"), asked.why
        then = {"x": {"q.a": 4000.0}, "z": {"q.b": 4000.0}}
        assert until(lambda: run.left() == then), run.left()


def test_a_word_of_another_address_than_a_sites_own_is_not_heard(tmp_path: Path) -> None:
    with fed(tmp_path) as run:
        assert until(lambda: run.left() == LEFT), run.left()
        lie = encode(DelayTold("q", DelayWord("y", 1 << 60, 1, (("q.b", 9_000),), 9_000)))
        for sender in (Address("host", "y"), Address("delays")):
            InProcess.send(run.transport, sender, Address("delays", "x"), lie)
        time.sleep(2 * BEAT_S)
        assert run.left() == LEFT


def test_without_relief_no_delay_is_fed_back(tmp_path: Path) -> None:
    with fed(tmp_path, Control()) as run:
        assert run.left() == {}
        assert not any(one.companions for one in run.sites.bodies())
        time.sleep(2 * BEAT_S)
        run.reports.look()
        assert not [key for key in run.transport.seen if key[0] is DelayTold]


def told(taken: int, waiting: int) -> FragmentNow:
    return FragmentNow("q.a", 1, 0, taken=taken, waiting=(Waiting("s", "a", waiting),))


AT_X = {"q.a": Fragment("q.a", "x", ("q",), ("a", "b"), (), None, ("s",), (), (), ("q.b",))}


def test_a_record_waits_for_its_batch_and_for_what_it_takes_and_behind_its_first_operator_for_nothing() -> None:
    given, times = whole(Control()), SiteTimes()
    for at, taken in enumerate((100, 150, 200)):
        times.add(Measured((BatchDone("q.a", 0, taken, 250),), SiteNow((told(taken, 30),))), float(at))
    # Thirty wait and twenty are taken a second: each waits 1.5 s, and for a batch of a quarter of a second.
    assert times.look(given, AT_X, 5.0) == ({"q.a": 1750, "q.b": 0}, {})
    assert times.look(given, AT_X, 5.0) == ({}, {}), "nothing came since"


def test_a_batch_that_takes_longer_than_the_time_between_two_looks_and_is_told_later_counts() -> None:
    given, times = whole(Control()), SiteTimes()
    times.add(Measured((), SiteNow((told(0, 10),))), 0.0)
    assert times.look(given, AT_X, 5.0) == ({}, {})
    times.add(Measured((), SiteNow((told(100, 10),))), 8.0)
    assert times.look(given, AT_X, 10.0) == ({}, {}), "its records are there, and how long it took is not known"
    times.add(Measured((BatchDone("q.a", 0, 1, 8000),), SiteNow((told(100, 10),))), 14.0)
    # Ten wait and 100 were taken in 15 s: each waits 1.5 s.
    assert times.look(given, AT_X, 15.0) == ({"q.a": 9500, "q.b": 0}, {})
