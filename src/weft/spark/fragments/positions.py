"""Where does a fragment of the new cut go on? Positions of the old ones, carried over input by input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.plan.changing.fragments import Fragment
from weft.spark.channels.folders import Folders
from weft.spark.channels.position import BEGINNING, POSITION, TICK, Position, as_position, later
from weft.spark.channels.ticks import TICKS_SUFFIX
from weft.spark.checkpoints.checkpoint import fork, last_committed, positions
from weft.spark.fragments.wiring import Entry
from weft.spark.sources.rate import COUNT


@dataclass(frozen=True, slots=True)
class Ended:
    """An old fragment that has ended cleanly, with its checkpoint, its ways in, and where it first came in itself.

    One that is still at its last batch has that batch's number.
    """

    fragment: Fragment
    checkpoint: Path
    entries: tuple[Entry, ...]
    first: Mapping[str, Position] = field(default_factory=dict)
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands, in words that reach other sites: whoever goes on from it needs no more, and its checkpoint."""

    fragment: Fragment
    generation: int
    entries: tuple[Entry, ...] = ()
    first: dict[str, int | dict[str, int]] = field(default_factory=dict)
    last: int | None = None

    def ended(self, folders: Folders) -> Ended:
        """The same, with its checkpoint where that lies."""
        checkpoint = folders.checkpoint(self.fragment.id, self.generation)
        return Ended(self.fragment, checkpoint, self.entries, self.first, self.last)


def goes_on(old: Fragment | None, new: Fragment) -> bool:
    """Whether a fragment only changes its site, so that its checkpoint serves as it is."""
    return old is not None and replace(old, site=new.site) == new


def carry_over(
    folders: Folders, new: Fragment, entries: tuple[Entry, ...], ended: tuple[Ended, ...], target: Path
) -> dict[str, Position]:
    """Write the checkpoint of a fragment of the new cut; the position at which each channel entry goes on."""
    lines, logs = _where(folders, new, entries, ended)
    base = _base(new, entries, ended)
    if base is not None:
        channels = {entry.name: entry.stream for entry in entries if entry.is_channel}
        keep_state = new.stateful is not None
        ticks = folders.ticks(new.id)
        fork(base.checkpoint, target, lines, logs, keep_state, channels, ticks, folders.run, folders.disk)
    return {entry.name: as_position(json.loads(lines[entry.name])[POSITION]) for entry in entries if entry.is_channel}


def resume_positions(
    folders: Folders, new: Fragment, entries: tuple[Entry, ...], ended: tuple[Ended, ...]
) -> dict[str, Position]:
    """The position at which each entry of a fragment of the new cut goes on."""
    lines, _ = _where(folders, new, entries, ended)
    return {
        entry.name: as_position(json.loads(lines[entry.name])[POSITION if entry.is_channel else COUNT])
        for entry in entries
        if entry.name in lines
    }


def deciding_fragments(
    new: Fragment, entries: tuple[Entry, ...], ending: tuple[Ended, ...]
) -> tuple[Ended, ...] | None:
    """The old fragments whose last batches tell, once begun, where a new one goes on; None where they cannot."""
    written = {stream for old in ending for stream in old.fragment.outputs}
    telling: list[Ended] = []
    for entry in entries:
        old = _reader_of(new, entry, ending)
        if old is not None and _take(entry, old, {}, {}):
            telling.append(old)
        elif entry.stream in written:
            return None  # its last segment is still to come
    return tuple(telling)


def _reader_of(new: Fragment, entry: Entry, ended: tuple[Ended, ...]) -> Ended | None:
    """The old fragment that read an input of the new one."""
    query, reader = _reader(new, entry)
    return next((old for old in ended if f"{query}.{reader}" in old.fragment.streams), None)


def _where(
    folders: Folders, new: Fragment, entries: tuple[Entry, ...], ended: tuple[Ended, ...]
) -> tuple[dict[str, str], dict[str, Path]]:
    """Every entry's position as Spark writes it, and the users' files that were seen."""
    lines: dict[str, str] = {}
    logs: dict[str, Path] = {}
    for entry in entries:
        found = _reader_of(new, entry, ended)
        if found is not None and _take(entry, found, lines, logs):
            continue
        if entry.is_channel:
            # One that was read before, but of which nothing was committed yet, is read from its beginning again. One
            # that did not leave its fragment until now is read from here on.
            was_read = found is not None and bool(_entries_of(entry, found))
            following = BEGINNING if was_read else folders.stream(entry.stream).create().end()
            lines[entry.name] = json.dumps({POSITION: following, TICK: 0})
    return lines, logs


def _reader(new: Fragment, entry: Entry) -> tuple[str | None, str | None]:
    """The query and the operator that an input is for; of a relay for one alone (`SOURCE@QUERY.OPERATOR`) that one."""
    if entry.operator is not None or entry.is_channel or "@" not in new.id:
        return new.query, entry.operator
    query, _, operator = new.id.partition("@")[2].partition(".")
    return query, operator


def _take(entry: Entry, old: Ended, lines: dict[str, str], logs: dict[str, Path]) -> bool:
    """Carry one input over from where its reader left it, with the files seen and the ticks that belong to it."""
    before = _entries_of(entry, old)
    if not before:
        return False
    same = next((other for other in before if other.name == entry.name), before[0])
    held = positions(old.checkpoint, old.last)
    for suffix in ("", TICKS_SUFFIX):
        line = held.get(f"{same.name}{suffix}")
        if line is None or (suffix and entry.column is None):
            continue
        lines[f"{entry.name}{suffix}"] = _not_before(line, old.first.get(same.name, BEGINNING))
        seen = old.checkpoint / "sources" / f"{same.name}{suffix}"
        if seen.is_dir():
            logs[f"{entry.name}{suffix}"] = seen
    return entry.name in lines


def _entries_of(entry: Entry, old: Ended) -> list[Entry]:
    """The ways in by which an old fragment read what a new one reads."""
    source = entry.stream.partition("@")[0]
    return [
        other
        for other in old.entries
        if other.is_channel == entry.is_channel
        and other.stream in (entry.stream, source)
        and (entry.operator is None or other.operator == entry.operator)
    ]


def _not_before(line: str, first: Position) -> str:
    """A position as Spark writes it, or the one before which everything had been read by somebody else."""
    if not first:
        return line
    held = json.loads(line)
    for key in (POSITION, COUNT):
        if key in held:
            held[key] = later(as_position(held[key]), first)
    return json.dumps(held)


def _base(new: Fragment, entries: tuple[Entry, ...], ended: tuple[Ended, ...]) -> Ended | None:
    """The old fragment whose checkpoint is gone on from: that of the state, else of any operator it holds."""
    if new.stateful is not None:
        same = (old for old in ended if old.fragment.query == new.query)
        return next((old for old in same if old.fragment.stateful == new.stateful), None)
    readers = {*new.streams, *(".".join(map(str, _reader(new, entry))) for entry in entries)}
    holding = [old for old in ended if readers & set(old.fragment.streams)]
    holding.sort(key=lambda old: last_committed(old.checkpoint) is None)
    # One that is new, and reads what no old one has read, begins from nothing.
    others = ended if all(entry.is_channel for entry in entries) else ()
    return next(iter(holding or others), None)
