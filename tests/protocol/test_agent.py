"""The agent's rules, one test per claim."""

from __future__ import annotations

from weft.protocol import CancelTimer, Effect, Input, Received, Send, SetTimer, TimerFired
from weft.protocol.hosting import (
    Agent,
    AgentLimits,
    Died,
    Drained,
    Fence,
    Halt,
    Halted,
    LastBatchBegun,
    Launch,
    Launched,
    Refused,
    Remember,
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

TASK, HERE = Parcel("what it is"), Parcel("where it came to")
LIMITS = AgentLimits(launch_ms_max=1000, halt_ms_max=100, halt_tries_max=2, clean_ms_max=500)


def told(*inputs: Input, site: Agent | None = None) -> list[Effect]:
    """What an agent asks for after the last of some inputs."""
    site = site or Agent("a", limits=LIMITS)
    effects: list[Effect] = []
    for input in inputs:
        effects = site.handle(input)
    return effects


def start(epoch: int) -> Input:
    return Received("c", StartFragment("f", epoch))


def stop(epoch: int, clean: bool = False) -> Input:
    return Received("c", StopFragment("f", epoch, clean))


def says(message: Message) -> Send:
    return Send("c", message)


def test_a_start_remembers_fences_and_launches_in_that_order() -> None:
    assert told(start(1)) == [Remember("f", 1), Fence("f", 1), Launch("f", 1), SetTimer("f", 1000)]


def test_a_launch_that_runs_is_reported_and_no_longer_waited_for() -> None:
    assert told(start(1), Launched("f", 1)) == [CancelTimer("f"), says(FragmentRunning("f", 1))]


def test_a_start_said_again_is_answered_and_never_launched_twice() -> None:
    assert told(start(1), start(1)) == [says(FragmentPending("f", 1))]
    assert told(start(1), Launched("f", 1), start(1)) == [says(FragmentRunning("f", 1))]
    assert told(start(1), Died("f", 1, "x", True), start(1)) == [says(FragmentFailed("f", 1, "x", True))]
    assert told(start(1), Launched("f", 1), Drained("f", 1), start(1)) == [says(FragmentDone("f", 1))]
    assert told(start(1), stop(1), Halted("f", 1), start(1)) == [says(FragmentStopped("f", 1))]


def test_a_lower_epoch_is_refused_with_the_greatest_seen() -> None:
    assert told(start(3), start(2)) == [says(FragmentRefused("f", 2, 3))]
    assert told(start(3), stop(2)) == [says(FragmentRefused("f", 2, 3))]


def test_a_higher_epoch_fences_and_halts_the_older_before_it_launches() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), Launched("f", 1), start(2), site=site) == [
        Remember("f", 2),
        Fence("f", 2),
        Halt("f", 1),
        SetTimer("f", 100),
    ]
    assert told(Halted("f", 1), site=site) == [Launch("f", 2), SetTimer("f", 1000)]


def test_only_the_latest_of_several_epochs_is_launched_after_a_halt() -> None:
    assert told(start(1), start(2), start(3), Halted("f", 1)) == [Launch("f", 3), SetTimer("f", 1000)]


def test_a_stop_fences_then_halts_then_reports() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), Launched("f", 1), stop(1), site=site) == [Fence("f", 2), Halt("f", 1), SetTimer("f", 100)]
    assert told(Halted("f", 1), site=site) == [CancelTimer("f"), says(FragmentStopped("f", 1))]


def test_a_stop_before_its_start_is_remembered() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(stop(4), site=site) == [Remember("f", 4), Fence("f", 5), says(FragmentStopped("f", 4))]
    assert told(start(4), site=site) == [says(FragmentStopped("f", 4))]


def test_a_stop_while_halting_for_a_newer_epoch_cancels_its_launch() -> None:
    assert told(start(1), start(2), stop(2), Halted("f", 1)) == [CancelTimer("f"), says(FragmentStopped("f", 2))]


def test_a_launch_that_dies_while_it_is_halted_counts_as_halted_and_the_second_fact_is_passed_over() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), stop(1), Died("f", 1, "fenced"), site=site)[-1] == says(FragmentStopped("f", 1))
    assert told(Halted("f", 1), site=site) == []


def test_facts_of_an_older_launch_change_nothing() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), start(2), Halted("f", 1), Died("f", 1, "late"), site=site) == []
    assert site.rows["f"].state == "launching"


def test_a_launch_below_the_fence_is_reported_with_the_fence_to_exceed() -> None:
    assert told(start(1), Refused("f", 1, 7)) == [CancelTimer("f"), says(FragmentRefused("f", 1, 7))]


def test_a_launch_that_does_not_start_in_time_is_fenced_halted_and_reported_as_failed() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), TimerFired("f"), site=site) == [Fence("f", 2), Halt("f", 1), SetTimer("f", 100)]
    assert told(Halted("f", 1), site=site)[-1] == says(FragmentFailed("f", 1, "not launched within 1000 ms"))


def test_what_does_not_halt_is_stuck_and_nothing_is_launched_beside_it() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), start(2), TimerFired("f"), site=site) == [Halt("f", 1), SetTimer("f", 100)]
    stuck = FragmentFailed("f", 2, "epoch 1 does not halt", True)
    assert told(TimerFired("f"), site=site) == [says(stuck)]
    assert Launch("f", 3) not in told(start(3), site=site)
    assert told(stop(3), site=site) == [Fence("f", 4), says(FragmentStopped("f", 3))]
    told(Halted("f", 1), site=site)
    assert Launch("f", 4) in told(start(4), site=site)


def test_after_a_crash_the_epoch_from_before_has_failed_and_only_a_higher_one_launches() -> None:
    site = Agent("a", {"f": 3}, LIMITS)
    assert told(start(3), site=site) == [says(FragmentFailed("f", 3, "the agent was restarted"))]
    assert told(start(2), site=site) == [says(FragmentRefused("f", 2, 3))]
    assert told(stop(3), site=site) == [Fence("f", 4), says(FragmentStopped("f", 3))]
    assert Launch("f", 4) in told(start(4), site=site)


def test_a_clean_stop_halts_at_a_batch_boundary_and_fences_only_then() -> None:
    site = Agent("a", limits=LIMITS)
    clean = told(start(1), Launched("f", 1), stop(1, clean=True), site=site)
    assert clean == [Halt("f", 1, clean=True), SetTimer("f", 500)]
    ended = told(Halted("f", 1, clean=True), site=site)
    assert ended == [CancelTimer("f"), Fence("f", 2), says(FragmentStopped("f", 1, clean=True))]
    assert told(stop(1, clean=True), site=site)[-1] == says(FragmentStopped("f", 1, clean=True))


def test_a_clean_stop_said_again_goes_on() -> None:
    assert told(start(1), stop(1, clean=True), stop(1, clean=True)) == [says(FragmentPending("f", 1))]


def test_what_ends_otherwise_while_it_is_to_end_cleanly_is_not_clean_unless_it_drained() -> None:
    unclean = says(FragmentStopped("f", 1))
    assert told(start(1), stop(1, clean=True), Halted("f", 1))[-1] == unclean
    assert told(start(1), stop(1, clean=True), Died("f", 1, "x"))[-1] == unclean
    assert told(start(1), Died("f", 1, "x"), stop(1, clean=True))[-1] == unclean
    drained = says(FragmentStopped("f", 1, clean=True))
    assert told(start(1), stop(1, clean=True), Drained("f", 1))[-1] == drained
    assert told(start(1), Drained("f", 1), stop(1, clean=True))[-1] == drained


def test_what_finds_no_batch_boundary_in_time_is_fenced_and_halted_by_force() -> None:
    site = Agent("a", limits=LIMITS)
    forced = [Fence("f", 2), Halt("f", 1), SetTimer("f", 100)]
    assert told(start(1), stop(1, clean=True), TimerFired("f"), site=site) == forced
    assert told(Halted("f", 1, clean=True), site=site)[-1] == says(FragmentStopped("f", 1))


def test_another_order_ends_by_force_what_was_to_end_cleanly() -> None:
    forced = [Fence("f", 2), Halt("f", 1), SetTimer("f", 100)]
    assert told(start(1), stop(1, clean=True), stop(1)) == forced
    assert told(start(1), stop(1, clean=True), start(2)) == [Remember("f", 2), *forced]


def test_a_clean_end_is_forgotten_with_the_next_launch_and_with_a_crash() -> None:
    ended = (start(1), stop(1, clean=True), Halted("f", 1, clean=True))
    assert told(*ended, start(2), Died("f", 2, "x"), stop(2, clean=True))[-1] == says(FragmentStopped("f", 2))
    assert told(stop(1, clean=True), site=Agent("a", {"f": 1}, LIMITS))[-1] == says(FragmentStopped("f", 1))


def test_what_a_fragment_is_comes_with_its_start_and_goes_to_fence_and_launch() -> None:
    site = Agent("a", limits=LIMITS)
    begun = told(Received("c", StartFragment("f", 1, TASK)), site=site)
    assert begun[1:3] == [Fence("f", 1, TASK), Launch("f", 1, TASK)]
    other = Received("c", StopFragment("f", 1, task=HERE))
    assert told(other, site=site)[0] == Fence("f", 2, TASK), "what was launched is fenced, not what is meant by now"


def test_an_agent_that_has_forgotten_what_a_fragment_is_knows_it_from_the_stop() -> None:
    stopped = told(Received("c", StopFragment("f", 3, task=TASK)), site=Agent("a", {"f": 3}, LIMITS))
    assert stopped == [Fence("f", 4, TASK), says(FragmentStopped("f", 3))]


def test_where_a_launch_came_to_is_told_while_it_runs_and_with_its_clean_end_alone() -> None:
    site = Agent("a", limits=LIMITS)
    assert told(start(1), Launched("f", 1, HERE), site=site)[-1] == says(FragmentRunning("f", 1, HERE))
    assert told(start(1), site=site) == [says(FragmentRunning("f", 1, HERE))]
    told(stop(1, clean=True), site=site)
    assert told(Halted("f", 1, True, TASK), site=site)[-1] == says(FragmentStopped("f", 1, True, TASK))
    forced = told(start(1), Launched("f", 1, HERE), stop(1), Halted("f", 1, True, HERE))
    assert forced[-1] == says(FragmentStopped("f", 1))


def test_that_the_last_batch_has_begun_is_told_where_it_was_asked_for() -> None:
    site = Agent("a", limits=LIMITS)
    asked = Received("c", StopFragment("f", 1, clean=True, tells=True))
    assert told(start(1), Launched("f", 1), asked, site=site)[0] == Halt("f", 1, clean=True, tells=True)
    assert told(LastBatchBegun("f", 1, HERE), site=site) == [says(FragmentFinishing("f", 1, HERE))]
    told(Halted("f", 1, True, HERE), site=site)
    assert told(LastBatchBegun("f", 1, HERE), site=site) == []
