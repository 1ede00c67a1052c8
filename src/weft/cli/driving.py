"""How is a run driven? In a thread of its own, so that signals and the screen stay with the main thread.

Spark takes Ctrl-C for itself where it is started in the main thread.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from weft.bodies.live.run import Run
from weft.cli.output import FAILED
from weft.cli.streams import Streams
from weft.cli.tables import in_one_line, screen

SNAPSHOT_EVERY_S = 0.5
LINE_EVERY_S = 5.0
LOOK_S = 0.2
SHOW_CURSOR = "\x1b[?25h\n"


class Drive:
    """One run, watched: a live picture on a terminal, a line now and then where piped."""

    def __init__(self, run: Run, streams: Streams) -> None:
        self.run = run
        self.streams = streams
        self.status: dict[str, Any] = {"phase": "starting Spark (ten seconds or more)"}
        self.notes: tuple[str, ...] = ()
        self.result: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.flowed_s = 0.0
        self._started_s = time.monotonic()
        self._snapshot_s = 0.0
        self._asked = False

    def go(self) -> dict[str, Any]:
        """Run to the end and give the summary; what went wrong in the run is raised here."""
        thread = threading.Thread(target=self._carry, name="run", daemon=True)
        before = {which: signal.signal(which, self._signalled) for which in (signal.SIGINT, signal.SIGTERM)}
        hook, threading.excepthook = threading.excepthook, self._thread_failed
        try:
            thread.start()
            self._show(thread)
        finally:
            threading.excepthook = hook
            for which, handler in before.items():
                signal.signal(which, handler)
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result

    def _carry(self) -> None:
        try:
            self.result = self.run.go(self._watch)
            if self.run.flowing_s is not None:
                self.status = self.run.status()
        except BaseException as error:
            self.error = error

    def _thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        """What a thread of the run's body dies of is for the log; the run itself says what it means."""
        if failed.exc_value is not None:
            self.streams.keep("".join(traceback.format_exception(failed.exc_value)))

    def _watch(self, run: Run) -> None:
        """Called in the run's thread: numbers are read where they are written."""
        now = time.monotonic()
        if self._snapshot_s == 0.0:
            self.streams.hush(run.state.path / "logs" / "console.log")
        if now - self._snapshot_s < SNAPSHOT_EVERY_S:
            return
        self._snapshot_s = now
        if run.flowing_s is not None:
            self.flowed_s = now - run.flowing_s
            self.status = run.status()

    def _signalled(self, which: int, frame: FrameType | None) -> None:
        del frame
        if self._asked:
            with suppress(OSError, ValueError):
                if self.streams.err.isatty():
                    self.streams.err.write(SHOW_CURSOR)
                    self.streams.err.flush()
            # Spark's process ends with this one.
            os._exit(FAILED)
        self._asked = True
        self.notes = ("stopping in order; once more ends at once",)
        self.run.stop()

    def _show(self, thread: threading.Thread) -> None:
        show: Callable[[threading.Thread], None] = self._live if self.streams.err.isatty() else self._lines
        show(thread)

    def _now(self) -> dict[str, Any]:
        status = {**self.status, "wall_s": time.monotonic() - self._started_s}
        if self._asked:
            status["phase"] = "stopping"
        return status

    def _live(self, thread: threading.Thread) -> None:
        from rich.live import Live

        from weft.cli.output import console

        with Live(
            screen(self._now()), console=console(self.streams.err), auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        ) as live:  # fmt: skip
            while thread.is_alive():
                thread.join(LOOK_S)
                live.update(screen(self._now(), self.notes), refresh=True)

    def _lines(self, thread: threading.Thread) -> None:
        next_s = time.monotonic() + 2.0
        told: tuple[str, ...] = ()
        while thread.is_alive():
            thread.join(LOOK_S)
            with suppress(OSError):
                if self.notes != told:
                    told = self.notes
                    print(*told, sep="\n", file=self.streams.err)
                if time.monotonic() >= next_s:
                    next_s = time.monotonic() + LINE_EVERY_S
                    print(f"weft {in_one_line(self._now())}", file=self.streams.err)
