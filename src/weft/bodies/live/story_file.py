"""Where is the story of a run kept? In a file of its state, a line for each step."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from pathlib import Path

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What others say, as in a message that was refused, begins no line of its own and moves no terminal's cursor."""


class StoryFile:
    """A file that lines are added to, by any thread."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Add a line, unless the file is closed."""
        # A disk without room is told by who cannot do without it.
        with self._lock, suppress(OSError):
            if not self._file.closed:
                self._file.write(_CONTROL.sub(" ", line) + "\n")

    def close(self) -> None:
        """Take no more lines."""
        with suppress(OSError):
            self._file.close()
