"""What does a run keep beside its file? A state folder with a lock, the deployment it runs, epochs and requests."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from weft.model import Deployment
from weft.spark.folders import Folders
from weft.spark.log import write_atomically
from weft.spec import as_plain


class CannotRun(ValueError):
    """The run is refused before anything starts; the text says why and what would help."""


def state_folder(file: Path, given: Path | None) -> Path:
    """`.weft` beside the deployment file, unless another place is given."""
    return (given or file.parent / ".weft").resolve()


@dataclass(slots=True)
class State:
    """A state folder in use by this process."""

    folders: Folders
    _lock: IO[str] | None = None

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.folders.state

    def lock(self) -> None:
        """Keep a second run away; the lock goes with the process, however it ends."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = open(self.path / "lock", "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            why = error.strerror or str(error)
            raise CannotRun(f"no state can be kept in {self.path}: {why}; give another folder with --state") from error
        try:
            _take(handle)
        except BlockingIOError as error:
            handle.seek(0)
            pid = handle.read().strip() or "unknown"
            handle.close()
            raise CannotRun(
                f"{self.path} is in use by another run (process {pid}); stop it with `weft stop`, "
                "or give this run its own folder with --state"
            ) from error
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        self._lock = handle
        # Meant for a run that is gone.
        (self.path / "stop").unlink(missing_ok=True)

    def unlock(self) -> None:
        """Let another run have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def clear(self) -> None:
        """Forget everything but the lock."""
        for entry in self.path.iterdir():
            if entry.name == "lock":
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def read(self, name: str) -> Any:
        """A JSON file of the state, None where it is absent."""
        try:
            return json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return None

    def write(self, name: str, value: Any) -> None:
        """Replace a JSON file of the state."""
        write_atomically(self.path / name, json.dumps(value, default=str).encode())


def why_not_writable(folder: Path) -> str | None:
    """Why nothing can be written to a folder that is there or to be made, None where it can."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return f"{there} is not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written to"


def _take(handle: IO[str]) -> None:
    """Lock a file; whoever only looks whether it is locked holds it for an instant, so one more try is fair."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.2)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


# What may change between two runs of one state: nothing in it decides what the streams hold.
_FREE_SITE = ("capacity", "quota", "memory_mb", "failure_probability")
_FREE_OPERATOR = ("cost_ms", "selectivity", "queue", "state_kb", "window")
_FREE_SOURCE = ("record_bytes",)


def identity(deployment: Deployment, placement: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """What a state can be resumed with: everything that decides what the streams hold, as plain values."""
    plain = as_plain(deployment)
    parts: dict[str, Any] = {}
    for source in plain.get("sources", []):
        parts[f"source {source['name']}"] = _without(source, _FREE_SOURCE)
    for query in plain.get("queries", []):
        for operator in query["operators"]:
            parts[f"operator {query['name']}.{operator['name']}"] = _without(operator, (*_FREE_OPERATOR, "site"))
        parts[f"sink of {query['name']}"] = query["sink"]
    for query_name, homes in placement.items():
        for operator_name, sites in homes.items():
            parts[f"place of {query_name}.{operator_name}"] = sites
    return json.loads(json.dumps(parts))  # type: ignore[no-any-return]


def _without(value: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: held for key, held in value.items() if key not in keys}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What a file has that the state was not made with, one line each."""
    lines = []
    for part in sorted(before.keys() | now.keys()):
        old, new = before.get(part), now.get(part)
        if old == new:
            continue
        if old is None:
            lines.append(f"{part} is new")
        elif new is None:
            lines.append(f"{part} is gone")
        elif isinstance(old, dict) and isinstance(new, dict):
            lines.extend(
                f"{part}: {key} was {old.get(key)!r}, is {new.get(key)!r}"
                for key in sorted(old.keys() | new.keys())
                if old.get(key) != new.get(key)
            )
        else:
            lines.append(f"{part} was {old!r}, is {new!r}")
    return lines
