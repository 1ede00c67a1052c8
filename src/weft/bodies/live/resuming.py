"""What does a run go on from? Its state and its sinks, where all agree; else it is refused, and nothing is touched.

What is looked at first is looked at without writing. A new state is written down before anything else; then its sinks
are claimed, one by one; a start that was cut off in between is taken up where it was.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from weft.bodies.live import journal
from weft.bodies.live.identity import differences, identity, queries_in, unreachable
from weft.bodies.live.returning_queries import coming_again, forget
from weft.bodies.live.state import EPOCHS, EPOCHS_OF_SITES, CannotRun, Record, State
from weft.model import Deployment
from weft.spark.channels.kinds import MIRROR
from weft.spark.checkpoints import inspection
from weft.spark.checkpoints.checkpoint import relocate
from weft.spark.fragments.outputs import claims_of
from weft.spark.sinks import ownership
from weft.spark.sinks.ownership import Claim, Owner, SinkStanding
from weft.spark.sources import streams as sources
from weft.spark.sources.taken import changed_notes, shown_name
from weft.spark.storage.disk import Damaged
from weft.spec.paths import unbraced

CLOSING = "closing.json"


@dataclass(frozen=True, slots=True)
class Removal:
    """What starting over removes: the state's own entries, and the results that sinks' own records tell of."""

    state: Path
    entries: tuple[Path, ...] = ()
    sinks: tuple[tuple[Claim, Owner], ...] = ()
    results: dict[Path, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.entries or self.sinks)

    def lines(self) -> list[str]:
        """What would go, one line each."""
        found = [f"{path}: {count} result files" for path, count in self.results.items() if count]
        return [*found, f"{self.state}: the state of the run"] if self.entries else found


class Resuming:
    """A run's way into its state folder; `sinks`: those of the deployment are on this machine."""

    def __init__(
        self, state: State, deployment: Deployment, parts: dict[str, Any], file: Path | None = None, sinks: bool = True
    ) -> None:
        self.state = state
        self.sinks = sinks
        self.file = "" if file is None else str(Path(file).resolve())
        self.deployment = deployment
        self.parts = parts
        self.notes: list[str] = []

    def look(self, fresh: bool) -> None:
        """Refuse, before anything is written, what can never be this run's state or sinks."""
        self.state.check_place()
        record = self._record(fresh)
        if fresh:
            self.removal()
        elif record is None:
            self.standings(None)

    def removal(self) -> Removal:
        """What starting over would remove; CannotRun where a sink is somebody else's."""
        record = self._record(fresh=True)
        run = None if record is None else record.run
        claims = {claim.hidden: claim for claim in self._claims()}
        if record is not None:
            for name, path in record.sinks.items():
                log = self.state.folders.sink(name, Path(path))
                claims.setdefault(log.folder, Claim(name, "", Path(path), log))
        current = {claim.hidden for claim in self._claims()}
        sinks, results = [], {}
        for claim in claims.values():
            if claim.hidden not in current and not ownership.was_claimed_from(claim, self.state.path):
                continue  # of the place that this state was copied from
            found = _fresh_standing(claim, self.state.path, run)
            if found.owner is not None:
                changed = ownership.changed(claim, found.owner)
                if changed is not None:
                    raise CannotRun(f"{changed} is not as this run wrote it; move it away, and use --fresh again")
                other = ownership.unlisted(claim, found.owner)
                if other is not None:
                    says = f"{other} has the name of a result, and {claim.hidden} does not list it as it should"
                    raise CannotRun(f"{says}; move it away, and use --fresh again")
                sinks.append((claim, found.owner))
                results[claim.path] = len(ownership.results(claim, found.owner))
        return Removal(self.state.path, tuple(self.state.entries()), tuple(sinks), results)

    def start_over(self) -> None:
        """Remove what this deployment wrote, by its own records; cut off, it is to be said again."""
        removal = self.removal()
        record = self._record(fresh=True)
        if record is not None:
            self.state.write(ownership.RUN_FILE, msgspec.structs.replace(record, clearing=True))
        for claim, owner in removal.sinks:
            ownership.clear(claim, owner)
        if record is not None:
            self.state.remove()

    def open(self) -> dict[str, Any] | None:
        """Take up the state as it was left, or begin one; the summary of a run that was finished before."""
        record = self._record(fresh=False)
        if record is not None and not self.sinks:
            self._refuse_new_queries()
        again = () if record is None else coming_again(self.state, queries_in(self.parts), self._claims())
        standings = self.standings(record, again)
        self.state.sweep()
        if record is None:
            sinks = {claim.sink: str(claim.path) for claim in self._claims()}
            record = self.state.begin(self.parts, sinks, self._sources(), self.file)
            self.state.is_of(record)
        else:
            self._compare(record)
            self._refuse_too_late()
            record = self._with_new_file(self._known_by(self._inspect(record, again)))
            forget(self.state, self.deployment, again)
            self.notes += [f"query {name} was in the file before, and begins anew" for name in again]
        self.claim(record, standings)
        finished = self.state.read("finished.json")
        return None if finished is None else self._finished(finished)

    def _refuse_new_queries(self) -> None:
        """Refuse queries that the plan does not have where what they may have left lies at sites of other machines."""
        held = journal.read(self.state)
        if held is not None:
            new = queries_in(self.parts) - {stream.partition(".")[0] for stream in held.placement.homes}
            if new:
                names = ", ".join(sorted(new))
                raise CannotRun(
                    f"{self.state.path} goes on without {names}: with --apart queries do not come to a run that was "
                    "begun, since sites may hold what they left; take them out of the file"
                )

    def join(self, fresh: bool) -> None:
        """Take up a state whose sites run on while the desk was away; CannotRun with another file, or to start over."""
        record = self._record(fresh=False)
        if record is None or fresh or self._is_changed(record):
            why = "with --fresh" if fresh else "with another file"
            raise CannotRun(f"sites of {self.state.path} still run: stop them with `weft stop` to go on {why}")

    def _refuse_too_late(self) -> None:
        """Refuse to go on where windows were closed for good and sources hold other files now."""
        # A recording was laid down whole before its first record was given: what becomes of its file is another matter
        # until all of it is through.
        by_name = {source.name for source in self.deployment.sources if source.facts.seen_by_name}
        closing, finished = self.state.read(CLOSING), self.state.read("finished.json")
        files = source_files(self.deployment)
        unlike = closing is not None and any(closing["files"].get(name) != files.get(name) for name in by_name)
        if unlike or (finished is not None and finished["files"] != files):
            raise CannotRun(
                "this run came to its end with --until-done, which closed every window, and the sources hold other "
                "files now: use --fresh to run over all of them"
            )

    def _record(self, fresh: bool) -> Record | None:
        record = self.state.record()
        if record is not None:
            self.state.refuse_file(record, self.file, _parts(record) == self.parts)
            self.state.is_of(record)
            if record.clearing and not fresh:
                raise CannotRun(f"{self.state.path}: an earlier --fresh was cut off half way; use --fresh again")
        return record

    def _claims(self) -> list[Claim]:
        return claims_of(self.deployment, self.state.folders) if self.sinks else []

    def standings(self, record: Record | None, again: Sequence[str] = ()) -> list[SinkStanding]:
        """How each sink stands to this run; CannotRun at the first that is another's."""
        found = []
        for claim in self._claims():
            goes_on = claim.sink.partition(".")[0] not in again
            one = ownership.standing(claim, self.state.path, None if record is None else record.run, goes_on)
            if one.refusal is not None:
                raise CannotRun(f"sink {claim.sink}: {one.refusal}")
            found.append(one)
        return found

    def _sources(self) -> dict[str, str]:
        """Where users' files are read: Spark knows each of them by its full name."""
        return {
            source.name: sources.path_of(self.deployment, source.path)
            for source in self.deployment.sources
            if source.path is not None and source.facts.seen_by_name
        }

    def _compare(self, record: Record) -> None:
        """Refuse a state that cannot go on with this file, or with files in another place."""
        changed = unreachable(record.deployment, self.parts)
        now = self._sources()
        moved = [
            f"source {name}: its files were in {path}, are in {now[name]}: Spark would take all of them for new"
            for name, path in record.sources.items()
            if name in now and now[name] != path
        ]
        if changed or moved:
            lines = "\n  ".join([*changed, *moved])
            what = "another deployment" if changed else "a run that was begun elsewhere"
            raise CannotRun(f"{self.state.path} holds {what}:\n  {lines}\nuse --fresh to start over")
        if self._is_changed(record) and self.state.read("finished.json") is not None:
            lines = "\n  ".join(differences(_parts(record), self.parts))
            raise CannotRun(
                f"{self.state.path} holds a run that was finished, with another file:\n  {lines}\n"
                "use --fresh to run it again"
            )

    def _is_changed(self, record: Record) -> bool:
        return bool(differences(_parts(record), self.parts))

    def _known_by(self, record: Record) -> Record:
        """The record of a run with the name that its file has now."""
        if self.file in ("", record.file):
            return record
        renamed = msgspec.structs.replace(record, file=self.file)
        self.state.write(ownership.RUN_FILE, renamed)
        return renamed

    def _with_new_file(self, record: Record) -> Record:
        """The record of a run that goes on with another file; sinks of queries that are gone stay known to it."""
        if not self._is_changed(record):
            return record
        for line in differences(_parts(record), self.parts):
            self.notes.append(f"the file has changed: {line}")
        sinks = {**record.sinks, **{claim.sink: str(claim.path) for claim in self._claims()}}
        changed = msgspec.structs.replace(record, deployment=self.parts, sinks=sinks, sources=self._sources())
        self.state.write(ownership.RUN_FILE, changed)
        return changed

    def _inspect(self, record: Record, again: Sequence[str]) -> Record:
        """Refuse a state that is not whole; take back what a crash has left half done."""
        state, folders = self.state, self.state.folders
        claims = [claim for claim in self._claims() if claim.sink.partition(".")[0] not in again]
        begun = folders.checkpoints()
        held = journal.read(state)
        if held is None:
            if begun:
                raise Damaged(state.path / journal.FILE, f"is gone, though {begun[0]} was begun under it")
            return record
        if begun:
            for name in ("flows.json", EPOCHS):
                if state.read(name) is None:
                    raise Damaged(state.path / name, f"is gone, though {begun[0]} was begun with it")
        for path in sorted((state.path / EPOCHS_OF_SITES).glob("*.json")):
            state.read(f"{EPOCHS_OF_SITES}/{path.name}")
        fragments = held.fragments
        if state.channels.uses(MIRROR):
            if Path(record.state) != state.path or again:
                what = "a query that comes again" if again else "a state that was moved"
                raise CannotRun(f"{state.path}: {what} is not there yet where streams are mirrored; use --fresh")
            for claim in claims:
                claim.log.inspect(None)
            return record  # what lies in the rooms of sites is theirs to look at, before they take orders
        replayed = [source.name for source in self.deployment.sources if source.facts.recorded]
        inspection.inspect_recordings(folders, replayed)
        generations, gates = held.generations, held.gates
        moved = Path(record.state) != state.path
        inspection.not_older(claims, state.read(EPOCHS) or {}, state.path / EPOCHS)
        left_over = inspection.inspect(folders, fragments, generations, gates, claims, moved)
        inspection.mend(left_over, state.disk)
        if moved:
            for one in fragments:
                checkpoint = folders.checkpoint(one.id, generations.get(one.id, 0))
                relocate(checkpoint, folders.ticks(one.id), record.run, state.disk)
            sinks = {claim.sink: str(claim.path) for claim in self._claims()}
            self.notes.append(f"this state was in {record.state} before, and goes on here")
            record = msgspec.structs.replace(record, state=str(state.path), sinks=sinks)
            state.write(ownership.RUN_FILE, record)
        inspection.mend_ticks(folders, fragments)
        self.notes += [done_again(state.path, left_over)] if left_over else []
        paths = [folders.checkpoint(one.id, generations.get(one.id, 0)) for one in fragments]
        self.notes += changed_notes(paths, state.path)
        return record

    def claim(self, record: Record, standings: list[SinkStanding]) -> None:
        """Write down whose the sinks are, where that is new; what others have put there is told of."""
        for claim, found in zip(self._claims(), standings, strict=True):
            if found.orphan:
                ownership.forget(claim.hidden, self.state.disk)
                self.notes.append(f"{claim.path}: the record of an earlier run, whose results are gone, was removed")
            owner = found.owner
            here = (str(self.state.path), str(claim.path))
            if not found.ours or owner is None or (owner.state, owner.path) != here:
                ownership.take(claim, self.state.path, record.run, found.ours)
            self.notes += _others(claim) if not found.ours else []
            if found.ours and _all_gone(claim):
                self.notes.append(f"{claim.path}: all results that were delivered before are gone; new ones follow")

    def _finished(self, finished: dict[str, Any]) -> dict[str, Any]:
        for claim in self._claims():
            if _all_gone(claim):
                raise CannotRun(f"{claim.path}: the results of the finished run are gone; use --fresh to run it again")
        return dict(finished["summary"])


def done_again(state: Path, left_over: Sequence[Path]) -> str:
    """A line for what was not over when the run ended: a stop in order leaves some of it, too."""
    names = [str(path.relative_to(state)) for path in left_over]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"what was not over when the run ended is done again, and counts once ({shown})"


def _parts(record: Record) -> dict[str, Any]:
    """What a run was begun with; records of earlier versions told its placement too, which the journal has."""
    return {part: held for part, held in record.deployment.items() if not part.startswith("place of ")}


def _fresh_standing(claim: Claim, state: Path, run: str | None) -> SinkStanding:
    """How a sink stands to a run that starts over; CannotRun where it is another's that may go on."""
    found = ownership.standing(claim, state, run, goes_on=False)
    if found.owner is None and found.refusal is None:
        return found
    mine = found.owner is not None and Path(found.owner.state) == state
    if found.refusal is not None and not (found.orphan or mine):
        raise CannotRun(f"sink {claim.sink}: {found.refusal}")
    return found


def _all_gone(claim: Claim) -> bool:
    """True if a sink was given files, and none of a run's is left in its folder."""
    last = claim.log.last() if claim.log.is_there() else None
    if not claim.has_path or last is None or not last.rows_total:
        return False
    return not claim.path.is_dir() or not any(entry.name.startswith("part-") for entry in claim.path.iterdir())


def _others(claim: Claim) -> list[str]:
    """A word about files in a sink's folder that look like results and are not."""
    if not claim.has_path or not claim.path.is_dir():
        return []
    names = sorted(entry.name for entry in claim.path.iterdir() if entry.suffix == f".{claim.format}")
    if not names:
        return []
    return [f"{claim.path} holds {len(names)} {claim.format} files of others ({names[0]}); they stay as they are"]


_closing = threading.Lock()


def keep_parts(state: State, deployment: Deployment) -> None:
    """Write down what the state is of, where queries have come or gone while it ran."""
    parts, record = identity(deployment), state.record()
    if record is not None and record.deployment != parts:
        state.write(ownership.RUN_FILE, msgspec.structs.replace(record, deployment=parts))


def note_closing(state: State, deployment: Deployment) -> None:
    """Write down, once, which files sources hold when windows begin to be closed for good: others come too late."""
    with _closing:
        if state.read(CLOSING) is None:
            state.write(CLOSING, {"files": source_files(deployment)})


def source_files(deployment: Deployment) -> dict[str, list[list[object]]]:
    """The files that sources hold, also in folders within theirs, with size and time of change."""
    found: dict[str, list[list[object]]] = {}
    for source in deployment.sources:
        if source.path is None:
            continue
        held = found[source.name] = []
        for name in _lying_in(sources.path_of(deployment, source.path)):
            with suppress(OSError):  # gone meanwhile, or a link that leads nowhere
                told = os.stat(name)
                held.append([shown_name(name), told.st_size, told.st_mtime])
    return found


def _lying_in(path: str) -> list[str]:
    """Every file that a path, a folder or a glob stands for."""
    hits = [path] if os.path.lexists(path) else [hit for one in unbraced(path) for hit in glob.glob(one)]
    found = []
    for hit in hits:
        if not os.path.isdir(hit):
            found.append(hit)
        for folder, inner, names in os.walk(hit):
            inner[:] = [name for name in inner if not name.startswith(".")]
            found += [os.path.join(folder, name) for name in names if not name.startswith(".")]
    return sorted(found)
