"""What does an engine need at a site that shares no folder? Inputs followed, and what a move brings fetched first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.bodies.live.engine import BeforeEnd, Engine, Launchable
from weft.bodies.live.mirrors.by_plan import ByPlan
from weft.bodies.live.mirrors.mirroring import Mirroring
from weft.plan.changing.task import GoesOn, Task
from weft.protocol.change_messages import After
from weft.protocol.reporting import Measured
from weft.spark.fragments.positions import Standing


class Apart:
    """An engine whose streams lie at its own site: those it reads as copies, those it writes as their home."""

    def __init__(
        self, site: str, engine: Engine, mirroring: Mirroring, by_plan: ByPlan,
        await_plan: Callable[[int], None] = lambda number: None,
    ) -> None:  # fmt: skip
        self.site = site
        self.engine = engine
        self.mirroring = mirroring
        self.by_plan = by_plan
        self._await_plan = await_plan

    def fence(self, task: Task, epoch: int) -> None:
        """From now on this site is the home of what the fragment writes, under this epoch or a greater one."""
        for stream in self.mirroring.mirrored(task.fragment.outputs):
            self.mirroring.follow(stream, self.site)
        self.engine.fence(task, epoch)

    def prepare(self, task: Task, epoch: int) -> Launchable:
        """A fragment ready to start, whose inputs are followed."""
        self._await_plan(task.plan)
        self.by_plan.look()  # before it writes anything: its readers may be slower than it is
        self._follow(task)
        return self.engine.prepare(task, epoch)

    def warm(self, task: Task, ends: Sequence[Standing] | None) -> tuple[str, ...]:
        """Make a fragment ready; where it goes on from others at other sites, their checkpoints are not here yet."""
        self._follow(task)
        near = ends is not None and all(one.fragment.site == self.site for one in ends)
        return self.engine.warm(task, ends if near else None)

    def carry_over(self, task: Task, ends: Sequence[Standing], after: After) -> GoesOn:
        """Bring what ended at other sites here, then write down where the fragment goes on."""
        for one in ends:
            if one.fragment.site != self.site:
                written = self.mirroring.mirrored(one.fragment.outputs)
                self.by_plan.hold(written, task)
                self.mirroring.fetch(one.fragment.site, one.fragment.id, one.generation, written)
        self._follow(task)
        return self.engine.carry_over(task, ends, after)

    def channel_drained(self, stream: str, fragment: str) -> bool:
        """Whether all that the stream's home holds has come, and its results are written."""
        here = stream not in self.mirroring.mirrored((stream,)) or self.mirroring.is_whole(stream)
        return here and self.engine.channel_drained(stream, fragment)

    def _follow(self, task: Task) -> None:
        self.by_plan.asked(task)

    # ---- as it is

    def discard_prepared(self, task: Task) -> None:
        """Forget what was made ready, or carried over."""
        self.engine.discard_prepared(task)
        self.by_plan.off(task)

    def let_in(self, fragment: str, standing: Standing) -> None:
        """One that a fragment made ready goes on from is at its last batch."""
        self.engine.let_in(fragment, standing)

    def measure(self, finally_: bool = False) -> Measured:
        """What was measured since it was last asked."""
        return self.engine.measure(finally_)

    def look_after(self) -> None:
        """Do what is to be done now and then."""
        self.by_plan.look()
        self.engine.look_after()

    def settle(self, sinks: Sequence[str]) -> None:
        """Leave only the last value of every key in sinks of update mode."""
        self.engine.settle(sinks)

    def asks_before_end(self, ask: BeforeEnd) -> None:
        """Let somebody be asked before a fragment ends the streams of its sources."""
        self.engine.asks_before_end(ask)

    def lose(self) -> None:
        """Be gone, as with a loss of power."""
        self.engine.lose()

    def close(self) -> None:
        """Leave nothing behind that was made ready."""
        self.mirroring.close()
        self.engine.close()
