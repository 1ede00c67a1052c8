"""A second kind of channel, in memory, for the tests: a position is an offset in each partition.

It is to the folder log what a broker would be: whoever opens a stream by its name sees the same records; each commit
leaves a mark in every partition, so that positions move on also where it brings no records.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa

from weft.spark.channels.channel import Channel, Fenced, Removed, Writer
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import WHOLE, Partitioning
from weft.spark.channels.position import BEGINNING, Position, reaches
from weft.spark.storage.disk import Disk

Rows = list[dict[str, Any]]


@dataclass
class Stored:
    """What is held of one stream."""

    partitioning: Partitioning = WHOLE
    epoch: int = 0
    commits: list[Manifest] = field(default_factory=list)
    ends: list[Position] = field(default_factory=list)
    rows: dict[tuple[int, int], Rows] = field(default_factory=dict)  # by segment and partition
    kept_from: int = 0  # segments before this one are gone
    readers: dict[str, tuple[Position, bool]] = field(default_factory=dict)
    aside: dict[int, Rows] = field(default_factory=dict)
    waiting: Rows | None = None


def partition_of(row: dict[str, Any], partitioning: Partitioning) -> int:
    """The partition of a record, by a hash that is the same in every process."""
    return zlib.crc32(repr([row[name] for name in partitioning.key]).encode()) % partitioning.count


class MemoryChannel(Channel):
    """A stream that is lost with the process."""

    streams: dict[tuple[Path, str], Stored] = {}  # noqa: RUF012 - shared by all who open a stream, as a broker is

    def __init__(self, state: Path, name: str, run: str) -> None:
        self.state, self.name, self.run = state, name, run

    @classmethod
    def of_stream(cls, state: Path, name: str, run: str, disk: Disk) -> Self:
        return cls(state, name, run)

    @classmethod
    def of_options(cls, options: dict[str, str]) -> Self:
        return cls(Path(options["state"]), options["name"], options["run"])

    @classmethod
    def names(cls, state: Path) -> list[str]:
        return sorted(name for where, name in cls.streams if where == state)

    def options(self) -> dict[str, str]:
        return {"state": str(self.state), "name": self.name, "run": self.run}

    @property
    def held(self) -> Stored:
        return self.streams[self.state, self.name]

    @property
    def place_of_records(self) -> str:
        return f"memory:{self.name}"

    def is_there(self) -> bool:
        return (self.state, self.name) in self.streams

    def create(self, partitioning: Partitioning = WHOLE) -> Self:
        held = self.streams.setdefault((self.state, self.name), Stored())
        if partitioning not in (WHOLE, held.partitioning):
            if held.commits:
                raise ValueError(f"stream {self.name} has {held.partitioning}, and cannot have {partitioning}")
            held.partitioning = partitioning
        return self

    def epoch(self) -> int:
        return self.held.epoch if self.is_there() else 0

    def fence(self, epoch: int) -> None:
        held = self.create().held
        held.epoch = max(epoch, held.epoch)

    def open_writer(self, epoch: int, writer: str) -> Writer:
        return MemoryWriter(self.create(), epoch, writer)

    def write_aside(self, records: Any, run: int, measured: list[str], few: bool = False) -> Written:
        self.held.aside[run] = records
        return replace(written(records, measured), folder=Path(str(run)))

    def forget_aside(self, run: int | None = None) -> None:
        for one in [run] if run is not None else list(self.held.aside):
            self.held.aside.pop(one, None)

    def last(self) -> Manifest | None:
        return self.held.commits[-1] if self.held.commits else None

    def end(self) -> Position:
        return self.held.ends[-1] if self.held.ends else BEGINNING

    def _after(self, position: Position) -> int:
        """The first segment that lies at a position or beyond."""
        return sum(reaches(position, end) for end in self.held.ends)

    def reach(self, start: Position, commits_max: int) -> Position:
        last = min(self._after(start) + commits_max, len(self.held.ends))
        return self.held.ends[last - 1] if last > self._after(start) else start

    def upto(self, position: Position) -> Manifest | None:
        following = self._after(position)
        if 0 < following < self.held.kept_from:
            raise Removed(self.place_of_records, f"segment {following - 1} is gone")
        return self.held.commits[following - 1] if following else None

    def commits(self, start: Position, end: Position) -> Iterator[tuple[Position, Manifest]]:
        for number in range(self._after(start), self._after(end)):
            if number < self.held.kept_from:
                raise Removed(self.place_of_records, f"segment {number} is gone")
            yield self.held.ends[number], self.held.commits[number]

    def pieces(self, manifests: Iterable[Manifest], partitions: Collection[int] | None = None) -> list[Any]:
        every = range(self.held.partitioning.count)
        return [
            (manifest.segment, part)
            for manifest in manifests
            for part in every
            if (partitions is None or part in partitions) and self.held.rows.get((manifest.segment, part))
        ]

    def read(self, piece: Any, columns: list[str]) -> Any:
        return pa.Table.from_pylist(self.held.rows[piece]).select(columns)

    def known(self) -> list[str]:
        return list(self.held.readers) if self.is_there() else []

    def register(self, reader: str) -> None:
        held = self.held
        first = held.ends[held.kept_from - 1] if held.kept_from else BEGINNING
        held.readers.setdefault(reader, (first, False))

    def forget(self, reader: str) -> None:
        self.held.readers.pop(reader, None)

    def passed(self, reader: str, position: Position, has_read: bool = True) -> None:
        self.held.readers[reader] = (position, has_read)

    def place(self, reader: str) -> Position:
        return self.held.readers.get(reader, (BEGINNING, False))[0]

    def has_read(self, reader: str) -> bool:
        return self.held.readers.get(reader, (BEGINNING, False))[1]

    def retain(self) -> None:
        held = self.held
        held.kept_from = max(held.kept_from, min((self._after(at) for at, _ in held.readers.values()), default=0))
        held.rows = {key: rows for key, rows in held.rows.items() if key[0] >= held.kept_from}

    def lacks(self, position: Position) -> Path | None:
        end = self.end() if self.is_there() else BEGINNING
        return None if reaches(end, position) else Path(self.place_of_records)

    def inspect(self, needed: Position | None) -> None:
        if needed is not None and self._after(needed) < self.held.kept_from:
            raise Removed(self.place_of_records, "is gone, though its records are still needed")


class MemoryWriter(Writer):
    """Commits to a stream in memory."""

    def __init__(self, channel: MemoryChannel, epoch: int, writer: str) -> None:
        if channel.epoch() > epoch:
            raise Fenced(channel.name, epoch, channel.epoch())
        self.channel, self.epoch, self.writer = channel, epoch, writer
        channel.held.epoch = epoch
        channel.held.waiting = None
        self.last = channel.last()
        self._rows: Rows = []

    def write(self, records: Any, measured: list[str], few: bool = False) -> Written:
        self._rows = records
        return written(records, measured)

    def take(self, written: Written) -> Written:
        self._rows = self.channel.held.aside.pop(int(str(written.folder)))
        return replace(written, folder=None)

    def discard(self, written: Written) -> None:
        self._rows = []

    def commit(self, manifest: Manifest) -> Manifest:
        held = self.channel.held
        if held.epoch != self.epoch or len(held.commits) != manifest.segment:
            raise Fenced(self.channel.name, self.epoch, held.epoch)
        counts = [0] * held.partitioning.count
        for row in self._rows if manifest.rows else []:
            part = partition_of(row, held.partitioning) if held.partitioning != WHOLE else 0
            held.rows.setdefault((manifest.segment, part), []).append(row)
            counts[part] += 1
        before = self.channel.end()
        assert not isinstance(before, int) or before == BEGINNING
        offsets = before if isinstance(before, dict) else {}
        several = held.partitioning != WHOLE
        manifest = msgspec.structs.replace(
            manifest,
            run=self.channel.run,
            parts=tuple(range(len(counts))) if several else (),
            part_rows=tuple(counts) if several else (),
        )
        held.commits.append(manifest)
        held.ends.append({str(part): offsets.get(str(part), 0) + rows + 1 for part, rows in enumerate(counts)})
        self._rows, self.last = [], manifest
        return manifest


def written(records: Rows, measured: list[str]) -> Written:
    """What a batch holds."""
    times = {column: max(row[column] for row in records) for column in measured if records}
    return Written(len(records), 100 * len(records), times_us=times)
