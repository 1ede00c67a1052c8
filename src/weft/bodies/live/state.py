"""What does a run keep beside its file? A state folder with a lock, its record, epochs, the journal and requests.

run.json       the run's id, the deployment it was begun with, where its sinks and sources are: its presence makes
               a folder a state folder
plan.json      the plan in force; epochs.json, flows.json, closing.json, finished.json: what must not be forgotten
epochs/        the same of each site, in a file of its own; lives/: how often it began
balance.json   the era of balancing; balance/ has what the balancer of each site keeps
agents/, desk.json: which processes are there, and where
keys/          who the processes of this run are, where the file names no other keys
status.json, counts.json, measurements.jsonl, rates.json, decisions.jsonl, story.log: for people and programs; nothing
               rests on them
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from weft.model import Channels
from weft.spark.channels import kafka_log
from weft.spark.channels.folders import Folders
from weft.spark.channels.kafka_names import settings_of
from weft.spark.channels.kinds import MIRROR
from weft.spark.channels.rooms import ROOMS, others_in
from weft.spark.sinks.ownership import RUN_FILE
from weft.spark.storage.disk import Damaged, Disk, read_note, read_sealed

LOCK, STOP, REQUESTS, KEYS = "lock", "stop", "requests", "keys"
AGENTS, DESK_FILE = "agents", "desk.json"
EPOCHS, EPOCHS_OF_SITES, LIVES = "epochs.json", "epochs", "lives"
BALANCE, BALANCE_OF_SITES = "balance.json", "balance"
FILES = (
    "plan.json", "epochs.json", "flows.json", "closing.json", "finished.json", "status.json", "counts.json",
    "measurements.jsonl", "measurements.jsonl.1", "rates.json", "decisions.jsonl", "decisions.jsonl.1", "story.log",
    "temporary", BALANCE, DESK_FILE, STOP, RUN_FILE,
)  # fmt: skip

FOLDERS = (*ROOMS, EPOCHS_OF_SITES, LIVES, BALANCE_OF_SITES, REQUESTS, KEYS, AGENTS)
OURS = (*FILES, *FOLDERS, LOCK)
STAYS = (LOCK, AGENTS, KEYS)


class CannotRun(ValueError):
    """The run is refused before anything starts; the text says why and what would help."""


class Record(msgspec.Struct, frozen=True):
    """What makes a folder the state of one run."""

    run: str
    state: str
    made_ms: float
    deployment: dict[str, Any]
    sinks: dict[str, str]
    sources: dict[str, str]
    weft: int = 1
    clearing: bool = False
    file: str = ""  # empty where it is not known, as in records of earlier versions


def state_folder(file: Path, given: Path | None) -> Path:
    """A folder named after the deployment file, in `.weft` or the file's `store`, unless another place is given."""
    if given is not None:
        return given.resolve()
    from weft.spec import absolute, store_of

    return (Path(absolute(store_of(file).path, str(file.parent))) / file.name).resolve()


class State:
    """A state folder in use by this process; `site`, where it is that of one whose streams are mirrored."""

    def __init__(self, path: Path, fsync: bool = True, channels: Channels | None = None, site: str = "") -> None:
        self.path = path.resolve()
        self.disk = Disk(fsync)
        self.channels = channels or Channels()
        self.site = site if self.channels.uses(MIRROR) else ""
        self.folders = self._of_run("")
        self._lock: IO[str] | None = None

    def check_place(self) -> None:
        """Refuse a folder that holds other things than a state; nothing is touched."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise CannotRun(f"{self.path} is a file, and state needs a folder; give another with --state")
        if self.path.is_dir() and not (self.path / RUN_FILE).exists():
            self._refuse_unrecorded()
        for name in OURS:
            entry = self.path / name
            if os.path.lexists(entry) and entry.is_dir() != (name in FOLDERS):
                found, wanted = ("file", "folder") if name in FOLDERS else ("folder", "file")
                raise CannotRun(f"{entry}: is a {found} in the place of a {wanted}; take it away, or bring it back")

    def _refuse_unrecorded(self) -> None:
        """Refuse a folder without a record that holds more than what waits for a run, whatever its names are."""
        found = sorted(entry.name for entry in self.path.iterdir() if not _is_another_state(entry))
        foreign = [name for name in found if name not in OURS and not _half_written(name)]
        if foreign:
            shown = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
            raise CannotRun(
                f"{self.path} is no state folder of Weft: it holds {shown}, and no {RUN_FILE}. Nothing was touched; "
                "give the state a folder of its own with --state"
            )
        nobodys = [name for name in found if name in OURS and name not in STAYS]
        if nobodys:
            raise CannotRun(
                f"{self.path} holds {nobodys[0]}, and {self.path / RUN_FILE} is gone, was never there, or is of an "
                "earlier version of Weft: whose state it is cannot be told. Nothing was touched; bring it back, move "
                "the folder away, or give another with --state"
            )

    def lock(self) -> None:
        """Keep a second run away; the lock goes with the process, however it ends."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = open_lock(self.path / LOCK)
        except OSError as error:
            raise self._no_place(error) from error
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
        try:
            write_lock(handle)
        except OSError as error:
            raise self._no_place(error) from error
        self._lock = handle
        # Meant for a run that is gone.
        (self.path / STOP).unlink(missing_ok=True)

    def _no_place(self, error: OSError) -> CannotRun:
        why = error.strerror or str(error)
        return CannotRun(f"no state can be kept in {self.path}: {why}; give another folder with --state")

    def unlock(self) -> None:
        """Let another run have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def record(self) -> Record | None:
        """What the folder is the state of, None where it is none yet; Damaged where that cannot be read."""
        path = self.path / RUN_FILE
        remedy = f"bring it back from a copy, or move {self.path} away: whose state it is cannot be told"
        try:
            return msgspec.convert(read_sealed(path), Record)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except msgspec.ValidationError as error:
            raise Damaged(path, f"is no record of a run: {error}", remedy) from error
        except Damaged as error:
            raise Damaged(path, error.what, remedy) from error

    def begin(self, parts: Mapping[str, Any], sinks: dict[str, str], sources: dict[str, str], file: str = "") -> Record:
        """Make the folder the state of a new run, before anything else is written anywhere."""
        now_ms = round(time.time() * 1000)
        made = Record(uuid.uuid4().hex, str(self.path), now_ms, dict(parts), sinks, sources, file=file)
        self.disk.make(self.path)
        self.disk.seal(self.path / RUN_FILE, made)
        return made

    def refuse_file(self, record: Record, file: str, is_same: bool = False) -> None:
        """Refuse the deployment of another file, while that one is there; `is_same`: it says the same.

        A state that was copied along with its file is that of the copy.
        """
        if not (file and record.file) or not os.path.exists(record.file):
            return
        if file == record.file or (os.path.exists(file) and os.path.samefile(file, record.file)):
            return
        before, now = Path(record.state), self.path
        if before != now and (is_same or os.path.relpath(record.file, before) == os.path.relpath(file, now)):
            return
        raise CannotRun(
            f"{self.path} is the state of {record.file}, and this is {file}: nothing was touched. Give this one a "
            "state of its own with --state or `store`, or go on with that file"
        )

    def is_of(self, record: Record) -> None:
        """From now on all that is read and written belongs to that run."""
        self.folders = self._of_run(record.run)

    def _of_run(self, run: str) -> Folders:
        told = self.channels
        return Folders(self.path, run, self.disk, told.kind, told.streams, settings_of(told), self.site)

    def sweep(self) -> None:
        """Remove what a crash left half written."""
        for entry in list(self.path.iterdir()) if self.path.is_dir() else ():
            if _half_written(entry.name):
                self.disk.remove(entry)

    def entries(self) -> list[Path]:
        """What of a state is there, the record last; processes of sites that wait for a run stay, with their keys.

        Without a record nothing is a state's, whatever it is called.
        """
        if not (self.path / RUN_FILE).is_file():
            return []
        names = [*(name for name in OURS if name not in (*STAYS, RUN_FILE)), RUN_FILE]
        return [self.path / name for name in names if os.path.lexists(self.path / name)]

    def remove(self) -> None:
        """Remove what a run keeps here, and nothing else; the lock stays. So do topics of a broker that is gone."""
        kafka_log.remove(self.path)
        for entry in self.entries():
            if not entry.is_dir() or entry.is_symlink():
                self.disk.remove(entry)
            elif not self._empty(entry):
                self.disk.remove_tree(entry)
                if entry.exists():
                    raise CannotRun(f"{entry} cannot be removed; see who holds it or may not, and use --fresh again")
        if self.path.is_dir():
            self.disk.sync((), [self.path])
        self.folders = self._of_run("")

    def _empty(self, room: Path) -> bool:
        """Remove what a run keeps in a room where others have files, which stay; True if there are any."""
        others = others_in(room)
        for entry in [] if not others else sorted(room.iterdir()):
            if entry in others:
                continue
            if entry.is_dir() and not entry.is_symlink():
                self.disk.remove_tree(entry)
            else:
                self.disk.remove(entry)
        return bool(others)

    def read(self, name: str) -> Any:
        """A sealed file of the state, None where it is absent; Damaged where it is garbled."""
        try:
            return read_sealed(self.path / name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, value: Any) -> None:
        """Replace a sealed file of the state; it is on disk when this returns."""
        self.disk.seal(self.path / name, value)

    def noted(self, name: str) -> Any:
        """A note of the state, None where it is absent or garbled: nothing rests on it."""
        return read_note(self.path / name)

    def note(self, name: str, value: Any) -> None:
        """Replace a note of the state; a power cut may take it."""
        self.disk.seal(self.path / name, value, sync=False)

    def tell(self, name: str, value: Any) -> None:
        """Replace a plain JSON file of the state, for others to read; nothing rests on it."""
        self.disk.replace(self.path / name, json.dumps(value, default=str).encode(), sync=False)


def _is_another_state(entry: Path) -> bool:
    """True if a folder in the folder of a state is that of another run, and has no name that is wanted here."""
    return entry.name not in OURS and (entry / RUN_FILE).exists()


def _half_written(name: str) -> bool:
    """True if a file of ours would have got another name, had it been written to its end."""
    return any(re.fullmatch(rf"\.{re.escape(one)}\.\d+\.\d+", name) for one in FILES)


def why_not_writable(folder: Path) -> str | None:
    """Why nothing can be written to a folder that is there or to be made, None where it can."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return f"{there} is not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written to"


def why_not_delivered(path: Path, hidden: Path) -> str | None:
    """Why results could not get from where they are written to where they are seen, None where they can."""
    why_not = why_not_writable(path) or why_not_writable(hidden)
    if why_not is None and path.is_dir() and path.stat().st_dev != path.parent.stat().st_dev:
        return "is a disk of its own, and results come to it by links from beside it; name a folder on that disk"
    return why_not


def open_lock(path: Path) -> IO[str]:
    """A file that says which process runs; CannotRun where something of others has its name, which stays as it is."""
    if path.is_symlink():
        raise CannotRun(f"{path} is a link, and who runs here is written into a file; take it away")
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    handle = open(number, "r+", encoding="utf-8", errors="replace")  # noqa: SIM115
    if not re.fullmatch(r"\d{0,20}\s*", handle.read(32)):
        handle.close()
        raise CannotRun(f"{path} holds what no run has written, and would be lost; move it away")
    return handle


def write_lock(handle: IO[str]) -> None:
    """Say in a lock's file that it is this process which runs; where that cannot be written the lock is let go."""
    try:
        handle.seek(0)
        handle.truncate()
        handle.write(str(os.getpid()))
        handle.flush()
    except OSError:
        with suppress(OSError):
            handle.close()
        raise


def _take(handle: IO[str]) -> None:
    """Lock a file; whoever only looks whether it is locked holds it for an instant, so one more try is fair."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(0.2)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
