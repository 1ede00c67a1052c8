"""What must be there to run the fragments of one site? An engine, which gives launches, as a site's body sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from weft.plan.changing.task import GoesOn, Task
from weft.protocol.change_messages import After
from weft.protocol.reporting import Measured
from weft.spark.fragments.positions import Standing

BeforeEnd = Callable[[str, Callable[[], bool]], None]
"""Called with a fragment, and whether that is still alive; raises where it must not go on."""


class Launchable(Protocol):
    """A fragment under one epoch, as the Spark side gives it."""

    def start(self) -> None:
        """Begin; returns when it runs."""

    def stop(self, clean: bool = False, tells: Callable[[Standing], None] | None = None) -> bool:
        """End it, where `clean` at a batch boundary; returns whether it was one, when nothing of it is alive.

        `tells` is called when the last batch has begun, where that can be told ahead.
        """

    def standing(self) -> Standing:
        """What those need that go on from here."""

    def failure(self) -> tuple[str, bool] | None:
        """Why it ended unasked and whether that would come back with every start; None while it runs."""

    def drained(self) -> bool:
        """Whether its inputs have ended and everything is committed."""


class Engine(Protocol):
    """What runs the fragments of one site; the only part of it that knows Spark."""

    def fence(self, task: Task, epoch: int) -> None:
        """From now on no writer with a lower epoch commits anything for the fragment."""

    def prepare(self, task: Task, epoch: int) -> Launchable:
        """A fragment ready to start; Fenced where the epoch is too low."""

    def warm(self, task: Task, ends: Sequence[Standing] | None) -> tuple[str, ...]:
        """Make a fragment ready before its turn; the ends whose last batches it waits for.

        BadOperator where it never can run. `ends` is None where it is not known how all that ends stands.
        """

    def discard_prepared(self, task: Task) -> None:
        """Forget what was made ready, or carried over."""

    def let_in(self, fragment: str, standing: Standing) -> None:
        """One that a fragment made ready goes on from is at its last batch."""

    def carry_over(self, task: Task, ends: Sequence[Standing], after: After) -> GoesOn:
        """Write down where a fragment goes on after these ends; on disk when this returns."""

    def channel_drained(self, stream: str, fragment: str) -> bool:
        """True if a fragment has written the results of all that a channel holds."""

    def measure(self, finally_: bool = False) -> Measured:
        """What was measured since it was last asked, and how all stands; `finally_`, also what is costly to find."""

    def look_after(self) -> None:
        """Do what is to be done now and then for what runs."""

    def settle(self, sinks: Sequence[str]) -> None:
        """Leave only the last value of every key in sinks of update mode; all is done."""

    def asks_before_end(self, ask: BeforeEnd) -> None:
        """Let somebody be asked before a fragment ends the streams of its sources."""

    def lose(self) -> None:
        """Be gone, as with a loss of power."""

    def close(self) -> None:
        """Leave nothing behind that was made ready."""
