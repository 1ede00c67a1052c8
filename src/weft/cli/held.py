"""What does a run leave for others to see? Its state folder, read without Spark and without disturbing it."""

from __future__ import annotations

import fcntl
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.cli.output import WRONG_INPUT, fail


@dataclass(frozen=True, slots=True)
class Held:
    """A state folder as another process sees it."""

    file: Path
    folder: Path

    def alive(self) -> bool:
        """Whether a process runs there: the lock goes with it, however it ends."""
        try:
            with open(self.folder / "lock", encoding="utf-8") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def pid(self) -> int | None:
        """The process that runs there, or ran there last."""
        try:
            return int((self.folder / "lock").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def status(self) -> dict[str, Any] | None:
        """What the run last told of itself, None before the first time."""
        try:
            found = json.loads((self.folder / "status.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return found if isinstance(found, dict) else None

    def phase(self) -> str:
        """What is going on there, in a word or a few."""
        told = self.status()
        if self.alive():
            return str(told["phase"]) if told and told["phase"] != "stopped" else "starting"
        if told is None:
            return "ended before it ran" if self.folder.joinpath("lock").exists() else "never ran"
        return "stopped" if told["phase"] == "stopped" else "ended without stopping in order"


def held(file: Path, state: Path | None) -> Held:
    """The state of a file's run; exit 2 where neither the file nor its state is there."""
    from weft.bodies.live.state import state_folder

    folder = state_folder(file, state)
    if not file.exists() and not folder.exists():
        fail(f"{file}: no such file, and no state in {folder}", WRONG_INPUT)
    return Held(file, folder)
