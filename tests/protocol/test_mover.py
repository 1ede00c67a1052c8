"""The mover's rules, one test per claim."""

from __future__ import annotations

import pytest

from weft.protocol import CancelTimer, Effect, Input, Message, Received, Send, SetTimer, TimerFired
from weft.protocol.change_messages import (
    Carried,
    CarryOver,
    ChannelIsDrained,
    DiscardFragment,
    DrainChannel,
    EndedAt,
    FragmentDiscarded,
    FragmentNotPrepared,
    FragmentPrepared,
    NotCarried,
    OpenGate,
    PrepareFragment,
)
from weft.protocol.hosting import EndCleanly, Unwant, Want
from weft.protocol.machine import IllegalStep
from weft.protocol.moving import (
    Ask,
    Cancel,
    Change,
    Changed,
    Decide,
    Decided,
    End,
    Moot,
    Mover,
    MoverLimits,
    NotChanged,
    Start,
    Turn,
    Undecided,
    least_epoch,
)
from weft.protocol.moving.words import Ended, Finishing, Tell, Up
from weft.protocol.words import Parcel

LIMITS = MoverLimits(10, 2, 2, 3, 2, 2)
KEY = "change 1"
WAIT = TimerFired(KEY)
TASK, HERE = Parcel("what it is"), Parcel("where it came to")
MOVE = Change(1, (End("f", "a", (), HERE),), (Start("f", "b", TASK),))
INTO = Change(1, (End("f", "a"), End("g", "c", ("s1", "s2"))), (Start("f", "b"),))
CLEAN = Ended("f", 1, True, 7, HERE)
AFTER = (("f", 7),)
DISCARD = Send("b", DiscardFragment(1, "f"))


@pytest.fixture
def mover() -> Mover:
    mover = Mover("m", LIMITS)
    mover.begin()
    return mover


def told(mover: Mover, *inputs: Input | Message) -> list[Effect]:
    """What a mover asks for after the last of some inputs; messages come from site b."""
    effects: list[Effect] = []
    for input in inputs:
        effects = mover.handle(Received("b", input) if isinstance(input, Message) else input)
    return effects


def ending(mover: Mover, change: Change = MOVE) -> list[Effect]:
    """A mover that has made ready all that starts."""
    return told(mover, Ask(1), change, *(FragmentPrepared(1, start.fragment) for start in change.starts))


def deciding(mover: Mover) -> list[Effect]:
    """A mover for which all has ended, and was carried over."""
    ending(mover)
    return told(mover, CLEAN, Carried(1, "f", AFTER, HERE))


def test_a_change_is_worked_out_when_its_turn_comes_and_made_ready_before_anything_ends(mover: Mover) -> None:
    assert told(mover, Ask(1)) == [Turn(1), SetTimer(KEY, 10)]
    assert told(mover, MOVE) == [Send("b", PrepareFragment(1, "f", TASK, (HERE,))), SetTimer(KEY, 10)]
    assert told(mover, FragmentPrepared(1, "f")) == [Tell(EndCleanly("f", 1)), SetTimer(KEY, 10)]


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
    assert told(mover, Ask(1), WAIT) == [SetTimer(KEY, 10)]
    assert told(mover, WAIT)[:1] == [CancelTimer(KEY)]
    assert told(mover, MOVE) == []


def test_what_is_not_ready_in_time_or_cannot_be_made_so_starts_cold(mover: Mover) -> None:
    end = [Tell(EndCleanly("f", 1)), SetTimer(KEY, 10)]
    again = [Send("b", PrepareFragment(1, "f", TASK, (HERE,))), SetTimer(KEY, 10)]
    assert told(mover, Ask(1), MOVE, WAIT) == again
    assert told(mover, WAIT) == end
    other = Mover("m", LIMITS)
    other.begin()
    assert told(other, Ask(1), MOVE, FragmentNotPrepared(1, "f", "busy")) == end


def test_what_can_never_run_ends_the_change_and_nothing_is_touched(mover: Mover) -> None:
    impossible = FragmentNotPrepared(1, "f", "no such column", True)
    assert told(mover, Ask(1), MOVE, impossible) == [DISCARD, SetTimer(KEY, 10)]
    assert told(mover, FragmentDiscarded(1, "f")) == [CancelTimer(KEY), NotChanged(1, "no such column")]


def test_a_reader_ends_after_its_writer_and_after_every_channel_it_drains(mover: Mover) -> None:
    assert ending(mover, INTO) == [Tell(EndCleanly("f", 1)), SetTimer(KEY, 10)]
    asked = [Send("c", DrainChannel(1, channel, "g", AFTER)) for channel in ("s1", "s2")]
    assert told(mover, CLEAN) == [*asked, SetTimer(KEY, 10)]
    assert told(mover, ChannelIsDrained(1, "s2", "g", AFTER)) == []
    assert told(mover, WAIT) == [asked[0], SetTimer(KEY, 10)], "what is not answered is said again"
    assert told(mover, ChannelIsDrained(1, "s2", "g", AFTER)) == [], "a word that comes twice changes nothing"
    end = [Tell(EndCleanly("g", 1)), SetTimer(KEY, 10)]
    assert told(mover, ChannelIsDrained(1, "s1", "g", AFTER)) == end
    both = (EndedAt("f", 7, HERE), EndedAt("g", 9, TASK))
    assert told(mover, Ended("g", 1, True, 9, TASK)) == [
        Send("b", CarryOver(1, "f", Parcel(), both)),
        SetTimer(KEY, 10),
    ]


def test_that_a_channel_was_empty_before_other_ends_does_not_count(mover: Mover) -> None:
    ending(mover, Change(1, (End("f", "a"), End("g", "c", ("s1",))), (Start("f", "b"),)))
    told(mover, CLEAN)
    assert told(mover, ChannelIsDrained(1, "s1", "g", (("f", 6),))) == []
    assert told(mover, ChannelIsDrained(1, "s1", "g", AFTER))[0] == Tell(EndCleanly("g", 1))


def test_each_of_a_chain_drains_in_its_turn(mover: Mover) -> None:
    chain = (End("f", "a"), End("g", "b", ("s1",)), End("h", "c", ("s2",)))
    ending(mover, Change(1, chain, (Start("f", "b"),)))
    both = (*AFTER, ("g", 8))
    assert told(mover, CLEAN)[0] == Send("b", DrainChannel(1, "s1", "g", AFTER))
    assert told(mover, ChannelIsDrained(1, "s1", "g", AFTER))[0] == Tell(EndCleanly("g", 1))
    assert told(mover, Ended("g", 1, True, 8))[0] == Send("c", DrainChannel(1, "s2", "h", both))
    assert told(mover, ChannelIsDrained(1, "s2", "h", both))[0] == Tell(EndCleanly("h", 1))


def test_those_that_drain_nothing_end_side_by_side(mover: Mover) -> None:
    ends = (End("f", "a"), End("g", "b"))
    assert ending(mover, Change(1, ends, (Start("f", "b"),)))[:2] == [
        Tell(EndCleanly("f", 1)),
        Tell(EndCleanly("g", 1)),
    ]
    assert told(mover, Ended("g", 1, True)) == []
    assert isinstance(told(mover, CLEAN)[0], Send)


def test_what_waits_for_a_last_batch_is_told_as_soon_as_that_has_begun(mover: Mover) -> None:
    told(mover, Ask(1), MOVE)
    assert told(mover, FragmentPrepared(1, "f", ("f",)))[0] == Tell(EndCleanly("f", 1, tells=True))
    at = EndedAt("f", 7, HERE)
    assert told(mover, Finishing(1, at)) == [Send("b", OpenGate(1, "f", at))]


def test_nothing_is_decided_before_every_site_has_written_down_where_it_goes_on(mover: Mover) -> None:
    ending(mover)
    asked = [Send("b", CarryOver(1, "f", TASK, (EndedAt("f", 7, HERE),))), SetTimer(KEY, 10)]
    assert told(mover, CLEAN) == asked
    assert told(mover, Carried(1, "f", (("f", 6),), HERE)) == [], "it was carried over from another end"
    assert told(mover, WAIT) == asked
    assert told(mover, Carried(1, "f", AFTER, HERE)) == [Decide(1, (("f", HERE),)), SetTimer(KEY, 10)]
    assert told(mover, Carried(1, "f", AFTER, HERE)) == []


def test_what_cannot_be_carried_over_leaves_the_old_plan_in_force(mover: Mover) -> None:
    ending(mover)
    told(mover, CLEAN)
    assert told(mover, NotCarried(1, "f", (("f", 6),), "of another end")) == []
    again = [DISCARD, Tell(Want("f", "a", change=1)), SetTimer(KEY, 10)]
    assert told(mover, NotCarried(1, "f", AFTER, "the disk is full")) == again
    told(mover, FragmentDiscarded(1, "f"))
    assert told(mover, Up("f", 1))[-1] == NotChanged(1, "the disk is full")


def test_a_site_that_does_not_carry_over_in_time_leaves_the_old_plan_in_force(mover: Mover) -> None:
    ending(mover)
    told(mover, CLEAN, WAIT)
    assert told(mover, WAIT)[1] == Tell(Want("f", "a", change=1))
    assert told(mover, FragmentDiscarded(1, "f"), Up("f", 1))[-1] == NotChanged(1, "f was not carried over in time")


def test_once_decided_the_new_are_wanted_above_all_earlier_epochs_and_the_gone_are_not(mover: Mover) -> None:
    ending(mover, Change(1, (End("f", "a"), End("g", "c")), (Start("f", "b"),)))
    told(mover, CLEAN, Ended("g", 1, True, 8), Carried(1, "f", (*AFTER, ("g", 8))))
    assert told(mover, Decided(1, (("f", TASK),))) == [
        Tell(Unwant("g")),
        Tell(Want("f", "b", least_epoch(1), 1, task=TASK)),
        SetTimer(KEY, 10),
    ]
    assert told(mover, Up("f", 1)) == [CancelTimer(KEY), Changed(1)]


def test_what_does_not_end_cleanly_is_wanted_again_where_it_was(mover: Mover) -> None:
    ending(mover)
    again = [DISCARD, Tell(Want("f", "a", change=1)), SetTimer(KEY, 10)]
    assert told(mover, Ended("f", 1, False)) == again
    with pytest.raises(IllegalStep, match="in state aborting"):
        told(mover, CLEAN)  # who is wanted again does not end for the change any more
    assert told(mover, Up("f", 1)) == []
    verdict = [CancelTimer(KEY), NotChanged(1, "f did not end at a batch boundary")]
    assert told(mover, FragmentDiscarded(1, "f")) == verdict


def test_only_what_was_asked_to_end_is_wanted_again(mover: Mover) -> None:
    ending(mover, INTO)
    told(mover, WAIT, WAIT)
    assert told(mover, WAIT) == [DISCARD, Tell(Want("f", "a", change=1)), SetTimer(KEY, 10)]
    assert told(mover, FragmentDiscarded(1, "f"), Up("f", 1))[-1] == NotChanged(1, "f did not end in time")


def test_a_site_is_told_that_a_change_is_off_until_it_answers_so_many_times(mover: Mover) -> None:
    ending(mover)
    told(mover, Ended("f", 1, False), Up("f", 1))
    assert told(mover, WAIT) == [DISCARD, SetTimer(KEY, 10)]
    assert told(mover, WAIT)[-1] == NotChanged(1, "f did not end at a batch boundary")


def test_while_it_is_being_decided_time_and_cancelling_change_nothing(mover: Mover) -> None:
    deciding(mover)
    assert told(mover, Cancel(1)) == []
    assert told(mover, WAIT) == [Decide(1, (("f", HERE),)), SetTimer(KEY, 10)]
    assert told(mover, Undecided(1, "the disk is full"))[1] == Tell(Want("f", "a", change=1))


def test_a_change_cancelled_before_anything_ends_is_over_once_nothing_is_ready_for_it(mover: Mover) -> None:
    assert told(mover, Ask(1), Cancel(1))[-2:] == [CancelTimer(KEY), NotChanged(1, "cancelled")]
    assert told(mover, Ask(1), MOVE, Cancel(1)) == [DISCARD, SetTimer(KEY, 10)]
    assert told(mover, FragmentDiscarded(1, "f"))[-1] == NotChanged(1, "cancelled")


def test_a_change_cancelled_while_it_waits_for_its_turn_never_gets_one(mover: Mover) -> None:
    assert told(mover, Ask(1), Ask(2), Cancel(2))[-1] == NotChanged(2, "cancelled")
    assert told(mover, Moot(1, "no"))[-1] == NotChanged(1, "no")


def test_a_plan_that_does_not_come_up_in_time_is_in_force_all_the_same(mover: Mover) -> None:
    deciding(mover)
    assert told(mover, Decided(1), WAIT) == [SetTimer(KEY, 10)]
    assert told(mover, WAIT)[-1] == Changed(1, "f does not run yet")
    assert told(mover, Up("f", 1)) == []


def test_a_change_may_only_end_or_only_start_something(mover: Mover) -> None:
    assert told(mover, Ask(1), Change(1, (End("f", "a"),), ()))[0] == Tell(EndCleanly("f", 1))
    assert told(mover, CLEAN)[0] == Decide(1)
    assert told(mover, Decided(1)) == [Tell(Unwant("f")), CancelTimer(KEY), Changed(1)]
    told(mover, Ask(2), Change(2, (), (Start("g", "a"),)))
    assert told(mover, FragmentPrepared(2, "g"))[0] == Send("a", CarryOver(2, "g"))


def test_when_the_run_ends_every_change_is_called_what_the_journal_has(mover: Mover) -> None:
    deciding(mover)
    told(mover, Ask(2))
    assert mover.leave() == [CancelTimer("change 2"), NotChanged(2, "the run ends")]
    assert told(mover, Decided(1)) == [CancelTimer(KEY), Changed(1, "the run ends")]
    assert told(mover, Ask(3)) == [CancelTimer("change 3"), NotChanged(3, "the run ends")]


def test_word_of_a_change_that_is_over_is_passed_over_and_what_is_ready_for_it_is_dropped(mover: Mover) -> None:
    told(mover, Ask(1), Moot(1, "no"))
    for late in (MOVE, CLEAN, Decided(1), Up("f", 1), Cancel(1), Carried(1, "f"), ChannelIsDrained(1, "s1", "g")):
        assert told(mover, late) == []
    assert told(mover, FragmentPrepared(1, "f")) == [DISCARD]
    assert mover.rows == {}


def test_what_was_lost_with_its_site_is_not_asked_to_end_and_goes_on_elsewhere_at_once(mover: Mover) -> None:
    assert told(mover, Ask(1), Change(1, (), (Start("f", "b"),), ("f",)))[0] == Decide(1), "nothing of it is touched"
    wanted = told(mover, Decided(1))[0]
    assert wanted == Tell(Want("f", "b", least_epoch(1), 1, lost=True))
    assert told(mover, Up("f", 1)) == [CancelTimer(KEY), Changed(1)]


@pytest.mark.parametrize("fact", [CLEAN, Up("f", 1), Moot(1, "no"), Ask(1), Decided(1)])
def test_word_that_cannot_come_in_a_state_is_no_legal_step(mover: Mover, fact: Input) -> None:
    told(mover, Ask(1), MOVE)
    with pytest.raises(IllegalStep, match="in state preparing"):
        told(mover, fact)
