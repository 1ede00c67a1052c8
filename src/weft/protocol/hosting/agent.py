"""The agent: what one site does about the fragments it is asked to run.

1. Of one fragment at most one launch is alive here, and no epoch is launched twice.
2. Every start, stop and move is one step: remember the epoch, fence the writers before it, halt what is alive, launch.
3. An epoch below the greatest seen is refused. The greatest itself, asked again, is answered with how it is doing.
4. A stop counts for its epoch even where that was never launched: a start that comes late finds it stopped.
5. The greatest epoch seen outlives a crash of the agent, nothing else does: an epoch from before has failed.
6. Launching and halting wait for the body, under a timer. What does not start in time is halted; what does not halt
   when asked several times is stuck: it is fenced, and nothing is launched beside it.
7. A clean stop lets the batch under way be committed: the fence comes after the end, not before it. What takes too
   long, or is asked to stop or start otherwise in the meantime, is fenced and halted by force, and is not clean.
8. What a fragment is, it knows from the last start alone, and where that was forgotten in a crash, from the stop. Where
   a launch came to, it hands on as the body told it: when it runs, when its last batch begins, and when it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from weft.protocol.hosting.words import (
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
from weft.protocol.machine import (
    CancelTimer,
    Effect,
    Input,
    Machine,
    Received,
    Row,
    Send,
    SetTimer,
    Step,
    Steps,
    TimerFired,
)
from weft.protocol.messages import (
    REASON_CHARS_MAX,
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

NO_TASK = Parcel()
ABSENT, LAUNCHING, RUNNING, FINISHING, HALTING = "absent", "launching", "running", "finishing", "halting"
STOPPED, FAILED, DONE, STUCK = "stopped", "failed", "done", "stuck"
STATES = (ABSENT, LAUNCHING, RUNNING, FINISHING, HALTING, STOPPED, FAILED, DONE, STUCK)
_ALIVE = (LAUNCHING, RUNNING, FINISHING)
_ENDED = (ABSENT, STOPPED, FAILED, DONE)


class AgentLimits(msgspec.Struct, frozen=True):
    """How long an agent waits for its body, and how often it asks."""

    launch_ms_max: int = 120_000
    halt_ms_max: int = 15_000
    halt_tries_max: int = 3
    clean_ms_max: int = 60_000


class Hosted(Row, array_like=True):
    """One fragment: `seen` is the greatest epoch asked for, `epoch` the launch alive, `next` the one to follow it.

    `clean` says of what halts that no force was used yet, of what is stopped that it ended at a batch boundary.
    `task` says what the fragment is, `stands` how others may go on from it.
    """

    state: str = ABSENT
    seen: int = 0
    epoch: int = 0
    next: int = 0
    owner: str = ""
    reason: str = ""
    permanent: bool = False
    tries: int = 0
    clean: bool = False
    task: Parcel = NO_TASK
    stands: Parcel = NO_TASK


class Agent(Machine):
    """Runs what it is asked to run; `remembered` is what an earlier life of it remembered."""

    __slots__ = ("limits",)
    ROW = Hosted
    STEPS: ClassVar[Steps]

    def __init__(
        self, name: str, remembered: Mapping[str, int] | None = None, limits: AgentLimits | None = None
    ) -> None:
        super().__init__(name)
        self.limits = limits or AgentLimits()
        for fragment, epoch in sorted((remembered or {}).items()):
            self.rows[fragment] = Hosted(seen=epoch)

    def late(self, fragment: str, row: Hosted, input: Any) -> list[Effect] | None:
        """A fact about a launch that is no longer the one looked after is passed over."""
        return [] if not isinstance(input, Received | TimerFired) and input.epoch != row.epoch else None

    def on_start(self, fragment: str, row: Hosted, input: Received) -> list[Effect]:
        """A higher epoch takes over; the present one is told of; a lower one is refused."""
        epoch: int = input.message.epoch  # type: ignore[attr-defined]
        if epoch < row.seen:
            return [Send(input.sender, FragmentRefused(fragment, epoch, row.seen))]
        row.owner = input.sender
        if epoch == row.seen:
            return [Send(input.sender, self.answer(fragment, row))]
        row.seen, row.task = epoch, input.message.task  # type: ignore[attr-defined]
        effects: list[Effect] = [Remember(fragment, epoch), Fence(fragment, epoch, row.task)]
        if row.state == STUCK:
            return [*effects, Send(row.owner, self.answer(fragment, row))]
        if row.state in _ALIVE:
            effects += self.halt(fragment, row)
        if row.state == HALTING:
            row.next = epoch
            return effects
        return effects + self.launch(fragment, row, epoch)

    def on_stop(self, fragment: str, row: Hosted, input: Received) -> list[Effect]:
        """The epoch is fenced and, where it lives, halted; nothing of it is launched any more."""
        epoch: int = input.message.epoch  # type: ignore[attr-defined]
        if epoch < row.seen:
            return [Send(input.sender, FragmentRefused(fragment, epoch, row.seen))]
        row.owner = input.sender
        if input.message.clean and epoch == row.seen and row.state in _ALIVE:  # type: ignore[attr-defined]
            return self.finish(fragment, row, input.message.tells)  # type: ignore[attr-defined]
        effects: list[Effect] = [Remember(fragment, epoch)] if epoch > row.seen else []
        if epoch > row.seen or row.task == NO_TASK:
            row.task = input.message.task  # type: ignore[attr-defined]
        row.clean = epoch == row.seen and (row.clean or row.state == DONE)
        row.seen, row.next = epoch, 0
        effects.append(Fence(fragment, epoch + 1, row.task))
        if row.state in _ALIVE:
            return effects + self.halt(fragment, row)
        if row.state in _ENDED:
            row.state, row.epoch = STOPPED, epoch
        # What is stuck stands behind the fence: it is as good as stopped.
        answer = FragmentStopped(fragment, epoch) if row.state == STUCK else self.answer(fragment, row)
        return [*effects, Send(row.owner, answer)]

    def on_launched(self, fragment: str, row: Hosted, input: Launched) -> list[Effect]:
        """The launch runs."""
        row.state, row.stands = RUNNING, input.stands
        return [CancelTimer(fragment), Send(row.owner, self.answer(fragment, row))]

    def on_died(self, fragment: str, row: Hosted, input: Died) -> list[Effect]:
        """The launch ended unasked."""
        row.state, row.reason, row.permanent = FAILED, input.reason[:REASON_CHARS_MAX], input.permanent
        return [CancelTimer(fragment), Send(row.owner, self.answer(fragment, row))]

    def on_drained(self, fragment: str, row: Hosted, input: Drained) -> list[Effect]:
        """The launch has nothing left to do."""
        row.state, row.stands = DONE, input.stands
        return [CancelTimer(fragment), Send(row.owner, self.answer(fragment, row))]

    def on_refused(self, fragment: str, row: Hosted, input: Refused) -> list[Effect]:
        """A later epoch runs elsewhere; this one never will."""
        row.state = STOPPED
        return [CancelTimer(fragment), Send(row.owner, FragmentRefused(fragment, row.epoch, input.fence))]

    def on_ended(self, fragment: str, row: Hosted, input: Input) -> list[Effect]:
        """What was halting is gone: the next epoch may launch."""
        if row.next:
            return self.launch(fragment, row, row.next)
        row.state, row.epoch = FAILED if row.reason else STOPPED, row.seen
        return [CancelTimer(fragment), Send(row.owner, self.answer(fragment, row))]

    def on_last_batch(self, fragment: str, row: Hosted, input: LastBatchBegun) -> list[Effect]:
        """What is to end cleanly is about to: who waits for its end may know where that will be."""
        return [Send(row.owner, FragmentFinishing(fragment, row.epoch, input.stands))]

    def on_finished(self, fragment: str, row: Hosted, input: Input) -> list[Effect]:
        """What was to end cleanly has ended, cleanly or not."""
        row.state, row.clean = STOPPED, isinstance(input, Drained) or (isinstance(input, Halted) and input.clean)
        if isinstance(input, Drained | Halted):
            row.stands = input.stands
        fence = Fence(fragment, row.epoch + 1, row.task)
        return [CancelTimer(fragment), fence, Send(row.owner, self.answer(fragment, row))]

    def on_finish_timer(self, fragment: str, row: Hosted, input: TimerFired) -> list[Effect]:
        """What does not come to a batch boundary in time is ended by force."""
        return [Fence(fragment, row.epoch + 1, row.task), *self.halt(fragment, row)]

    def on_launch_timer(self, fragment: str, row: Hosted, input: TimerFired) -> list[Effect]:
        """What has not started in time is ended."""
        fence = Fence(fragment, row.epoch + 1, row.task)
        return [fence, *self.halt(fragment, row, f"not launched within {self.limits.launch_ms_max} ms")]

    def on_halt_timer(self, fragment: str, row: Hosted, input: TimerFired) -> list[Effect]:
        """Halting is asked for again, so many times."""
        if row.tries < self.limits.halt_tries_max:
            row.tries += 1
            return [Halt(fragment, row.epoch), SetTimer(fragment, self.limits.halt_ms_max)]
        row.state, row.next = STUCK, 0
        return [Send(row.owner, self.answer(fragment, row))]

    def ignore(self, fragment: str, row: Hosted, input: Input) -> list[Effect]:
        """A launch may end by itself while it is being halted: then both facts come."""
        return []

    def launch(self, fragment: str, row: Hosted, epoch: int) -> list[Effect]:
        """One launch, under a timer."""
        assert epoch == row.seen, "only the greatest epoch is launched"
        row.state, row.epoch, row.next, row.reason, row.permanent = LAUNCHING, epoch, 0, "", False
        row.clean, row.stands = False, NO_TASK
        return [Launch(fragment, epoch, row.task), SetTimer(fragment, self.limits.launch_ms_max)]

    def finish(self, fragment: str, row: Hosted, tells: bool) -> list[Effect]:
        """One clean halt, under a timer; said again, it goes on."""
        if row.state == FINISHING:
            return [Send(row.owner, self.answer(fragment, row))]
        row.state = FINISHING
        return [Halt(fragment, row.epoch, clean=True, tells=tells), SetTimer(fragment, self.limits.clean_ms_max)]

    def halt(self, fragment: str, row: Hosted, reason: str = "") -> list[Effect]:
        """One halt, under a timer; with a reason it was a failure."""
        row.state, row.reason, row.permanent, row.tries = HALTING, reason, False, 1
        return [Halt(fragment, row.epoch), SetTimer(fragment, self.limits.halt_ms_max)]

    def answer(self, fragment: str, row: Hosted) -> Message:
        """How the greatest epoch seen is doing."""
        match row.state:
            case "running":
                return FragmentRunning(fragment, row.seen, row.stands)
            case "stopped":
                return FragmentStopped(fragment, row.seen, row.clean, row.stands if row.clean else NO_TASK)
            case "done":
                return FragmentDone(fragment, row.seen, row.stands)
            case "failed":
                return FragmentFailed(fragment, row.seen, row.reason, row.permanent)
            case "stuck":
                return FragmentFailed(fragment, row.seen, f"epoch {row.epoch} does not halt", True)
            case "absent":
                return FragmentFailed(fragment, row.seen, "the agent was restarted")
        return FragmentPending(fragment, row.seen)


_ENDS = (Halted, Died, Drained)
Agent.STEPS = {
    **{(state, StartFragment): Step(Agent.on_start, (state, LAUNCHING)) for state in _ENDED},
    **{(state, StartFragment): Step(Agent.on_start, (state, HALTING)) for state in _ALIVE},
    **{(state, StartFragment): Step(Agent.on_start, (state,)) for state in (HALTING, STUCK)},
    **{(state, StopFragment): Step(Agent.on_stop, (state, STOPPED)) for state in _ENDED},
    **{(state, StopFragment): Step(Agent.on_stop, (state, FINISHING, HALTING)) for state in _ALIVE},
    **{(state, StopFragment): Step(Agent.on_stop, (state,)) for state in (HALTING, STUCK)},
    (LAUNCHING, Launched): Step(Agent.on_launched, (RUNNING,)),
    (LAUNCHING, Refused): Step(Agent.on_refused, (STOPPED,)),
    (LAUNCHING, TimerFired): Step(Agent.on_launch_timer, (HALTING,)),
    **{(state, Died): Step(Agent.on_died, (FAILED,)) for state in (LAUNCHING, RUNNING)},
    **{(state, Drained): Step(Agent.on_drained, (DONE,)) for state in (LAUNCHING, RUNNING)},
    (FINISHING, Launched): Step(Agent.ignore, (FINISHING,)),
    (FINISHING, LastBatchBegun): Step(Agent.on_last_batch, (FINISHING,)),
    **{(state, LastBatchBegun): Step(Agent.ignore, (state,)) for state in (HALTING, STUCK, STOPPED, FAILED)},
    (FINISHING, TimerFired): Step(Agent.on_finish_timer, (HALTING,)),
    **{(FINISHING, fact): Step(Agent.on_finished, (STOPPED,)) for fact in (*_ENDS, Refused)},
    (HALTING, Launched): Step(Agent.ignore, (HALTING,)),
    (HALTING, TimerFired): Step(Agent.on_halt_timer, (HALTING, STUCK)),
    **{(HALTING, fact): Step(Agent.on_ended, (LAUNCHING, STOPPED, FAILED)) for fact in (*_ENDS, Refused)},
    (STUCK, Launched): Step(Agent.ignore, (STUCK,)),
    **{(STUCK, fact): Step(Agent.on_ended, (STOPPED, FAILED)) for fact in (*_ENDS, Refused)},
    **{(state, fact): Step(Agent.ignore, (state,)) for state in (STOPPED, FAILED, DONE) for fact in _ENDS},
}
