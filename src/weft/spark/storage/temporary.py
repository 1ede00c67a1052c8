"""What of a run lies in temporary space? One folder for each process, recorded where the next run finds it.

    STATE/temporary             the folder's path and its owner, written before it is made
    /tmp/weft-3f9c0d21ab/       for its user only: all that Spark, its Java and its Python processes put aside
    /tmp/weft-3f9c0d21ab/owner  the process it belongs to, and when that one started

Whoever is killed leaves its folder behind. The reader forker, which outlives its parent for a moment, removes it; where
it was killed too, the next run of the same state does. Nothing is ever found by a pattern: only what a record names,
holds an owner that is gone, and belongs to this user is removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "weft-"
OWNER = "owner"
JAVA = "java"
JAVA_S_MAX = 30.0
TRIES = 10


@dataclass(slots=True)
class _Mine:
    """The folder of one process, and where it is recorded."""

    process: int
    folder: Path | None = None
    records: set[Path] = field(default_factory=set)
    lock: int = -1


_mine = _Mine(0)


def claim(record: Path | None = None) -> Path:
    """This process's own folder, made where it is not there yet; `record` is a file that will tell of it."""
    global _mine  # noqa: PLW0603
    if _mine.process != os.getpid():  # a fork has none of its own yet
        _mine = _Mine(os.getpid())
    fresh = _mine.folder is None or not _mine.folder.is_dir()
    folder = Path(tempfile.gettempdir()).resolve() / f"{PREFIX}{secrets.token_hex(5)}" if fresh else _mine.folder
    assert folder is not None
    owner = json.dumps({"process": os.getpid(), "started": started(os.getpid())})
    for told in {*_mine.records, *([record.resolve()] if record is not None else [])}:
        told.parent.mkdir(parents=True, exist_ok=True)
        told.write_text(f"{folder}\n{owner}\n", encoding="utf-8")
        _mine.records.add(told)
    if fresh:
        folder.mkdir(mode=0o700)
        (folder / OWNER).write_text(owner, encoding="utf-8")
        # Whoever tidies temporary space by age passes over a folder that is locked.
        _mine.lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(_mine.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _mine.folder = folder
    return folder


def is_claimed() -> bool:
    """Whether this process has a folder."""
    return _mine.process == os.getpid() and _mine.folder is not None


def release() -> None:
    """Remove this process's folder, and what tells of it."""
    if not is_claimed() or _mine.folder is None:
        return
    os.close(_mine.lock)
    remove(_mine.folder)
    for record in _mine.records:
        with suppress(OSError):
            if record.read_text(encoding="utf-8").partition("\n")[0] == str(_mine.folder):
                record.unlink()
    _mine.folder = None
    _mine.records.clear()


def sweep(record: Path) -> bool:
    """Remove the folder that a process which is gone had recorded; whether there was one."""
    try:
        path, _, owner = record.read_text(encoding="utf-8").partition("\n")
        folder = Path(path)
    except (OSError, ValueError):
        return False
    if not _is_left(folder, owner):
        return False
    remove(folder)
    with suppress(OSError):
        record.unlink()
    return True


def remove(folder: Path) -> None:
    """Remove a folder, even one that somebody who is just ending still writes to."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


def remove_after(folder: Path) -> None:
    """Remove the folder of a process that has just gone, once the Java process that it had started has gone too."""
    with suppress(OSError, ValueError):
        java = int((folder / JAVA).read_text())
        deadline = time.monotonic() + JAVA_S_MAX
        while started(java) is not None and time.monotonic() < deadline:
            time.sleep(0.05)
    if _is_left(folder):
        remove(folder)


def _is_left(folder: Path, told: str = "") -> bool:
    """Whether a folder is one of ours whose owner, as it says itself or was `told`, has gone."""
    try:
        about = folder.lstat()
        if not folder.name.startswith(PREFIX) or not folder.is_absolute() or about.st_uid != os.geteuid():
            return False
        if folder.is_symlink() or not folder.is_dir():
            return False
        if not os.listdir(folder):  # just being made, or its owner ended between making it and saying whose it is
            if not told.strip():
                return True
            owner = json.loads(told)
        else:
            owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        process, since = int(owner["process"]), owner["started"]
        if _is_locked(folder):
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return started(process) != since if Path("/proc/self/stat").exists() else not _lives(process)


def _is_locked(folder: Path) -> bool:
    """Whether the owner, or a fork of it, still holds a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def started(process: int) -> int | None:
    """When a process started, in the kernel's own ticks; None where it is gone or there is no telling."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[18])


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
