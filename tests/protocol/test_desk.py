"""The desk: conductor and mover in one step."""

from __future__ import annotations

from weft.protocol import CancelTimer, Effect, Input, Received, Send, SetTimer, TimerFired
from weft.protocol.change_messages import (
    Carried,
    CarryOver,
    EndedAt,
    FragmentDiscarded,
    FragmentPrepared,
    OpenGate,
    PrepareFragment,
)
from weft.protocol.hosting import AllRunning, AllStopped, FragmentEnded, FragmentUp, Remember
from weft.protocol.messages import FragmentFinishing, FragmentRunning, FragmentStopped, StartFragment, StopFragment
from weft.protocol.moving import (
    Ask,
    Change,
    Changed,
    Decide,
    Decided,
    Desk,
    End,
    InForce,
    Leave,
    NotChanged,
    Start,
    least_epoch,
)
from weft.protocol.words import Parcel

TASK, NEW, HERE, THERE = (Parcel(text) for text in ("as it is", "as it will be", "as it stands", "where it came to"))
PLAN = InForce(0, (Start("f", "a", TASK),))
MOVE = Change(1, (End("f", "a"),), (Start("f", "b", NEW),))
FIRST = least_epoch(1) + 1
STOPPED = Received("a", FragmentStopped("f", 1, clean=True, stands=THERE))


def told(desk: Desk, *inputs: Input) -> list[Effect]:
    effects: list[Effect] = []
    for input in inputs:
        effects = desk.handle(input)
    return effects


def moving() -> Desk:
    """A desk whose fragment has been asked to end."""
    desk = Desk("d")
    told(desk, PLAN, Received("a", FragmentRunning("f", 1, HERE)), Ask(1))
    assert told(desk, MOVE)[0] == Send("b", PrepareFragment(1, "f", NEW, (HERE,)))
    prepared = told(desk, Received("b", FragmentPrepared(1, "f", ("f",))))
    assert prepared[0] == Send("a", StopFragment("f", 1, clean=True, tells=True, task=TASK))
    return desk


def test_a_move_goes_from_the_clean_end_over_what_is_carried_to_the_decision_and_the_new_site() -> None:
    desk = moving()
    at = EndedAt("f", 1, THERE)
    assert told(desk, Received("a", FragmentFinishing("f", 1, THERE)))[-1] == Send("b", OpenGate(1, "f", at))
    stopped = told(desk, STOPPED)
    assert stopped[1:3] == [FragmentEnded("f", 1, True, 1, THERE), Send("b", CarryOver(1, "f", NEW, (at,)))]
    assert told(desk, Received("b", Carried(1, "f", (("f", 1),), HERE))) == [
        Decide(1, (("f", HERE),)),
        SetTimer("change 1", 5_000),
    ]
    started = told(desk, Decided(1, (("f", NEW),)))
    assert started[:2] == [Remember("f", FIRST), Send("b", StartFragment("f", FIRST, NEW))]
    assert told(desk, Received("b", FragmentRunning("f", FIRST)))[1:] == [
        FragmentUp("f", 1),
        AllRunning(),
        CancelTimer("change 1"),
        Changed(1),
    ]


def test_an_unclean_end_starts_the_fragment_again_where_it_was() -> None:
    desk = moving()
    effects = told(desk, Received("a", FragmentStopped("f", 1)))
    assert Send("a", StartFragment("f", 2, TASK)) in effects, "as it was"
    told(desk, Received("a", FragmentRunning("f", 2)))
    discarded = Received("b", FragmentDiscarded(1, "f"))
    assert told(desk, discarded)[-1] == NotChanged(1, "f did not end at a batch boundary")


def test_a_restart_wants_the_plan_in_force_above_every_epoch_before_its_change() -> None:
    desk = Desk("d", {"f": 7, "g": least_epoch(3) + 4})
    effects = told(desk, InForce(3, (Start("f", "a"), Start("g", "b"))))
    assert Remember("f", least_epoch(3) + 1) in effects
    assert Remember("g", least_epoch(3) + 5) in effects


def test_a_fragment_that_rests_during_a_change_is_not_called_stopped() -> None:
    desk = moving()
    assert AllStopped() not in told(desk, STOPPED)


def test_leaving_in_the_middle_of_a_change_stops_everything_and_starts_nothing() -> None:
    desk = moving()
    assert NotChanged(1, "the run ends") in told(desk, Leave())
    assert told(desk, STOPPED)[-1] == AllStopped()
    assert told(desk, PLAN) == []


def test_timers_reach_the_one_that_set_them() -> None:
    desk = moving()
    assert told(desk, TimerFired("f"))[0] == Send("a", StopFragment("f", 1, clean=True, tells=True, task=TASK))
    assert told(desk, TimerFired("change 1")) == [SetTimer("change 1", 5_000)]


def test_a_snapshot_holds_both() -> None:
    desk, other = moving(), Desk("d")
    other.restore(desk.snapshot())
    assert other.snapshot() == desk.snapshot()
    assert isinstance(told(other, STOPPED)[-2], Send)
