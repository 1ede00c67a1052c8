"""Who may write where while Spark runs? The terminal stays ours: what the JVM and its workers say goes to a file."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TextIO

TAIL_BYTES = 4000


class Streams:
    """Standard streams for the time of a run; with `json`, nothing but the document reaches stdout."""

    def __init__(self, json: bool) -> None:
        self.json = json
        self.err: TextIO = sys.stderr
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Streams:
        sys.stdout.flush()
        sys.stderr.flush()
        self._fds = (os.dup(1), os.dup(2))
        self._kept = (sys.stdout, sys.stderr)
        self.err = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
        sys.stderr = self.err
        if self.json:
            os.dup2(self._fds[1], 1)
            sys.stdout = self.err
        return self

    def hush(self, log: Path) -> None:
        """From now on what anyone in this process and its children writes to standard error goes to a file."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = open(log, "a+b", buffering=0)  # noqa: SIM115
        os.dup2(self._log.fileno(), 2)
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115

    def heard(self) -> list[str]:
        """The last lines that went to the file."""
        if self._log is None:
            return []
        self._log.seek(max(0, os.fstat(self._log.fileno()).st_size - TAIL_BYTES))
        return self._log.read().decode("utf-8", "replace").splitlines()

    def keep(self, text: str) -> None:
        """Write to the file, where there is one and its disk takes it."""
        with suppress(OSError):
            if self._log is not None:
                self._log.write(text.encode("utf-8", "replace"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.err.flush()
        sys.stdout, sys.stderr = self._kept
        for fd, held in zip((1, 2), self._fds, strict=True):
            os.dup2(held, fd)
            os.close(held)
        self.err.close()
        if self._log is not None:
            self._log.close()
