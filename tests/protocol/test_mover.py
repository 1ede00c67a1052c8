"""The mover's rules, one test per claim."""

from __future__ import annotations

import pytest

from weft.protocol import CancelTimer, Effect, Input, SetTimer, TimerFired
from weft.protocol.hosting import EndCleanly, Unwant, Want
from weft.protocol.machine import IllegalStep
from weft.protocol.moving import (
    Ask,
    Cancel,
    Change,
    Changed,
    ChannelDrained,
    Cool,
    Decide,
    Decided,
    Drain,
    End,
    Moot,
    Mover,
    MoverLimits,
    NotChanged,
    NotWarmed,
    Start,
    Turn,
    Undecided,
    Warm,
    Warmed,
    least_epoch,
)
from weft.protocol.moving.words import Ended, Tell, Up

LIMITS = MoverLimits(10, 20, 30, 40, 50)
KEY = "change 1"
WAIT = TimerFired(KEY)
MOVE = Change(1, (End("f", "a"),), (Start("f", "b"),))
INTO = Change(1, (End("f", "a"), End("g", "b", ("s1", "s2"))), (Start("f", "b"),))


@pytest.fixture
def mover() -> Mover:
    mover = Mover("m", LIMITS)
    mover.begin()
    return mover


def told(mover: Mover, *inputs: Input) -> list[Effect]:
    """What a mover asks for after the last of some inputs."""
    effects: list[Effect] = []
    for input in inputs:
        effects = mover.handle(input)
    return effects


def ending(mover: Mover, change: Change = MOVE) -> list[Effect]:
    """A mover that has made ready all that starts."""
    return told(mover, Ask(1), change, *(Warmed(1, start.fragment) for start in change.starts))


def test_a_change_is_worked_out_when_its_turn_comes_and_made_ready_before_anything_ends(mover: Mover) -> None:
    assert told(mover, Ask(1)) == [Turn(1), SetTimer(KEY, 10)]
    assert told(mover, MOVE) == [Warm(1, "f", "b"), SetTimer(KEY, 20)]
    assert told(mover, Warmed(1, "f")) == [Tell(EndCleanly("f", 1)), SetTimer(KEY, 30)]


def test_changes_wait_for_one_another_and_come_in_the_order_of_their_numbers(mover: Mover) -> None:
    told(mover, Ask(1))
    for number in (10, 9):
        assert told(mover, Ask(number)) == []
    assert told(mover, Moot(1, "no")) == [CancelTimer(KEY), NotChanged(1, "no"), Turn(9), SetTimer("change 9", 10)]


def test_no_turn_is_given_before_the_plan_in_force_is_known() -> None:
    mover = Mover("m", LIMITS)
    assert told(mover, Ask(1)) == []
    assert mover.begin() == [Turn(1), SetTimer(KEY, 10)]


def test_what_is_not_worked_out_in_time_is_not_changed(mover: Mover) -> None:
    assert told(mover, Ask(1), WAIT)[:1] == [CancelTimer(KEY)]
    assert told(mover, MOVE) == []


def test_what_is_not_ready_in_time_or_cannot_be_made_so_starts_cold(mover: Mover) -> None:
    end = [Tell(EndCleanly("f", 1)), SetTimer(KEY, 30)]
    assert told(mover, Ask(1), MOVE, WAIT) == end
    other = Mover("m", LIMITS)
    other.begin()
    assert told(other, Ask(1), MOVE, NotWarmed(1, "f", "busy")) == end


def test_what_can_never_run_ends_the_change_and_nothing_is_touched(mover: Mover) -> None:
    assert told(mover, Ask(1), MOVE, NotWarmed(1, "f", "no such column", True)) == [
        Cool(1, "f", "b"),
        CancelTimer(KEY),
        NotChanged(1, "no such column"),
    ]


def test_a_reader_ends_after_its_writer_and_after_every_channel_it_drains(mover: Mover) -> None:
    assert ending(mover, INTO) == [Tell(EndCleanly("f", 1)), SetTimer(KEY, 30)]
    drains = [Drain(1, "s1", "g"), Drain(1, "s2", "g"), SetTimer(KEY, 30)]
    assert told(mover, Ended("f", 1, True)) == drains
    assert told(mover, ChannelDrained(1, "s2", "g")) == []
    assert told(mover, ChannelDrained(1, "s1", "g")) == [Tell(EndCleanly("g", 1)), SetTimer(KEY, 30)]
    assert told(mover, Ended("g", 1, True)) == [Decide(1), SetTimer(KEY, 40)]


def test_each_of_a_chain_drains_in_its_turn(mover: Mover) -> None:
    chain = (End("f", "a"), End("g", "b", ("s1",)), End("h", "c", ("s2",)))
    ending(mover, Change(1, chain, (Start("f", "b"),)))
    assert told(mover, Ended("f", 1, True))[0] == Drain(1, "s1", "g")
    assert told(mover, ChannelDrained(1, "s1", "g"))[0] == Tell(EndCleanly("g", 1))
    assert told(mover, Ended("g", 1, True))[0] == Drain(1, "s2", "h")
    assert told(mover, ChannelDrained(1, "s2", "h"))[0] == Tell(EndCleanly("h", 1))


def test_those_that_drain_nothing_end_side_by_side(mover: Mover) -> None:
    ends = (End("f", "a"), End("g", "b"))
    assert ending(mover, Change(1, ends, (Start("f", "b"),)))[:2] == [
        Tell(EndCleanly("f", 1)),
        Tell(EndCleanly("g", 1)),
    ]
    assert told(mover, Ended("g", 1, True)) == []
    assert told(mover, Ended("f", 1, True))[0] == Decide(1)


def test_once_decided_the_new_are_wanted_above_all_earlier_epochs_and_the_gone_are_not(mover: Mover) -> None:
    ending(mover, INTO)
    told(mover, Ended("f", 1, True), ChannelDrained(1, "s1", "g"), ChannelDrained(1, "s2", "g"), Ended("g", 1, True))
    assert told(mover, Decided(1)) == [
        Tell(Unwant("g")),
        Tell(Want("f", "b", least_epoch(1), 1)),
        SetTimer(KEY, 50),
    ]
    assert told(mover, Up("f", 1)) == [CancelTimer(KEY), Changed(1)]


def test_what_does_not_end_cleanly_is_wanted_again_where_it_was(mover: Mover) -> None:
    ending(mover)
    again = [Cool(1, "f", "b"), Tell(Want("f", "a", change=1)), SetTimer(KEY, 50)]
    assert told(mover, Ended("f", 1, False)) == again
    with pytest.raises(IllegalStep, match="in state aborting"):
        told(mover, Ended("f", 1, True))  # who is wanted again does not end for the change any more
    assert told(mover, Up("f", 1)) == [CancelTimer(KEY), NotChanged(1, "f did not end at a batch boundary")]


def test_only_what_was_asked_to_end_is_wanted_again(mover: Mover) -> None:
    ending(mover, INTO)
    assert told(mover, WAIT) == [Cool(1, "f", "b"), Tell(Want("f", "a", change=1)), SetTimer(KEY, 50)]
    assert told(mover, Up("f", 1))[-1] == NotChanged(1, "f did not end in time")


def test_while_it_is_being_decided_time_and_cancelling_change_nothing(mover: Mover) -> None:
    ending(mover)
    told(mover, Ended("f", 1, True))
    assert told(mover, Cancel(1)) == []
    assert told(mover, WAIT) == [Decide(1), SetTimer(KEY, 40)]
    assert told(mover, Undecided(1, "the disk is full"))[1] == Tell(Want("f", "a", change=1))


@pytest.mark.parametrize("inputs", [(), (MOVE,)])
def test_a_change_cancelled_before_anything_ends_is_over_at_once(mover: Mover, inputs: tuple[Input, ...]) -> None:
    assert told(mover, Ask(1), *inputs, Cancel(1))[-2:] == [CancelTimer(KEY), NotChanged(1, "cancelled")]


def test_a_change_cancelled_while_it_waits_for_its_turn_never_gets_one(mover: Mover) -> None:
    assert told(mover, Ask(1), Ask(2), Cancel(2))[-1] == NotChanged(2, "cancelled")
    assert told(mover, Moot(1, "no"))[-1] == NotChanged(1, "no")


def test_a_plan_that_does_not_come_up_in_time_is_in_force_all_the_same(mover: Mover) -> None:
    ending(mover)
    assert told(mover, Ended("f", 1, True), Decided(1), WAIT)[-1] == Changed(1, "f does not run yet")
    assert told(mover, Up("f", 1)) == []


def test_a_change_may_only_end_or_only_start_something(mover: Mover) -> None:
    assert told(mover, Ask(1), Change(1, (End("f", "a"),), ()))[0] == Tell(EndCleanly("f", 1))
    assert told(mover, Ended("f", 1, True), Decided(1)) == [Tell(Unwant("f")), CancelTimer(KEY), Changed(1)]
    told(mover, Ask(2), Change(2, (), (Start("g", "a"),)))
    assert told(mover, Warmed(2, "g"))[0] == Decide(2)


def test_when_the_run_ends_every_change_is_called_what_the_journal_has(mover: Mover) -> None:
    ending(mover)
    told(mover, Ask(2), Ended("f", 1, True))
    assert mover.leave() == [CancelTimer("change 2"), NotChanged(2, "the run ends")]
    assert told(mover, Decided(1)) == [CancelTimer(KEY), Changed(1, "the run ends")]
    assert told(mover, Ask(3)) == [CancelTimer("change 3"), NotChanged(3, "the run ends")]


def test_word_of_a_change_that_is_over_is_passed_over(mover: Mover) -> None:
    told(mover, Ask(1), Moot(1, "no"))
    for late in (MOVE, Warmed(1, "f"), Ended("f", 1, True), Decided(1), Up("f", 1), Cancel(1)):
        assert told(mover, late) == []
    assert mover.rows == {}


def test_what_was_lost_with_its_site_is_not_asked_to_end_and_goes_on_elsewhere_at_once(mover: Mover) -> None:
    told(mover, Ask(1), Change(1, (), (Start("f", "b"),), ("f",)))
    assert told(mover, Warmed(1, "f"))[0] == Decide(1)
    wanted = told(mover, Decided(1))[0]
    assert wanted == Tell(Want("f", "b", least_epoch(1), 1, lost=True))
    assert told(mover, Up("f", 1)) == [CancelTimer(KEY), Changed(1)]


@pytest.mark.parametrize("fact", [Ended("f", 1, True), Up("f", 1), Moot(1, "no"), Ask(1)])
def test_word_that_cannot_come_in_a_state_is_no_legal_step(mover: Mover, fact: Input) -> None:
    told(mover, Ask(1), MOVE)
    with pytest.raises(IllegalStep, match="in state preparing"):
        told(mover, fact)
