"""The conductor: keeps a set of fragments running at the sites where they are wanted.

1. Every start carries an epoch higher than any before it for that fragment, remembered before it is said.
2. A fragment that is wanted elsewhere is first stopped. Where the old site stays silent, the new start goes ahead: the
   fence of the higher epoch, not the old site's word, is what keeps two writers apart. One that was lost with its
   site starts elsewhere at once.
3. Every message is said again under a timer until it is answered, so many times; then the fragment is given up, as one
   whose site is silent: whoever hears of that site again wants it again, and the same start is said again, for it may
   have been heard. One that says meanwhile that it runs is taken on.
4. A running fragment is asked after from time to time (the start, said again), so a lost report is only late.
5. A fragment that failed starts again after a growing delay, so many times; a permanent failure ends it at once.
   A fragment that has run steadily is forgiven its earlier failures.
6. Word of another epoch than the present one changes nothing here; where it says that it runs, it is told to stop.
7. What is to end for a change is stopped at a batch boundary and then rests: only the word that comes with the answer
   says whether it ended cleanly, and where; silence, a failure or a restart of its agent count as not.
8. What an earlier life has started under the greatest epoch that it remembered, and runs where it is wanted, is taken
   on: that start is said again, which only asks after it. Under any other epoch it starts anew.
9. Every start and stop carries the task that says what the fragment is: no site knows it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from weft.protocol.hosting.words import (
    AllDone,
    AllRunning,
    AllStopped,
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
    FragmentDone,
    FragmentFailed,
    FragmentFinishing,
    FragmentPending,
    FragmentRefused,
    FragmentRunning,
    FragmentStopped,
    StartFragment,
    StopFragment,
)
from weft.protocol.words import Parcel

IDLE, STARTING, RUNNING, WAITING = "idle", "starting", "running", "waiting"
STOPPING, DONE, DOWN = "stopping", "done", "down"
NEW = "new"
STATES = (IDLE, STARTING, RUNNING, WAITING, STOPPING, DONE, DOWN)


class ConductorLimits(msgspec.Struct, frozen=True):
    """How long a conductor waits for an answer, how often it asks, and how often it starts again."""

    answer_ms_max: int = 2_000
    tries_max: int = 5
    poll_ms: int = 2_000
    restarts_max: int = 3
    restart_ms: int = 500
    steady_polls: int = 30


class Wanted(Row, array_like=True):
    """One fragment: where it is wanted, where its epoch was sent, and how patient one still is.

    `ends` is the change it is to end for, `starts` the one that is told when it runs; 0 where there is none. `task`
    says what it is, `stands` how others may go on from it, as its site last told. `silent` says of one that is down
    that its site did not answer: its epoch may run, or run yet.
    """

    state: str = IDLE
    want: str = ""
    site: str = ""
    epoch: int = 0
    tries: int = 0
    restarts: int = 0
    polls: int = 0
    least: int = 0
    ends: int = 0
    starts: int = 0
    tells: bool = False
    silent: bool = False
    task: Parcel = Parcel()
    stands: Parcel = Parcel()


class Conductor(Machine):
    """Wants fragments to run; `remembered` is what an earlier life of it remembered."""

    __slots__ = ("limits", "said")
    ROW = Wanted
    STEPS: ClassVar[Steps]

    def __init__(
        self, name: str, remembered: Mapping[str, int] | None = None, limits: ConductorLimits | None = None
    ) -> None:
        super().__init__(name)
        self.limits = limits or ConductorLimits()
        self.said = NEW
        for fragment, epoch in sorted((remembered or {}).items()):
            self.rows[fragment] = Wanted(epoch=epoch)

    def extra(self) -> str:
        """What was last said of all fragments together."""
        return self.said

    def set_extra(self, extra: str) -> None:
        """Takes it back."""
        self.said = extra

    def late(self, fragment: str, row: Wanted, input: Any) -> list[Effect] | None:
        """Word of another epoch is passed over, but what runs under it is told to stop."""
        if not isinstance(input, Received) or getattr(input.message, "epoch", row.epoch) == row.epoch:
            return None
        return self.on_unwanted(fragment, row, input) if isinstance(input.message, FragmentRunning) else []

    def on_want(self, fragment: str, row: Wanted, input: Want) -> list[Effect]:
        """Starts, moves, or takes note of where to start next."""
        row.want, row.least, row.ends, row.starts = input.site, max(row.least, input.least), 0, input.change
        same = input.task in (None, row.task) and row.want == row.site and row.least <= row.epoch
        row.task = row.task if input.task is None else input.task
        if row.state == DOWN and row.silent and same and not input.lost:
            row.restarts = 0
            return self.say_again(fragment, row)
        if row.state in (IDLE, DOWN) or (input.lost and row.state != DONE):
            row.restarts = 0
            return self.start(fragment, row)
        if row.state in (STARTING, RUNNING) and row.want != row.site:
            return self.stop(fragment, row)
        return self.up(fragment, row)

    def on_found(self, fragment: str, row: Wanted, input: Found) -> list[Effect]:
        """Takes on what runs already, where no later epoch was ever said."""
        if row.state != IDLE or row.epoch != input.epoch:
            return self.on_want(fragment, row, Want(fragment, input.site, input.least, task=input.task))
        row.want = row.site = input.site
        row.least, row.task = max(row.least, input.least), row.task if input.task is None else input.task
        row.restarts, row.stands = 0, Parcel()
        return self.say_again(fragment, row)

    def on_unwant(self, fragment: str, row: Wanted, input: Unwant) -> list[Effect]:
        """Stops what may be alive."""
        row.want, row.ends, row.starts = "", 0, 0
        if row.state in (STARTING, RUNNING, WAITING, DOWN):
            return self.stop(fragment, row)
        if row.state == DONE:
            row.state = IDLE
        return []

    def on_end(self, fragment: str, row: Wanted, input: EndCleanly) -> list[Effect]:
        """Stops at a batch boundary what may be alive; what has drained is at one."""
        row.ends, row.starts, row.tells = input.change, 0, input.tells
        if row.state in (STARTING, RUNNING, WAITING, DOWN):
            return self.stop(fragment, row)
        return [] if row.state == STOPPING else self.ended(fragment, row, clean=row.state == DONE)

    def on_finishing(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """Its last batch has begun: the change that ends it may want to know."""
        stands: Parcel = input.message.stands  # type: ignore[attr-defined]
        return [FragmentFinishes(fragment, row.ends, row.epoch, stands)] if row.ends else []

    def on_pending(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """The site lives: patience begins anew."""
        row.tries = 0
        return []

    def on_running(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """The epoch runs, or still runs."""
        row.tries, row.stands = 0, input.message.stands  # type: ignore[attr-defined]
        if row.state == RUNNING:
            row.polls = min(row.polls + 1, self.limits.steady_polls)
            if row.polls == self.limits.steady_polls:
                row.restarts = 0
            return []
        row.state, row.polls = RUNNING, 0
        return [SetTimer(fragment, self.limits.poll_ms), *self.up(fragment, row)]

    def on_heard(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """What was given up speaks after all: where only its site was silent it runs as wanted, else it is to stop."""
        if not row.silent or row.want != row.site:
            return self.on_unwanted(fragment, row, input)
        row.silent = False
        return self.on_running(fragment, row, input)

    def on_unwanted(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """What is wanted no more or was replaced, and speaks after all, is told to stop."""
        epoch: int = input.message.epoch  # type: ignore[attr-defined]
        return [Send(input.sender, StopFragment(fragment, epoch, task=row.task))]

    def on_done(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """Nothing is left to do, wherever it was wanted."""
        row.stands = input.message.stands  # type: ignore[attr-defined]
        if row.ends:
            return [CancelTimer(fragment), *self.ended(fragment, row, clean=True)]
        row.state = DONE if row.want else IDLE
        return [CancelTimer(fragment), *self.up(fragment, row)]

    def on_failed(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """The epoch is over: a later one is tried after a while, or none."""
        reason, permanent = "it was stopped by another", False
        match input.message:
            case FragmentFailed(reason=said, permanent=for_good):
                reason, permanent = said, for_good
            case FragmentRefused(greatest=greatest):
                reason = f"epoch {row.epoch} is too old, {greatest} was seen"
                row.epoch = max(row.epoch, greatest)
        if permanent or row.restarts >= self.limits.restarts_max:
            return [CancelTimer(fragment), *self.give_up(fragment, row, reason)]
        delay_ms = self.limits.restart_ms << row.restarts
        row.state, row.restarts = WAITING, row.restarts + 1
        return [FragmentIsDown(fragment, reason), SetTimer(fragment, delay_ms)]

    def on_stopped(self, fragment: str, row: Wanted, input: Received) -> list[Effect]:
        """The epoch is over, as asked: idle, or on to where it is wanted."""
        if isinstance(input.message, FragmentRefused):
            row.epoch = max(row.epoch, input.message.greatest)
        if row.ends:
            clean = isinstance(input.message, FragmentStopped) and input.message.clean
            if isinstance(input.message, FragmentStopped):
                row.stands = input.message.stands
            return [CancelTimer(fragment), *self.ended(fragment, row, clean)]
        if row.want:
            return self.start(fragment, row)
        row.state = IDLE
        return [CancelTimer(fragment)]

    def on_timer(self, fragment: str, row: Wanted, input: TimerFired) -> list[Effect]:
        """No answer: ask again, or lose patience."""
        if row.state == WAITING:
            return self.start(fragment, row)
        if row.tries < self.limits.tries_max:
            row.tries += 1
            after_ms = self.limits.poll_ms if row.state == RUNNING else self.limits.answer_ms_max
            stops = row.state == STOPPING
            again = self.stopping(fragment, row) if stops else StartFragment(fragment, row.epoch, row.task)
            return [Send(row.site, again), SetTimer(fragment, after_ms)]
        if row.ends:
            return self.ended(fragment, row, clean=False)
        if row.state == STOPPING and row.want:
            return self.start(fragment, row)
        return self.give_up(fragment, row, f"site {row.site} does not answer", silent=True)

    def ignore(self, fragment: str, row: Wanted, input: Input) -> list[Effect]:
        """Word that comes late or twice."""
        return []

    def start(self, fragment: str, row: Wanted) -> list[Effect]:
        """A new epoch, at the wanted site."""
        row.state, row.site, row.epoch, row.tries = STARTING, row.want, max(row.epoch, row.least) + 1, 1
        row.stands, row.silent = Parcel(), False
        return [
            Remember(fragment, row.epoch),
            Send(row.site, StartFragment(fragment, row.epoch, row.task)),
            SetTimer(fragment, self.limits.answer_ms_max),
        ]

    def say_again(self, fragment: str, row: Wanted) -> list[Effect]:
        """The present epoch, which may run: its start only asks after it then."""
        row.state, row.tries, row.silent = STARTING, 1, False
        again = StartFragment(fragment, row.epoch, row.task)
        return [Send(row.site, again), SetTimer(fragment, self.limits.answer_ms_max)]

    def stop(self, fragment: str, row: Wanted) -> list[Effect]:
        """The present epoch is asked to stop."""
        row.state, row.tries, row.silent = STOPPING, 1, False
        return [Send(row.site, self.stopping(fragment, row)), SetTimer(fragment, self.limits.answer_ms_max)]

    def stopping(self, fragment: str, row: Wanted) -> StopFragment:
        """The stop of the present epoch, clean where it is for a change."""
        clean = row.ends > 0
        return StopFragment(fragment, row.epoch, clean, clean and row.tells, row.task)

    def up(self, fragment: str, row: Wanted) -> list[Effect]:
        """Tells the change that asked for it, once it runs or is done."""
        if not row.starts or row.state not in (RUNNING, DONE):
            return []
        change, row.starts = row.starts, 0
        return [FragmentUp(fragment, change)]

    def ended(self, fragment: str, row: Wanted, clean: bool) -> list[Effect]:
        """Tells the change that asked for its end."""
        change, row.state, row.ends = row.ends, IDLE, 0
        if not clean:
            return [FragmentEnded(fragment, change, False)]
        return [FragmentEnded(fragment, change, True, row.epoch, row.stands)]

    def give_up(self, fragment: str, row: Wanted, reason: str, silent: bool = False) -> list[Effect]:
        """No more is tried until it is wanted again."""
        row.state, row.silent = (IDLE, False) if row.state == STOPPING else (DOWN, silent)
        return [GaveUp(fragment, reason, silent)]

    def concluding(self) -> list[Effect]:
        """Says it once when all run, are done, or are stopped."""
        wanted = [row.state for row in self.rows.values() if row.want]
        said = ""
        if wanted and all(state == DONE for state in wanted):
            said = "done"
        elif wanted and all(state in (RUNNING, DONE) for state in wanted):
            said = "running"
        elif not wanted and all(row.state == IDLE for row in self.rows.values()):
            said = NEW if self.said == NEW else "stopped"
        before, self.said = self.said, said
        if said in (before, "", NEW):
            return []
        return [{"done": AllDone(), "running": AllRunning(), "stopped": AllStopped()}[said]]


_STOPPABLE = (STARTING, RUNNING, WAITING, DOWN, STOPPING)
_QUIET_ANSWERS = (FragmentPending, FragmentStopped, FragmentDone, FragmentFailed, FragmentRefused)
_ANSWERS = (FragmentRunning, FragmentFinishing, *_QUIET_ANSWERS)
Conductor.STEPS = {
    (IDLE, Want): Step(Conductor.on_want, (STARTING,)),
    (DOWN, Want): Step(Conductor.on_want, (STARTING,)),
    **{(state, Want): Step(Conductor.on_want, (state, STARTING, STOPPING)) for state in (STARTING, RUNNING)},
    **{(state, Want): Step(Conductor.on_want, (state, STARTING)) for state in (WAITING, STOPPING)},
    (DONE, Want): Step(Conductor.on_want, (DONE,)),
    **{(state, Found): Step(Conductor.on_found, (STARTING,)) for state in (IDLE, DOWN)},
    **{(state, Found): Step(Conductor.on_found, (state, STARTING, STOPPING)) for state in (STARTING, RUNNING)},
    **{(state, Found): Step(Conductor.on_found, (state, STARTING)) for state in (WAITING, STOPPING)},
    (DONE, Found): Step(Conductor.on_found, (DONE,)),
    **{(state, Unwant): Step(Conductor.on_unwant, (STOPPING,)) for state in _STOPPABLE},
    **{(state, Unwant): Step(Conductor.on_unwant, (IDLE,)) for state in (IDLE, DONE)},
    **{(state, EndCleanly): Step(Conductor.on_end, (STOPPING,)) for state in _STOPPABLE},
    **{(state, EndCleanly): Step(Conductor.on_end, (IDLE,)) for state in (IDLE, DONE)},
    **{(state, FragmentPending): Step(Conductor.on_pending, (state,)) for state in (STARTING, RUNNING, STOPPING)},
    **{(state, FragmentRunning): Step(Conductor.on_running, (RUNNING,)) for state in (STARTING, RUNNING)},
    (STOPPING, FragmentFinishing): Step(Conductor.on_finishing, (STOPPING,)),
    **{(state, FragmentFinishing): Step(Conductor.ignore, (state,)) for state in (IDLE, STARTING, RUNNING, DOWN)},
    # A failure is no word that the epoch was fenced: only the answer to the stop is.
    **{(STOPPING, word): Step(Conductor.ignore, (STOPPING,)) for word in (FragmentRunning, FragmentFailed)},
    (IDLE, FragmentRunning): Step(Conductor.on_unwanted, (IDLE,)),
    (DOWN, FragmentRunning): Step(Conductor.on_heard, (DOWN, RUNNING)),
    **{(state, FragmentDone): Step(Conductor.on_done, (DONE,)) for state in (STARTING, RUNNING)},
    (STOPPING, FragmentDone): Step(Conductor.on_done, (DONE, IDLE)),
    **{
        (state, bad): Step(Conductor.on_failed, (WAITING, DOWN))
        for state in (STARTING, RUNNING)
        for bad in (FragmentFailed, FragmentStopped, FragmentRefused)
    },
    **{(STOPPING, over): Step(Conductor.on_stopped, (STARTING, IDLE)) for over in (FragmentStopped, FragmentRefused)},
    **{(state, word): Step(Conductor.ignore, (state,)) for state in (WAITING, DONE) for word in _ANSWERS},
    **{(state, word): Step(Conductor.ignore, (state,)) for state in (IDLE, DOWN) for word in _QUIET_ANSWERS},
    (STARTING, TimerFired): Step(Conductor.on_timer, (STARTING, DOWN)),
    (RUNNING, TimerFired): Step(Conductor.on_timer, (RUNNING, DOWN)),
    (WAITING, TimerFired): Step(Conductor.on_timer, (STARTING,)),
    (STOPPING, TimerFired): Step(Conductor.on_timer, (STOPPING, STARTING, IDLE)),
}
