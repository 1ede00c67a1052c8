"""The conductor's rules, one test per claim."""

from __future__ import annotations

import pytest

from weft.protocol import CancelTimer, Effect, Input, Received, Send, SetTimer, TimerFired
from weft.protocol.hosting import (
    AllDone,
    AllRunning,
    AllStopped,
    Conductor,
    ConductorLimits,
    EndCleanly,
    Found,
    FragmentEnded,
    FragmentFinishes,
    FragmentIsDown,
    FragmentUp,
    GaveUp,
    Remember,
    Unwant,
    Want,
)
from weft.protocol.messages import (
    FragmentDone,
    FragmentFailed,
    FragmentFinishing,
    FragmentPending,
    FragmentRefused,
    FragmentRunning,
    FragmentStopped,
    Message,
    StartFragment,
    StopFragment,
)
from weft.protocol.words import Parcel

LIMITS = ConductorLimits(answer_ms_max=100, tries_max=3, poll_ms=200, restarts_max=2, restart_ms=10, steady_polls=2)
WAIT = TimerFired("f")
TASK, HERE = Parcel("what it is"), Parcel("where it came to")


@pytest.fixture
def conductor() -> Conductor:
    return Conductor("c", limits=LIMITS)


def told(conductor: Conductor, *inputs: Input | Message) -> list[Effect]:
    """What a conductor asks for after the last of some inputs; messages come from site a."""
    effects: list[Effect] = []
    for input in inputs:
        effects = conductor.handle(Received("a", input) if isinstance(input, Message) else input)
    return effects


def running(epoch: int = 1, fragment: str = "f") -> Message:
    return FragmentRunning(fragment, epoch)


def test_a_want_remembers_a_new_epoch_and_starts_it(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a")) == [
        Remember("f", 1),
        Send("a", StartFragment("f", 1)),
        SetTimer("f", 100),
    ]


def test_epochs_go_on_from_what_an_earlier_life_remembered() -> None:
    assert told(Conductor("c", {"f": 7}), Want("f", "a"))[0] == Remember("f", 8)


def test_a_start_without_an_answer_is_said_again_so_many_times_and_then_given_up(conductor: Conductor) -> None:
    again = [Send("a", StartFragment("f", 1)), SetTimer("f", 100)]
    assert told(conductor, Want("f", "a"), WAIT) == again
    assert told(conductor, WAIT) == again
    assert told(conductor, WAIT) == [GaveUp("f", "site a does not answer", silent=True)]


def test_a_site_that_is_launching_is_waited_for_with_new_patience(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), WAIT, WAIT, FragmentPending("f", 1))
    assert told(conductor, WAIT) == [Send("a", StartFragment("f", 1)), SetTimer("f", 100)]


def test_all_running_is_said_once_when_the_last_one_runs(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), Want("g", "a"))
    assert told(conductor, running()) == [SetTimer("f", 200)]
    assert told(conductor, running(fragment="g")) == [SetTimer("g", 200), AllRunning()]
    assert told(conductor, running(fragment="g")) == []


def test_a_running_fragment_is_asked_after(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a"), running(), WAIT) == [Send("a", StartFragment("f", 1)), SetTimer("f", 200)]


def test_a_silent_site_is_given_up_also_while_running(conductor: Conductor) -> None:
    last = told(conductor, Want("f", "a"), running(), WAIT, WAIT, WAIT, WAIT)
    assert last == [GaveUp("f", "site a does not answer", silent=True)]


def test_a_failed_fragment_starts_again_with_a_higher_epoch_after_growing_delays_then_is_given_up(
    conductor: Conductor,
) -> None:
    told(conductor, Want("f", "a"), running())
    assert told(conductor, FragmentFailed("f", 1, "x")) == [FragmentIsDown("f", "x"), SetTimer("f", 10)]
    assert told(conductor, WAIT)[1] == Send("a", StartFragment("f", 2))
    assert told(conductor, FragmentFailed("f", 2, "x")) == [FragmentIsDown("f", "x"), SetTimer("f", 20)]
    assert told(conductor, WAIT, FragmentFailed("f", 3, "x")) == [CancelTimer("f"), GaveUp("f", "x")]


def test_a_permanent_failure_is_given_up_at_once(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a"), FragmentFailed("f", 1, "x", True))[-1] == GaveUp("f", "x")


def test_a_fragment_that_runs_steadily_is_forgiven(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), FragmentFailed("f", 1, "x"), WAIT, FragmentFailed("f", 2, "x"), WAIT)
    told(conductor, running(3), running(3), running(3))
    assert told(conductor, FragmentFailed("f", 3, "x")) == [FragmentIsDown("f", "x"), SetTimer("f", 10)]


def test_a_refused_epoch_is_followed_by_one_above_the_greatest(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), FragmentRefused("f", 1, 7))
    assert told(conductor, WAIT)[1] == Send("a", StartFragment("f", 8))


def test_an_unwanted_fragment_is_stopped_and_all_stopped_is_said(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running())
    assert told(conductor, Unwant("f")) == [Send("a", StopFragment("f", 1)), SetTimer("f", 100)]
    assert told(conductor, FragmentStopped("f", 1)) == [CancelTimer("f"), AllStopped()]


def test_a_failure_is_not_taken_for_the_answer_to_a_stop(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a"), Unwant("f"), FragmentFailed("f", 1, "the agent was restarted")) == []


def test_a_want_elsewhere_stops_here_first_and_then_starts_there(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running())
    assert told(conductor, Want("f", "b")) == [Send("a", StopFragment("f", 1)), SetTimer("f", 100)]
    assert told(conductor, FragmentStopped("f", 1)) == [
        Remember("f", 2),
        Send("b", StartFragment("f", 2)),
        SetTimer("f", 100),
    ]


def test_a_move_from_a_silent_site_goes_ahead_behind_a_higher_epoch(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running(), Want("f", "b"), WAIT, WAIT)
    assert told(conductor, WAIT)[1] == Send("b", StartFragment("f", 2))


def test_a_want_where_it_already_runs_changes_nothing(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a"), running(), Want("f", "a")) == []


def test_all_done_is_said_when_every_wanted_fragment_drained(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), Want("g", "a"), running(), running(fragment="g"))
    assert told(conductor, FragmentDone("f", 1)) == [CancelTimer("f")]
    assert told(conductor, FragmentDone("g", 1)) == [CancelTimer("g"), AllDone()]


def test_a_fragment_that_ends_while_it_moves_is_done(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a"), Want("f", "b"), FragmentDone("f", 1)) == [CancelTimer("f"), AllDone()]


def test_what_runs_under_another_epoch_is_told_to_stop(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), FragmentFailed("f", 1, "x"), WAIT)
    assert told(conductor, running(1)) == [Send("a", StopFragment("f", 1))]
    assert told(conductor, FragmentFailed("f", 1, "late")) == []


def test_what_was_given_up_and_speaks_after_all_is_told_to_stop(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), FragmentFailed("f", 1, "x", True))
    assert told(conductor, running()) == [Send("a", StopFragment("f", 1))]


def test_what_was_given_up_with_a_silent_site_and_runs_after_all_is_taken_on(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), WAIT, WAIT, WAIT)
    assert told(conductor, running()) == [SetTimer("f", 200), AllRunning()]


def test_a_silent_site_that_is_heard_of_is_told_the_same_start_again(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), WAIT, WAIT, WAIT)
    assert told(conductor, Want("f", "a")) == [Send("a", StartFragment("f", 1)), SetTimer("f", 100)]
    told(conductor, WAIT, WAIT, WAIT)
    assert told(conductor, Want("f", "b"))[:2] == [Remember("f", 2), Send("b", StartFragment("f", 2))]


def test_what_was_given_up_starts_when_it_is_wanted_again(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), FragmentFailed("f", 1, "x", True))
    assert told(conductor, Want("f", "b"))[1] == Send("b", StartFragment("f", 2))


def test_a_conductor_back_from_a_crash_does_not_call_all_stopped_what_it_has_not_stopped() -> None:
    assert told(Conductor("c", {"f": 1}), Unwant("f")) == []


def test_a_fragment_starts_above_the_least_epoch_it_is_wanted_with(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a", least=50))[0] == Remember("f", 51)
    told(conductor, running(51), Unwant("f"), FragmentStopped("f", 51))
    assert told(conductor, Want("f", "a", least=50))[0] == Remember("f", 52)


def test_a_change_is_told_once_when_what_it_wants_runs_or_is_done(conductor: Conductor) -> None:
    told(conductor, Want("f", "a", change=3))
    assert FragmentUp("f", 3) in told(conductor, running())
    assert told(conductor, running()) == []
    assert told(conductor, Want("f", "a", change=4)) == [FragmentUp("f", 4)]
    told(conductor, Want("g", "a", change=5))
    assert FragmentUp("g", 5) in told(conductor, FragmentDone("g", 1))


def test_a_clean_end_is_asked_for_until_answered_and_then_rests(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running())
    clean = Send("a", StopFragment("f", 1, clean=True))
    assert told(conductor, EndCleanly("f", 3)) == [clean, SetTimer("f", 100)]
    assert told(conductor, WAIT)[0] == clean
    stopped = FragmentStopped("f", 1, clean=True, stands=HERE)
    assert told(conductor, stopped) == [CancelTimer("f"), FragmentEnded("f", 3, True, 1, HERE)]
    assert told(conductor, Unwant("f")) == [AllStopped()]


def test_what_drained_has_ended_cleanly(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running(), FragmentDone("f", 1, HERE))
    assert told(conductor, EndCleanly("f", 3)) == [FragmentEnded("f", 3, True, 1, HERE)]
    told(conductor, Want("g", "a"), running(fragment="g"), EndCleanly("g", 3))
    assert told(conductor, FragmentDone("g", 1, HERE))[1] == FragmentEnded("g", 3, True, 1, HERE)


def test_starts_and_stops_carry_the_task_and_one_wanted_without_a_task_keeps_its_own(conductor: Conductor) -> None:
    assert told(conductor, Want("f", "a", task=TASK))[1] == Send("a", StartFragment("f", 1, TASK))
    assert told(conductor, WAIT)[0] == Send("a", StartFragment("f", 1, TASK))
    assert told(conductor, running(), Want("f", "b"))[0] == Send("a", StopFragment("f", 1, task=TASK))
    assert told(conductor, FragmentStopped("f", 1))[1] == Send("b", StartFragment("f", 2, TASK))
    assert told(conductor, Want("f", "b", lost=True, task=HERE))[1] == Send("b", StartFragment("f", 3, HERE))


def test_a_change_that_waits_for_the_last_batch_is_told_that_it_has_begun(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running())
    stop = told(conductor, EndCleanly("f", 3, tells=True))[0]
    assert stop == Send("a", StopFragment("f", 1, clean=True, tells=True))
    assert told(conductor, FragmentFinishing("f", 1, HERE)) == [FragmentFinishes("f", 3, 1, HERE)]
    told(conductor, Want("f", "a", change=3))
    assert told(conductor, FragmentFinishing("f", 1, HERE)) == [], "it is wanted again"


def test_silence_a_refusal_and_a_failure_are_no_clean_ends(conductor: Conductor) -> None:
    unclean = FragmentEnded("f", 3, False)
    told(conductor, Want("f", "a"), running(), EndCleanly("f", 3), WAIT, WAIT)
    assert told(conductor, WAIT) == [unclean]
    told(conductor, Want("f", "a"), running(2), EndCleanly("f", 3))
    assert unclean in told(conductor, FragmentRefused("f", 2, 9))
    told(conductor, Want("f", "a"), running(10), FragmentFailed("f", 10, "x"), EndCleanly("f", 3))
    assert unclean in told(conductor, FragmentStopped("f", 10))


def test_what_is_wanted_again_while_it_ends_cleanly_starts_again(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running(), EndCleanly("f", 3), Want("f", "a", change=3))
    assert told(conductor, WAIT)[0] == Send("a", StopFragment("f", 1))
    assert told(conductor, FragmentStopped("f", 1, clean=True))[1] == Send("a", StartFragment("f", 2))


def test_what_was_lost_with_its_site_starts_elsewhere_without_waiting_for_it(conductor: Conductor) -> None:
    told(conductor, Want("f", "a"), running())
    assert told(conductor, Want("f", "b", 100, 1, lost=True)) == [
        Remember("f", 101),
        Send("b", StartFragment("f", 101)),
        SetTimer("f", 100),
    ]
    assert told(conductor, running()) == [Send("a", StopFragment("f", 1))]  # it was not gone after all


def test_what_an_earlier_life_started_and_still_runs_is_taken_on_under_its_epoch() -> None:
    conductor = Conductor("c", {"f": 7}, LIMITS)
    said = [Send("a", StartFragment("f", 7, TASK)), SetTimer("f", 100)]
    assert told(conductor, Found("f", "a", 7, 0, TASK)) == said, "said again, a start only asks after it"
    assert told(conductor, running(7)) == [SetTimer("f", 200), AllRunning()]
    assert conductor.rows["f"].epoch == 7


def test_what_is_found_under_another_epoch_than_the_greatest_starts_anew() -> None:
    conductor = Conductor("c", {"f": 9}, LIMITS)
    assert told(conductor, Found("f", "a", 7, 0, TASK))[:2] == [
        Remember("f", 10),
        Send("a", StartFragment("f", 10, TASK)),
    ]


def test_what_was_found_and_has_ended_since_starts_anew() -> None:
    conductor = Conductor("c", {"f": 7}, LIMITS)
    told(conductor, Found("f", "a", 7, 0, TASK), FragmentFailed("f", 7, "the agent was restarted"))
    assert told(conductor, WAIT)[:2] == [Remember("f", 8), Send("a", StartFragment("f", 8, TASK))]
