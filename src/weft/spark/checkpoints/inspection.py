"""Is what a state holds whole, and do its parts agree? Looked at before a run goes on, and before anything is written.

A stream, its writer's checkpoint and its readers' checkpoints each know something of the others: the segment last
committed, the batch that wrote it, the segment that is read next. Where they cannot all be right the run is refused,
with the file that is missing or behind. What a crash may leave half done is taken back, so that Spark does it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.plan.changing.fragments import Fragment
from weft.spark.channels.channel import Destination, fragment_of
from weft.spark.channels.folders import Folders
from weft.spark.channels.manifest import Manifest
from weft.spark.channels.position import BEGINNING, Position, earlier, later
from weft.spark.channels.ticks import TICKS_SUFFIX, content_of
from weft.spark.checkpoints import offsets as batches
from weft.spark.checkpoints.checkpoint import last_committed, last_planned
from weft.spark.checkpoints.ledger import Entries, files_of, ledger_of, planned_by, read_ledger, version_of
from weft.spark.checkpoints.offsets import Offsets
from weft.spark.sinks.ownership import Claim
from weft.spark.storage.disk import FRESH, Damaged, Disk, size_and_sum

LOOSE = ("sources/", "commits/")  # nothing rests on these where they are not listed; cut off, they stop Spark


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A fragment's checkpoint in the plan in force."""

    fragment: Fragment
    generation: int
    path: Path
    first: Mapping[str, Position]  # where inputs went on that another had read before

    @property
    def writer(self) -> str:
        """What its segments are signed with."""
        return f"{self.fragment.id}/{self.generation}"


def inspect(
    folders: Folders,
    fragments: Sequence[Fragment],
    generations: dict[str, int],
    gates: Mapping[str, tuple[int, Mapping[str, Position]]],
    claims: Sequence[Claim],
    moved: bool = False,
) -> list[Path]:
    """Refuse a state that is not whole; the files that must go before Spark goes on from it.

    Of one that was moved, what tells of ticks is written anew afterwards, and may have been already.
    """
    checkpoints = _checkpoints(folders, fragments, generations, gates)
    sinks: dict[str, Destination] = {claim.sink: claim.log for claim in claims}
    left_over: list[Path] = []
    needed: dict[str, Position] = {}
    for one in checkpoints:
        left_over += _checkpoint(one, folders, sinks, needed, moved)
        _outputs(one, folders, sinks)
    for stream in {stream for one in checkpoints for stream in (*one.fragment.outputs, *one.fragment.channels)}:
        folders.stream(stream).inspect(needed.get(stream))
    for sink in sinks.values():
        sink.inspect(None)
    return left_over


def _checkpoints(
    folders: Folders, fragments: Sequence[Fragment], generations: Mapping[str, int],
    gates: Mapping[str, tuple[int, Mapping[str, Position]]],
) -> list[Checkpoint]:  # fmt: skip
    found = []
    for fragment in fragments:
        generation = generations.get(fragment.id, 0)
        opened, first = gates.get(fragment.id, (generation, {}))
        path = folders.checkpoint(fragment.id, generation)
        found.append(Checkpoint(fragment, generation, path, first if opened == generation else {}))
    return found


def left_by_a_kill(
    folders: Folders, fragments: Sequence[Fragment], generations: Mapping[str, int],
    gates: Mapping[str, tuple[int, Mapping[str, Position]]], claims: Sequence[Claim],
) -> list[Path]:  # fmt: skip
    """What must go before fragments start again at a site whose process was killed, while others may run."""
    sinks: dict[str, Destination] = {claim.sink: claim.log for claim in claims}
    left_over: list[Path] = []
    for one in _checkpoints(folders, fragments, generations, gates):
        left_over += _checkpoint(one, folders, sinks, {}, False)
    return left_over


def begin_anew(
    folders: Folders, fragment: Fragment, generation: int, gate: Mapping[str, Position] | None, claims: Sequence[Claim]
) -> None:
    """Take back a first batch that was planned and never begun: a start that was cut short then can be made again."""
    path = folders.checkpoint(fragment.id, generation)
    if path.exists() and read_ledger(path, folders.run) is None:
        gates = {} if gate is None else {fragment.id: (generation, gate)}
        mend(left_by_a_kill(folders, [fragment], {fragment.id: generation}, gates, claims), folders.disk)


def inspect_recordings(folders: Folders, sources: Sequence[str]) -> None:
    """Refuse recordings that a run has begun to read and that are no longer whole."""
    for source in sources:
        log = folders.recording(source)
        last = log.last() if log.is_there() else None
        if last is None or not last.end:
            raise Damaged(log.manifests, "does not hold the end of the recording, though it was read")
        log.inspect(BEGINNING)


def mend(left_over: Sequence[Path], disk: Disk) -> None:
    """Take back what a crash has left half done."""
    for path in left_over:
        if path.is_dir():
            disk.remove_tree(path)
        else:
            disk.remove(path)
    disk.sync((), {path.parent for path in left_over})


def mend_ticks(folders: Folders, fragments: Sequence[Fragment]) -> None:
    """Write again what ticks say: it follows from their names."""
    for fragment in fragments:
        folder = folders.ticks(fragment.id)
        for path in folder.glob("*.json") if folder.is_dir() else ():
            if not path.name.startswith(".") and path.is_file() and path.read_bytes() != content_of(path.stem):
                folders.disk.replace(path, content_of(path.stem))


def not_older(claims: Sequence[Claim], epochs: Mapping[str, Mapping[str, int]], path: Path) -> None:
    """Refuse a state that is of an earlier time than its sinks: an epoch is remembered before it is used."""
    known = max((epoch for told in epochs.values() for epoch in told.values()), default=0)
    for claim in claims:
        if claim.log.is_there() and claim.log.epoch() > known + 1:
            raise Damaged(path, f"is of an earlier time than {claim.path}, which was written under later epochs")


def _checkpoint(
    one: Checkpoint, folders: Folders, sinks: dict[str, Destination], needed: dict[str, Position], moved: bool
) -> list[Path]:
    """What must go of a checkpoint that is whole; notes in `needed` from which segment its channels are needed."""
    told = read_ledger(one.path, folders.run)
    planned = last_planned(one.path)
    if told is None:
        if planned is None:
            _never_read(one, folders)
            return [one.path] if one.path.exists() else []
        if planned == 0 and last_committed(one.path) is None and not _has_written(one, folders, sinks):
            # The first batch was planned, and nothing of it was begun: Spark wants to find nothing there.
            return [one.path]
        return []
    if not one.path.is_dir():
        raise Damaged(one.path, f"is gone, though {told.begun + 1} batches were begun with it")
    if planned is None or planned < told.begun:
        raise Damaged(one.path / "offsets" / str(told.begun), "is gone, though this batch was begun")
    if planned > told.begun + 1:
        raise Damaged(ledger_of(one.path), f"is of an earlier time: it ends at batch {told.begun}, Spark at {planned}")
    if planned > told.begun and any(last.batch >= planned for _, last in _written(one, folders, sinks)):
        raise Damaged(ledger_of(one.path), f"is of an earlier time: results of batch {planned} are committed")
    _refuse_folders(one.path, told)
    left_over = list(_differing(one.path, told, moved))
    loose = [name for name in files_of(one.path) if name.startswith(LOOSE) and name not in told.files]
    left_over += [one.path / name for name in loose]
    if planned > told.begun:
        # Spark had planned it, and nothing of it was begun: it will be planned again.
        left_over.append(one.path / "offsets" / str(planned))
    commit = f"commits/{told.begun}"
    is_done = commit in told.files and (one.path / commit).exists() and one.path / commit not in left_over
    if not is_done and told.begun == told.adopted:
        raise Damaged(one.path / commit, "is gone or damaged, and its batch was another fragment's")
    _required(one.path, told)
    left_over += _state(one.path, told, told.begun + 1 if is_done else told.begun)
    _positions(one, folders, told, is_done, needed)
    return list(dict.fromkeys(left_over))


def _never_read(one: Checkpoint, folders: Folders) -> None:
    """A fragment without a checkpoint has read nothing, or its checkpoint is gone."""
    for stream in one.fragment.channels:
        channel = folders.stream(stream)
        for reader in channel.known():
            if fragment_of(reader) == one.fragment.id and channel.has_read(reader):
                raise Damaged(one.path, f"is gone, though {one.fragment.id} has read {stream} with it")


def _refuse_folders(checkpoint: Path, told: Entries) -> None:
    """Refuse a folder where Spark has, or will write, a file: it could neither read nor replace that."""
    for folder in sorted(path for path in checkpoint.rglob("*") if path.is_dir()):
        name, above = str(folder.relative_to(checkpoint)), folder.parent.relative_to(checkpoint).parts
        numbered = folder.name.partition(".")[0].isdigit()
        in_a_log = above in (("offsets",), ("commits",)) or (len(above) == 2 and above[0] == "sources")
        if name in told.files or version_of(name) is not None or (numbered and in_a_log):
            raise Damaged(folder, "is a folder in the place of a file of Spark's", f"take it away; {FRESH}")


def _differing(checkpoint: Path, told: Entries, moved: bool) -> Iterator[Path]:
    """Commits that are not what Spark wrote: their batch is done again. Any other file that differs is refused."""
    for name in files_of(checkpoint):
        listed, path = told.files.get(name), checkpoint / name
        if listed is None or (moved and f"{TICKS_SUFFIX}/" in name) or size_and_sum(path) == tuple(listed):
            continue
        if planned_by(name) > told.begun:
            continue  # nothing of that batch was begun: its plan goes, and an older one may be listed
        if not name.startswith("commits/"):
            raise Damaged(path, "is damaged: its content is not what Spark wrote")
        yield path


def _required(checkpoint: Path, told: Entries) -> None:
    """Refuse a checkpoint that lacks a file Spark goes on from."""
    wanted = ["metadata", f"offsets/{told.begun}", f"offsets/{told.begun - 1}"]
    wanted += [name for name in told.files if "/_metadata/" in name]
    by_source: dict[str, list[str]] = {}
    for name in told.files:
        if name.startswith("sources/"):
            by_source.setdefault(name.rpartition("/")[0], []).append(name)
    for names in by_source.values():
        whole = [_number(name) for name in names if name.endswith(".compact") and (checkpoint / name).exists()]
        wanted += [name for name in names if _number(name) > max(whole, default=-1)]
    for name in wanted:
        if name in told.files and not (checkpoint / name).exists():
            raise Damaged(checkpoint / name, "is gone, though Spark goes on from it")


def _number(name: str) -> int:
    stem = name.rpartition("/")[2].partition(".")[0]
    return int(stem) if stem.isdigit() else -1


def _state(checkpoint: Path, told: Entries, version: int) -> list[Path]:
    """Refuse state that cannot be brought to a version; snapshots that were never listed may be cut off, and go."""
    stores: dict[str, set[str]] = {}
    for name in told.files:
        if version_of(name) is not None:
            stores.setdefault(name.rpartition("/")[0], set()).add(name.rpartition("/")[2])
    left_over = []
    for store, listed in stores.items():
        folder = checkpoint / store
        here = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        unlisted = [name for name in here - listed if name.endswith(".snapshot")]
        usable = here - set(unlisted)
        snapshots = [_number(name) for name in usable if name.endswith(".snapshot") and _number(name) <= version]
        for delta in range(max(snapshots, default=0) + 1, version + 1):
            if f"{delta}.delta" not in usable:
                raise Damaged(folder / f"{delta}.delta", "is gone, though the state is brought up to date from it")
        left_over += [folder / name for name in unlisted]
    return left_over


def _positions(one: Checkpoint, folders: Folders, told: Entries, is_done: bool, needed: dict[str, Position]) -> None:
    """Refuse channels that end before the place at which a checkpoint reads on, or begin after it."""
    ends = _offsets(one.path, told.begun)
    before = _offsets(one.path, told.begun - 1) if told.begun else None
    for entry, stream in told.entries.items():
        reads_on = batches.position_of(ends, entry)
        start = reads_on if is_done else batches.position_of(before, entry)
        start = later(start, one.first.get(entry, BEGINNING))
        gone = folders.stream(stream).lacks(reads_on)
        if gone is not None:
            raise Damaged(gone, f"is gone, though {one.fragment.id} has read up to segment {reads_on}")
        needed[stream] = earlier(start, needed.get(stream, start))


def _offsets(checkpoint: Path, batch: int) -> Offsets | None:
    try:
        return batches.read_offsets(checkpoint, batch)
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, AssertionError, IndexError, KeyError) as error:
        raise Damaged(checkpoint / "offsets" / str(batch), f"cannot be read ({type(error).__name__})") from error


def _outputs(one: Checkpoint, folders: Folders, sinks: dict[str, Destination]) -> None:
    """Refuse a checkpoint that is behind what was written with it."""
    planned = last_planned(one.path)
    reached = -1 if planned is None else planned
    for destination, last in _written(one, folders, sinks):
        if last.batch > reached:
            what = f"is gone or of an earlier time: it has come to batch {reached}, but"
            raise Damaged(one.path, f"{what} {destination.place_of_records} holds its batch {last.batch}")


def _has_written(one: Checkpoint, folders: Folders, sinks: dict[str, Destination]) -> bool:
    """True if a batch of a checkpoint lies in a stream or sink."""
    return any(last.batch >= 0 for _, last in _written(one, folders, sinks))


def _written(
    one: Checkpoint, folders: Folders, sinks: dict[str, Destination]
) -> Iterator[tuple[Destination, Manifest]]:
    """The streams and sinks that a checkpoint was the last to write to, with what it wrote last."""
    destinations: list[Destination] = [folders.stream(stream) for stream in one.fragment.outputs]
    for destination in (*destinations, *(sinks[name] for name in one.fragment.sinks if name in sinks)):
        last = destination.last() if destination.is_there() else None
        if last is not None and last.writer == one.writer:
            yield destination, last
