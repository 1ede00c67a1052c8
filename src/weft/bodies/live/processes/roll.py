"""Which processes of a run are there, and where? Files of its state that the processes of one machine share.

agents/SITE.lock   held by the process of a site for as long as it lives, so that there is never a second one
agents/SITE.json   its number and where it listens; desk.json the same of the desk
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

import msgspec

from weft.bodies.live.state import AGENTS, DESK_FILE, CannotRun, State, open_lock, write_lock
from weft.model import Deployment
from weft.spec import as_plain

Where = tuple[str, int]
TRIES = 10
TRY_S = 0.05


class Entry(msgspec.Struct, frozen=True):
    """A process: its number, where it listens, and whether it may run fragments by now."""

    pid: int
    host: str
    port: int
    runs: bool = False

    @property
    def where(self) -> Where:
        """Where it listens."""
        return self.host, self.port


def lock_site(state: Path, site: str) -> IO[str]:
    """Be the one process of a site; CannotRun where there is one."""
    path = _of(state, site, ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open_lock(path)
    try:
        _take(handle)
    except BlockingIOError as error:
        handle.seek(0)
        pid = handle.read().strip() or "unknown"
        handle.close()
        raise CannotRun(f"site {site} of {state} runs already, in process {pid}; `weft stop` ends it") from error
    write_lock(handle)
    return handle


def _take(handle: IO[str]) -> None:
    """Lock a file; whoever only looks whether it is locked holds it for an instant, so some more tries are fair."""
    for _ in range(TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(TRY_S)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def living(state: Path) -> dict[str, int]:
    """The sites that have a process now, each with its number."""
    found = {}
    for path in sorted((state / AGENTS).glob("*.lock")):
        with suppress(OSError, ValueError), open(path, encoding="utf-8") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found[unquote(path.name.removesuffix(".lock"))] = int(handle.read() or 0)
    return found


def running(state: Path) -> dict[str, int]:
    """Those of the sites with a process that may run something: a desk that comes must not take them for stopped."""
    entries = {site: find_site(state, site) for site in living(state)}
    return {site: entry.pid for site, entry in entries.items() if entry is not None and entry.runs}


def tell_site(state: State, site: str, where: Where, runs: bool = False) -> None:
    """Let others find the process of a site."""
    _tell(state, _of(state.path, site, ".json"), where, runs)


def tell_desk(state: State, where: Where) -> None:
    """Let others find the desk."""
    _tell(state, state.path / DESK_FILE, where)


def find_site(state: Path, site: str) -> Entry | None:
    """Where the process of a site is, or was last."""
    return _found(_of(state, site, ".json"))


def find_desk(state: Path) -> Entry | None:
    """Where the desk is, or was last."""
    return _found(state / DESK_FILE)


def desk_lives(state: Path) -> bool:
    """Whether a desk holds the state."""
    try:
        with open(state / "lock", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def digest(deployment: Deployment) -> str:
    """Tells the files of runs apart, by all in them but queries: those come and go, and the desk says which.

    What is said of order for all is written out in the queries by then.
    """
    bare = replace(deployment, queries=(), sharing=None, control=replace(deployment.control, order=None))
    return sha256(json.dumps(as_plain(bare), sort_keys=True, default=str).encode()).hexdigest()


def _of(state: Path, site: str, ending: str) -> Path:
    return state / AGENTS / f"{quote(site, safe='')}{ending}"


def _tell(state: State, path: Path, where: Where, runs: bool = False) -> None:
    entry = Entry(os.getpid(), *where, runs)
    state.disk.replace(path, msgspec.json.encode(entry), sync=False)


def _found(path: Path) -> Entry | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Entry)
    except (OSError, msgspec.MsgspecError):
        return None
