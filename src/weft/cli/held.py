"""What does a run leave for others to see? Its state folder, read without Spark and without disturbing it."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from weft.cli.output import command, note

OVER = ("stopped", "failed")
STOP = "stop"
OF_DICTS = ("queries", "fragments", "operators", "sites")
PARTS = {"rates_per_s": dict, "backlog": dict, "down": dict, "moves": list, "changes": list, "advice": dict}


@dataclass(frozen=True, slots=True)
class Held:
    """A state folder as another process sees it."""

    file: Path
    folder: Path
    given: Path | None = None

    @property
    def here(self) -> bool:
        """Whether it is, or was, a run of this machine."""
        return True

    @property
    def shown(self) -> str:
        """The folder, as people are told of it."""
        return str(self.folder)

    def files(self, *names: str) -> Path:
        """The folder in which files of these names can be read, those of them that there are."""
        del names
        return self.folder

    def logs(self) -> list[str]:
        """The names of Spark's logs, and of those of sites with processes of their own."""
        found = [*self.folder.glob("logs/*.log"), *self.folder.glob("logs/sites/*/*.log")]
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def end(self, name: str) -> int:
        """How long a file is, as far as it was read."""
        return (self.folder / name).stat().st_size

    def since(self, places: Mapping[str, int]) -> dict[str, bytes]:
        """What has come to files since they were so long."""
        found = {}
        for name, at in places.items():
            with suppress(OSError), open(self.folder / name, "rb") as handle:
                handle.seek(at)
                found[name] = handle.read()
        return found

    def rest(self, seconds: float) -> None:
        """Wait a moment before looking again."""
        time.sleep(seconds)

    def ask_to_stop(self) -> None:
        """Let the run know that it is to end."""
        (self.folder / STOP).touch()

    def stopped(self) -> None:
        """It has ended, maybe by itself: the next one must not find what was asked."""
        (self.folder / STOP).unlink(missing_ok=True)

    def alive(self) -> bool:
        """Whether a process runs there: the lock goes with it, however it ends."""
        try:
            with open(self.folder / "lock", encoding="utf-8") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (FileNotFoundError, IsADirectoryError):
            return False
        except BlockingIOError:
            return True
        return False

    def agents(self) -> dict[str, int]:
        """The sites that run in processes of their own, each with its process; they go on where their desk is gone."""
        found = {}
        for path in sorted((self.folder / "agents").glob("*.lock")):
            with suppress(OSError, ValueError), open(path, encoding="utf-8") as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    found[unquote(path.name.removesuffix(".lock"))] = int(handle.read() or 0)
        return found

    def runs(self) -> bool:
        """Whether any process runs there: the desk, or that of a site."""
        return self.alive() or bool(self.agents())

    def pids(self) -> list[int]:
        """The processes that run there."""
        desk = self.pid()
        return [*([desk] if desk is not None and self.alive() else []), *self.agents().values()]

    def pid(self) -> int | None:
        """The process that runs there, or ran there last."""
        try:
            return int((self.folder / "lock").read_text(encoding="utf-8"))
        except (FileNotFoundError, IsADirectoryError, ValueError):
            return None

    def status(self) -> dict[str, Any] | None:
        """What the run last told of itself; None before the first time, and where it cannot be read."""
        path = self.files("status.json") / "status.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        else:
            if _is_status(found):
                return found  # type: ignore[no-any-return]
            why = "it does not hold a run's status"
        note(f"{path} cannot be read, as if it were not there: {why}")
        return None

    def phase(self, told: dict[str, Any] | None) -> str:
        """What is going on there, in a word or a few."""
        if self.alive():
            return str(told["phase"]) if told and told["phase"] not in OVER else "starting"
        if told is None:
            return "ended before it ran" if self.folder.joinpath("lock").exists() else "never ran"
        return str(told["phase"]) if told["phase"] in OVER else "ended without stopping in order"

    def command(self, word: str, *more: str) -> str:
        """A command on the same file and state, as the user would type it."""
        return command(word, self.file, self.given, *more)


def _is_status(found: Any) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("phase"), str):
        return False
    held = [found.get(name, {}) for name in OF_DICTS]
    return all(isinstance(found.get(name, kind()), kind) for name, kind in PARTS.items()) and all(
        isinstance(part, dict) and all(isinstance(one, dict) for one in part.values()) for part in held
    )
