"""Every wish of a live run passes its controller: one change in a neighbourhood at a time, and persons do not rest."""

from __future__ import annotations

import time
from typing import Any

import pytest

from weft.bodies.live.controlling import Controlling
from weft.bodies.live.moves import Asked
from weft.bodies.live.transport import InProcess
from weft.model import Deployment, Link, Operator, Placement, Query, Sink, Site, Source
from weft.model.wishes import MoveTo, TakeOver
from weft.protocol import parse_story_line

SECONDS_MAX = 20.0


def world() -> Deployment:
    one, two = (Operator(name, (source,), sql="SELECT 1") for name, source in (("o", "s"), ("p", "t")))
    queries = (Query("q", (one,), (Sink("o", "console"),)), Query("r", (two,), (Sink("p", "console"),)))
    sites = tuple(Site(name) for name in "abcd")
    sources = (Source("s", "a", "rate", ()), Source("t", "b", "rate", ()))
    return Deployment(sites, sources, queries, (Link("a", "b", 1.0),))


class Held:
    """A controller between wishes and a desk that only notes what it is asked for."""

    def __init__(self) -> None:
        self.placement = Placement({"q.o": "a", "r.p": "b"})
        self.asked: list[int] = []
        self.story: list[str] = []
        self.control = Controlling(world(), lambda: self.placement, InProcess(), self.story.append)
        self.control.tell_desk = lambda asked: self.asked.append(asked.number)
        self.control.start()

    def wish(self, number: int, stream: str, to: str) -> Asked:
        asked = Asked(number, MoveTo({stream: to}), 0.0, [])
        self.control.wish(asked)
        return asked

    def until(self, found: Any) -> None:
        ends_s = time.monotonic() + SECONDS_MAX
        while not found():
            assert time.monotonic() < ends_s, "nothing was found in time"
            time.sleep(0.01)


@pytest.fixture
def held() -> Any:
    made = Held()
    yield made
    made.control.stop()


def test_a_wish_waits_for_a_change_beside_it_and_no_longer(held: Held) -> None:
    first = held.wish(1, "q.o", "b")
    second = held.wish(2, "r.p", "c")
    held.until(lambda: held.asked == [1])
    held.until(lambda: len(held.story) == 2)
    assert held.asked == [1], "both touch site b"
    held.placement = held.placement.put("q.o", "b")
    first.end("done", "", 0.0)
    held.until(lambda: held.asked == [1, 2])
    second.end("refused", "no room", 0.0)
    held.wish(3, "r.p", "c")
    held.until(lambda: held.asked == [1, 2, 3])  # a person need not rest
    assert {parse_story_line(line).site for line in held.story} == {"controller"}


def test_wishes_apart_go_side_by_side(held: Held) -> None:
    held.wish(1, "q.o", "c")
    held.wish(2, "r.p", "d")
    held.until(lambda: held.asked == [1, 2])


def test_what_waits_when_a_run_ends_is_told_so(held: Held) -> None:
    held.wish(1, "q.o", "b")
    late = held.wish(2, "r.p", "c")
    held.until(lambda: len(held.story) == 2)
    held.control.leave()
    assert (late.state, late.why) == ("refused", "the run ends")
    later = held.wish(3, "r.p", "d")
    assert (later.state, later.why) == ("refused", "the run ends")
    assert held.asked == [1]


def test_what_is_only_advised_is_refused_so(held: Held) -> None:
    advising = Controlling(world(), lambda: held.placement, InProcess(), held.story.append, advises=True)
    advising.start()
    try:
        asked = Asked(1, TakeOver("a", {"q.o": "b"}), 0.0, [])
        advising.wish(asked)
        held.until(lambda: asked.state == "refused")
        assert asked.why == "it is only advised: failover changes nothing where `control.advise` is on"
    finally:
        advising.stop()


def test_nobody_waits_for_a_controller_that_has_failed(held: Held) -> None:
    held.wish(1, "q.o", "b")
    held.wish(2, "r.p", "c")
    held.until(lambda: len(held.story) == 2)
    held.control.look_after()
    assert held.asked == [1], "it has not failed"
    held.control._carrier.failure = RuntimeError("broken")
    held.control.look_after()
    assert held.asked == [1, 2]
