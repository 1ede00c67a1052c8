"""How is a run ended early? Ctrl-C is noted and acted on where the run pauses, so that nothing is left half counted."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupted(Exception):
    """Someone asked for the results so far."""


class Interruption:
    """While it holds, the first Ctrl-C is only noted; the second acts as always."""

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        # Only the main thread may set handlers, and only a default handler is replaced.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        signal.signal(number, self._before)

    def look(self) -> None:
        """Raises Interrupted where someone asked for the end."""
        if self._asked:
            raise Interrupted
