"""Whose results does a sink's folder hold? The run's that its record names, and nobody else's to touch.

    out/.NAME.weft/owner.json   {"run": "1f0c...", "sink": "high", "path": ".../out", "state": ".../.weft/h.yaml", ...}

A folder without a record is free. One with a record is the run's whose id it bears; the record also says where it lay
and where the state of that run was, so that a copy of either is told from the one that goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from weft.model.formats import SINKS
from weft.spark.channels.log import Log
from weft.spark.sinks.files import results_changed, results_in, results_listed
from weft.spark.storage.disk import Damaged, Disk, read_sealed

OWNER = "owner.json"
RUN_FILE = "run.json"
RECORDED = ("epoch", "delivered", OWNER)
RECORDED_FOLDERS = ("manifests", "data", "readers", "changes", "ahead")
_RESULT = re.compile(r"part-\d{10}-\d+\.")


class Owner(msgspec.Struct, frozen=True):
    """Who writes a sink: its run, and where record and state lay when it was claimed."""

    run: str
    sink: str
    path: str
    state: str
    format: str
    claimed_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A sink that a run wants: its name, format and folder, and the log beside it."""

    sink: str
    format: str
    path: Path
    log: Log

    @property
    def has_path(self) -> bool:
        """True if the folder is where its readers look."""
        return self.format in SINKS and SINKS[self.format].has_path

    @property
    def hidden(self) -> Path:
        """Where the record lies."""
        return self.log.folder


@dataclass(frozen=True, slots=True)
class SinkStanding:
    """How a sink stands to a run: `refusal` says why it may not be written, `orphan` that nobody can go on with it."""

    owner: Owner | None = None
    refusal: str | None = None
    orphan: bool = False
    results: Sequence[Path] = ()

    @property
    def ours(self) -> bool:
        """True if the run may go on there at once."""
        return self.owner is not None and self.refusal is None and not self.orphan


def standing(claim: Claim, state: Path, run: str | None, goes_on: bool = True) -> SinkStanding:
    """Whose a sink is, seen from a run in a state folder (None: one that is yet to begin); nothing is changed.

    A run that goes on must find the record of what it gave before; one that starts over need not.
    """
    owner = _owner(claim, goes_on and run is not None)
    if owner is None:
        return _unrecorded(claim)
    if owner.run == run:
        elsewhere = Path(owner.state) != state and holds(Path(owner.state), run)
        if elsewhere and Path(owner.path) == claim.path:
            says = f"{claim.path}: {owner.state} holds the same run, and this state is a copy of it"
            return SinkStanding(owner, f"{says}; go on there, or give this one a sink of its own")
        return SinkStanding(owner)
    left = results(claim, owner)
    given = claim.log.committed()
    if goes_on and run is not None and given is not None and given >= 0 and not holds(Path(owner.state), owner.run):
        what = f"is of another run ({owner.run}), though this one gave {_counted(given + 1, 'batch', 'batches')} there"
        remedy = f"bring {claim.hidden} back as it was, or move it and {claim.path} away and use --fresh"
        raise Damaged(claim.hidden / OWNER, what, remedy)
    if holds(Path(owner.state), owner.run):
        says = f"{claim.path} holds results of another run, whose state is {owner.state}"
        return SinkStanding(owner, f"{says}; go on with that one, or choose another folder", results=left)
    if left:
        many = _counted(len(left), "file", "files")
        says = f"{claim.path} holds results of another run ({many}, its state {owner.state} is gone)"
        return SinkStanding(owner, f"{says}; --fresh removes them, or choose another folder", True, left)
    return SinkStanding(owner, None, True)


def _owner(claim: Claim, goes_on: bool) -> Owner | None:
    path = claim.hidden / OWNER
    given = claim.log.committed()
    remedy = f"bring it back from a copy, or move {claim.path} and {claim.hidden} away"
    try:
        owner = msgspec.convert(read_sealed(path), Owner)
    except (FileNotFoundError, NotADirectoryError):
        if goes_on and given is not None and given >= 0:
            what = f"is gone, though {claim.path} was given {_counted(given + 1, 'batch', 'batches')} by this run"
            raise Damaged(path, what, f"{remedy} and use --fresh") from None
        return None
    except msgspec.ValidationError as error:
        raise Damaged(path, f"is no record of an owner: {error}", remedy) from error
    except Damaged as error:
        raise Damaged(path, error.what, remedy) from error
    others = _run_of_batches(claim)
    if others not in ("", owner.run):
        what = f"is of another time than what lies beside it: it says run {owner.run}, and the batches are of {others}"
        raise Damaged(path, what, remedy)
    return owner


def _run_of_batches(claim: Claim) -> str:
    """The run whose batches a sink's record lists; empty where it lists none that can be read."""
    log = Log(claim.hidden)
    for segment in sorted(log.numbers(), reverse=True) if log.manifests.is_dir() else ():
        try:
            return log.manifest(segment).run
        except (Damaged, FileNotFoundError):
            continue
    return ""


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _unrecorded(claim: Claim) -> SinkStanding:
    """A folder that no run has claimed is free, unless it holds what only a run writes."""
    if claim.hidden.is_dir() and any(not entry.name.startswith(".") for entry in claim.hidden.iterdir()):
        says = f"{claim.hidden} does not say whose results {claim.path} holds (it has no {OWNER})"
        return SinkStanding(None, f"{says}; move both away, or choose another folder")
    found = sorted(entry.name for entry in claim.path.iterdir()) if claim.path.is_dir() else []
    taken = [name for name in found if _RESULT.match(name)]
    if taken:
        says = f"{claim.path / taken[0]} is a result of a run that left no record ({claim.hidden} is gone)"
        return SinkStanding(None, f"{says}; move it away, or choose another folder")
    return SinkStanding()


def take(claim: Claim, state: Path, run: str, is_ours: bool) -> None:
    """Write down that a sink is a run's, again where it is already; one that is taken meanwhile is refused."""
    disk, path = claim.log.disk, claim.hidden / OWNER
    owner = Owner(run, claim.sink, str(claim.path), str(state), claim.format, round(time.time() * 1000))
    disk.make(claim.hidden)
    if is_ours:
        disk.seal(path, owner)
        return
    aside = claim.hidden / f".{OWNER}.{run}"
    disk.seal(aside, owner)
    try:
        disk.link(aside, path)
        disk.sync((), [claim.hidden])
    except FileExistsError:
        raise Damaged(path, "was made by another run at the same moment", "choose another folder") from None
    finally:
        disk.remove(aside)


def clear(claim: Claim, owner: Owner) -> None:
    """Remove the results that a sink's own record tells of, and then the record; nothing else."""
    disk = claim.log.disk
    for result in results(claim, owner):
        disk.remove(result)
    forget(claim.hidden, disk)


def results(claim: Claim, owner: Owner) -> tuple[Path, ...]:
    """The result files that a sink's own record tells of and that are still there."""
    return tuple(results_in(Log(claim.hidden, owner.run), claim.path, owner.format))


def changed(claim: Claim, owner: Owner) -> Path | None:
    """A result file that bears a name on the sink's record and is not as it was written; None where there is none."""
    return next(results_changed(Log(claim.hidden, owner.run), claim.path, owner.format), None)


def unlisted(claim: Claim, owner: Owner) -> Path | None:
    """A file with the name of a result that a sink's record does not tell of; None where there is none."""
    found = sorted(claim.path.iterdir()) if claim.has_path and claim.path.is_dir() else []
    named = [path for path in found if _RESULT.match(path.name)]
    listed = results_listed(Log(claim.hidden, owner.run), owner.format) if named else set()
    return next((path for path in named if path.name not in listed), None)


def was_claimed_from(claim: Claim, state: Path) -> bool:
    """True if a sink's record names a state folder as its run's."""
    try:
        return bool(read_sealed(claim.hidden / OWNER)["state"] == str(state))
    except (FileNotFoundError, NotADirectoryError, Damaged, LookupError, TypeError):
        return False


def forget(hidden: Path, disk: Disk) -> None:
    """Remove a sink's record, the owner last."""
    for name in RECORDED_FOLDERS:
        disk.remove_tree(hidden / name)
    for name in RECORDED:
        disk.remove(hidden / name)
    if hidden.is_dir() and not hidden.is_symlink() and not any(hidden.iterdir()):
        hidden.rmdir()


def holds(state: Path, run: str) -> bool:
    """True if a state folder is that of a run, or might be: its record is there, but cannot be read."""
    try:
        return bool(read_sealed(state / RUN_FILE)["run"] == run)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (Damaged, OSError, LookupError, TypeError):
        return True
