"""Which files of a checkpoint are known to be whole? A list that its fragment keeps beside it, with checksums.

    fragments/ID/ledger-0.json   {"run": "1f0c...", "begun": 12, "files": {"offsets/12": [610, 3735928559], ...}, ...}

Spark neither syncs its checkpoint nor checks it. While a batch is worked out, and again before its results are
committed, what Spark has written since is synced and put on this list. When a run goes on, files that differ are
refused by name; a plan that was never begun, and commits that are not on the list, are taken back, so that Spark does
the last batch again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from weft.spark.storage.disk import Damaged, Disk, read_sealed, size_and_sum

TRIES = 5


class Entries(msgspec.Struct):
    """What a ledger says."""

    run: str
    begun: int = -1
    adopted: int = -1
    entries: dict[str, str] = {}
    files: dict[str, tuple[int, int]] = {}


class Ledger:
    """The list of a checkpoint's files that are synced and whole."""

    def __init__(self, checkpoint: Path, run: str, disk: Disk, told: Entries | None = None) -> None:
        self.path = ledger_of(checkpoint)
        self.checkpoint = checkpoint
        self.disk = disk
        self.told = told or read_ledger(checkpoint, run) or Entries(run)
        self._known = {checkpoint.parents[2]}  # folders whose own names are on disk; the state folder is
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, batch: int, entries: dict[str, str]) -> None:
        """A batch is about to be worked out: its plan, and all that it rests on, is on disk and listed.

        `entries` are the names of its inputs in Spark, with the channels that they read.
        """
        with self._lock:
            self.told.begun = max(batch, self.told.begun)
            self.told.entries = entries
            for name in (f"offsets/{batch}", f"commits/{batch}"):
                self.told.files.pop(name, None)  # a batch may have been planned, and done, before in another way
            self._keep(batch)

    def adopt(self, batch: int, entries: dict[str, str]) -> None:
        """All of a checkpoint that was made to go on after a batch is on disk and listed."""
        with self._lock:
            self.told.begun = self.told.adopted = batch
            self.told.entries = entries
            self._keep(batch + 1, commits=True)

    def settle(self, batch: int) -> None:
        """A batch is worked out and about to be committed: the state that it leaves is on disk."""
        with self._lock:
            self._keep(batch + 1, write=False)

    def look(self) -> None:
        """List what Spark has written after the last batch, once it has committed it."""
        with self._lock:
            commit = f"commits/{self.told.begun}"
            if self._closed:
                return
            if commit not in self.told.files and (self.checkpoint / commit).exists():
                self._keep(self.told.begun + 1, commits=True)

    def close(self) -> None:
        """List what there is; whoever comes next to this checkpoint keeps the list."""
        self.look()
        with self._lock:
            self._closed = True

    def _keep(self, version: int, commits: bool = False, write: bool = True) -> None:
        """Sync and list what is new, of the state nothing beyond a version, and replace the list on disk."""
        for attempt in range(TRIES):
            try:
                found = self._take(version, commits)
                if write:
                    self.disk.make(self.path.parent)
                    self.disk.seal(self.path, self.told, after=found)
                else:
                    self.disk.sync(found)
                return
            except FileNotFoundError:
                # Spark tidies up as it goes: what was just listed may be gone.
                if attempt == TRIES - 1 or not self.checkpoint.is_dir():
                    raise
                self.told.files = {}
                self._known = {self.checkpoint.parents[2]}

    def _take(self, version: int, commits: bool = False) -> list[Path]:
        """List what Spark has written since the last time, of the state nothing beyond a version; it must be synced.

        A batch that is done again writes over what it has left of the state, so that this is not listed before. The
        commit of a batch matters only until the next is planned: while batches follow one another it is left out. So
        is the plan of a batch that has not begun: should the process end here, it is made again, in another way.
        """
        found = {
            name
            for name in files_of(self.checkpoint)
            if (commits or not name.startswith("commits/")) and planned_by(name) <= self.told.begun
        }
        new = [name for name in found - self.told.files.keys() if (version_of(name) or 0) <= version]
        sums = {name: size_and_sum(self.checkpoint / name) for name in new}
        kept = {name: told for name, told in self.told.files.items() if name in found}
        self.told.files = {name: told for name, told in kept.items() if (version_of(name) or 0) <= version} | sums
        paths = [self.checkpoint / name for name in new]
        return [*paths, *self._folders([path.parent for path in paths])]

    def _folders(self, holding: Iterable[Path]) -> list[Path]:
        """Folders that have got new names: those of the files, and above them those that are new themselves."""
        found = dict.fromkeys(holding)
        for folder in list(found):
            one = folder
            while one not in self._known:
                self._known.add(one)
                one = one.parent
                found[one] = None
        return list(found)


def ledger_of(checkpoint: Path) -> Path:
    """Where the ledger of a checkpoint lies: beside it."""
    return checkpoint.with_name(f"ledger-{checkpoint.name.rpartition('-')[2]}.json")


def read_ledger(checkpoint: Path, run: str) -> Entries | None:
    """The ledger of a checkpoint; None where there is none, or it is garbled: then nothing is known of its files."""
    path = ledger_of(checkpoint)
    try:
        found = msgspec.convert(read_sealed(path), Entries)
    except (FileNotFoundError, NotADirectoryError, Damaged, msgspec.ValidationError):
        return None
    if run and found.run != run:
        raise Damaged(path, f"belongs to another run ({found.run}), not to {run}")
    return found


def files_of(checkpoint: Path) -> list[str]:
    """All files of a checkpoint that have their names, as paths within it."""
    found: list[str] = []
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{checkpoint}/{folder}") as listed:
                for entry in listed:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        waiting.append(f"{folder}{entry.name}/")
                    else:
                        found.append(folder + entry.name)
        except FileNotFoundError:  # Spark tidies up as it goes
            continue
    return found


def planned_by(name: str) -> int:
    """The batch that a file plans, -1 for other files."""
    folder, _, number = name.rpartition("/")
    return int(number) if folder == "offsets" and number.isdigit() else -1


def version_of(name: str) -> int | None:
    """The version that a file of the state brings it to, None for other files."""
    if not name.startswith("state/") or not name.endswith((".delta", ".snapshot")):
        return None
    number = name.rpartition("/")[2].partition(".")[0]
    return int(number) if number.isdigit() else None
