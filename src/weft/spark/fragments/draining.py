"""How does a run end by itself, and how is it followed? It finishes its sources, waits behind a gate, tells its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Times
from weft.spark.channels.position import Position
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.outputs import Commit
from weft.spark.fragments.positions import Ended, Standing
from weft.spark.fragments.wiring import RunContext
from weft.spark.sources.taken import PassedOver

# Every channel that a fragment reads starts a Python process, and Spark waits ten seconds for each: started all at
# once, those of a wide deployment would not answer in time.
STARTS_AT_ONCE = 2
START_S_MAX = 60.0
IDLE_S_MAX = 20.0
FAILS_S_MAX = 5.0
_starts = threading.BoundedSemaphore(STARTS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What every run of a deployment is made with: Spark, the times of streams, who hears of commits, how it ends.

    `before_end` is called with a fragment, and whether that is still alive, before its sources are finished; it raises
    where that must not be.
    """

    session: SparkSession
    times: Times
    on_commit: Callable[[Commit], None]
    until_done: bool = False
    totals: dict[str, int] = field(default_factory=dict)
    before_end: Callable[[str, Callable[[], bool]], None] = lambda fragment, alive: None


class DrainingRun(FragmentRun):
    """A run that, where the whole is to end by itself, finishes its sources when they are read."""

    def __init__(
        self, settings: RunSettings, context: RunContext, fragment: Fragment, epoch: int | None, generation: int
    ) -> None:
        super().__init__(settings.session, context, settings.times, fragment, epoch, generation, settings.on_commit)
        self.settings = settings
        self.trouble: str | None = None
        self.follows: dict[str, Ended] = {}
        self.opened: dict[str, Position] | None = None
        self.on_start: Callable[[FragmentRun], None] = lambda run: None

    def launch(self) -> None:
        """Start, not too many at once."""
        with _starts:
            super().launch()
            self._wait_for_sources()

    def open(self, positions: dict[str, Position]) -> None:
        """Let a run behind its gate in, at these places."""
        self.opened = positions
        self.gate.open(positions)

    def stop(self, clean: bool = False, tells: Callable[[Standing], None] | None = None) -> bool:
        """Also tell those that go on from here, ahead of the end, where it will be."""
        goes_on = self.query is not None and self.query.isActive and not self.drained()
        # Where batches are long the next one is not waited for: who goes on from here has its records sooner.
        if clean and goes_on and tells is not None and not self.writer.durations.are_long():
            self.writer.last.ask(lambda: tells(self.standing(self.writer.last.number)))
        return super().stop(clean)

    def wait_until_idle(self) -> None:
        """Wait until a query behind its gate has rehearsed and finds nothing to do."""
        assert self.query is not None
        latest = time.monotonic() + IDLE_S_MAX
        while self.query.isActive and not (
            self.writer.rehearsed is not None and self.query.status["message"].startswith("Waiting for data")
        ):
            if time.monotonic() > latest:
                return
            time.sleep(0.02)

    def is_sound(self) -> bool:
        """Whether a query that started early still runs."""
        return self.query is not None and bool(self.query.isActive)

    def start(self) -> None:
        """Start, and where all is to end by itself, watch for the end of the sources."""
        super().start()
        self.on_start(self)
        if self.settings.until_done and self.fragment.sources:
            threading.Thread(target=self._drain, name=f"drain-{self.fragment.id}", daemon=True).start()

    def _wait_for_sources(self) -> None:
        assert self.query is not None
        latest = time.monotonic() + START_S_MAX
        while self.query.isActive and self.query.status["message"] == "Initializing sources":
            if time.monotonic() > latest:
                return
            time.sleep(0.02)

    def _drain(self) -> None:
        try:
            self.read_all(self.settings.totals, lambda: self.settings.before_end(self.fragment.id, self._is_wanted))
        except PassedOver as error:
            self.trouble = str(error)  # one that starts anew looks anew
        except Exception as error:
            # A query that was stopped or has failed ends the wait; `failure` tells why, where Spark still answers.
            # Spark throws its failure a moment before the query counts as ended.
            with suppress(Exception):
                latest = time.monotonic() + FAILS_S_MAX
                while self.query is not None and self.query.isActive:
                    if time.monotonic() > latest:
                        self.trouble = str(error)
                        return
                    time.sleep(0.05)

    def _is_wanted(self) -> bool:
        return not self.over and self.is_sound()

    def failure(self) -> tuple[str, bool] | None:
        """Also where the end could not be written."""
        return (self.trouble, False) if self.trouble else super().failure()
