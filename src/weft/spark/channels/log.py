"""The channel in folders: a position is a segment's number, a reader's place a small file (see `segments.py`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weft.spark.channels import rooms
from weft.spark.channels.channel import Writer
from weft.spark.channels.log_writer import LogWriter
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.position import Position
from weft.spark.channels.segments import Piece, Segments, number_of
from weft.spark.storage.disk import FRESH, Damaged, Disk, checked, read_note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AHEAD = "ahead"


def segment_at(position: Position) -> int:
    """The number of the segment that lies at a position."""
    assert isinstance(position, int), f"{position} is no position of a channel in folders"
    return position


class Log(Segments):
    """A stream's folder, seen by those who write, read and retain it."""

    @classmethod
    def of_stream(cls, state: Path, name: str, run: str, disk: Disk) -> Self:
        """The log of a stream of a run."""
        return cls(state / rooms.STREAMS / name, run, disk, state / rooms.HEADS / name)

    @classmethod
    def of_options(cls, options: dict[str, str]) -> Self:
        """The log that a reader in another process was told of."""
        # Who is told of a place that was lost only keeps more than it needs to.
        return cls(options["path"], options.get("run", ""), Disk(fsync=False))

    @classmethod
    def names(cls, state: Path) -> list[str]:
        """The streams that have a folder."""
        folder = state / rooms.STREAMS
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def options(self) -> dict[str, str]:
        """Where a reader in another process finds it."""
        return {"path": str(self.folder), "run": self.run}

    def end(self) -> Position:
        """The number of the segment to come."""
        return self.next_segment()

    def reach(self, start: Position, commits_max: int) -> Position:
        """The segment to come, or so many after a position, whichever is nearer; never before the position."""
        first = segment_at(start)
        return max(first, min(self.next_segment(), first + commits_max))

    def upto(self, position: Position) -> Manifest | None:
        """What the segment before a position holds; None at the beginning, Removed where it is gone."""
        segment = segment_at(position)
        return self.needed_manifest(segment - 1) if segment else None

    def commits(self, start: Position, end: Position) -> Iterator[tuple[Position, Manifest]]:
        """The segments between two positions, each with the position after it; Removed where one is gone."""
        for segment in range(segment_at(start), segment_at(end)):
            yield segment + 1, self.needed_manifest(segment)

    def pieces(self, manifests: Iterable[Manifest], partitions: Collection[int] | None = None) -> list[Piece]:
        """The files of some segments, of some partitions or of all."""
        found = []
        for manifest in manifests:
            parts = manifest.parts or (0,) * len(manifest.files)
            files = zip(self.files(manifest), parts, strict=True)
            found += [file for file, part in files if partitions is None or part in partitions]
        return found

    def read(self, piece: Any, columns: list[str]) -> Any:
        """The records of a file as an Arrow table; Damaged where it is not what was written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        return pq.ParquetFile(pa.BufferReader(checked(*piece))).read(columns=columns)

    def known(self) -> list[str]:
        """The readers that hold something."""
        found = os.listdir(self.readers) if self.readers.is_dir() else []
        return [name for name in found if not name.startswith(".")]

    def register(self, reader: str) -> None:
        """Let a reader be known before anything may be deleted; one already known keeps its place."""
        if read_note(self.readers / reader) is None:
            self.passed(reader, self.first_segment(), has_read=False)

    def forget(self, reader: str) -> None:
        """A reader that will not come back holds nothing any longer."""
        (self.readers / reader).unlink(missing_ok=True)

    def passed(self, reader: str, position: Position, has_read: bool = True) -> None:
        """A reader needs nothing before a segment any more: it has read it or, where it has not, never will."""
        self.disk.seal(self.readers / reader, (segment_at(position), has_read), sync=False)

    def place(self, reader: str) -> Position:
        """The first segment that a reader still needs; 0 where that cannot be told."""
        return self._place(reader)

    def _place(self, reader: str) -> int:
        return int((read_note(self.readers / reader) or (0, False))[0])

    def has_read(self, reader: str) -> bool:
        """True if a reader has committed a batch with records of the stream."""
        return bool((read_note(self.readers / reader) or (0, False))[1])

    def needed(self) -> int:
        """The first segment that some reader still needs; 0 while nobody reads."""
        return min((self._place(reader) for reader in self.known()), default=0)

    def retain(self) -> None:
        """Delete what every reader has passed, but for the last manifest before it, which carries the times."""
        needed = self.needed()
        for segment in self.numbers():
            if segment < needed - 1:
                self.disk.remove(self.manifests / number_of(segment))
        for name in os.listdir(self.data):
            number = name.partition("-")[0]
            if number.isdigit() and int(number) < needed:
                self.disk.remove_tree(self.data / name)

    def open_writer(self, epoch: int, writer: str) -> Writer:
        """Claim the stream for an epoch; Fenced where a later one has it."""
        return LogWriter(self, epoch, writer)

    def write_aside(self, records: DataFrame, run: int, measured: list[str], few: bool = False) -> Written:
        """Write the first batch of a run whose turn has not come, on the same disk."""
        return self.write_to(records, self.folder / AHEAD / str(run), measured, few)

    def forget_aside(self, run: int | None = None) -> None:
        """Throw away what a run, or any, has written aside."""
        self.disk.remove_tree(self.folder / AHEAD if run is None else self.folder / AHEAD / str(run))

    def lacks(self, position: Position) -> Path | None:
        """The manifest that is missing of a stream that was read up to a segment; None where none is."""
        following = self.next_segment() if self.is_there() else 0
        return self.manifests / number_of(following) if following < segment_at(position) else None

    def inspect(self, needed: Position | None) -> None:
        """Damaged where a manifest, or a file that somebody needs from a segment on, is gone or was cut."""
        last = self.last() if self.is_there() else None
        if last is None:
            return
        wanted = None if needed is None else segment_at(needed)
        # The manifest before the first needed one carries the times.
        first = self.first_segment() if wanted is None else max(0, min(wanted, last.segment) - 1)
        self.contiguous(first)
        for segment in range(first, last.segment + 1):
            manifest = self.needed_manifest(segment)
            for file, size, _ in self.files(manifest) if wanted is not None and segment >= wanted else ():
                path = Path(file)
                if not path.is_file():
                    raise Damaged(path, f"is gone, though its records were not read yet; {FRESH}", "bring it back")
                if path.stat().st_size != size:
                    raise Damaged(path, f"was cut off or changed: it has {path.stat().st_size} bytes, not {size}")

    def contiguous(self, first: int) -> None:
        """Damaged where a manifest between a segment and the last is gone."""
        numbers = set(self.numbers())
        for segment in range(first, max(numbers, default=-1) + 1):
            if segment not in numbers:
                raise Damaged(self.manifests / number_of(segment), "is gone")
