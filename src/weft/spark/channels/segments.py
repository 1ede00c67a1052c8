"""How does a stream lie on disk? As numbered segments, each with a manifest.

    streams/NAME/epoch                 the writer that may commit; a greater one fences a lower one
    streams/NAME/partitions            how many partitions, by which columns; only where there are several
    streams/NAME/manifests/0000000012  what segment 12 holds; its appearance is the commit
    streams/NAME/data/0000000012-3/    its records, written under epoch 3
    streams/NAME/readers/FRAGMENT      the first segment that this reader still needs
    streams/NAME/ahead/RUN/            the first batch of a run whose turn has not come
    heads/NAME                         the last segment that was committed, kept elsewhere

A segment is committed by linking its manifest under its number, which fails where one is there already, so that no
segment is ever written twice. A batch that Spark replays after a crash finds its number in the last manifest and is
not written again. Segments that every reader has passed are deleted; the last manifest stays.

A manifest names the run it belongs to, and the size and checksum of every file. The head tells a stream that never
was from one that is gone: a folder is made once, and never again where it was.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from weft.protocol.stream_rule import Counted, FenceEntry, count
from weft.spark.channels.channel import Channel, Removed
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.partitions import WHOLE, Partitioning
from weft.spark.storage.disk import Damaged, Disk, content_of, read_note, read_sealed, unseal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONS = "partitions"
Piece = tuple[str, int, int]
"""A file of records with its size and checksum."""


def number_of(segment: int) -> str:
    """A segment's number as files are called."""
    return f"{segment:010d}"


class Segments(Channel):
    """A stream's folder: its segments, its epoch, and how far it has come."""

    def __init__(self, folder: str | Path, run: str = "", disk: Disk | None = None, head: Path | None = None) -> None:
        self.folder = Path(folder)
        self.name = self.folder.name
        self.run = run
        self.disk = disk or Disk()
        self.head = head
        self.manifests = self.folder / "manifests"
        self.data = self.folder / "data"
        self.readers = self.folder / "readers"

    @property
    def place_of_records(self) -> str:
        """The stream's folder."""
        return str(self.folder)

    def is_there(self) -> bool:
        """True if the stream has a folder, False if it never had a segment; Damaged where it is gone."""
        there = self.manifests.is_dir()
        committed = self.committed()
        if not there and committed is not None and committed >= 0:
            raise Damaged(self.folder, f"is gone, though it held segments up to {committed}")
        return there

    def create(self, partitioning: Partitioning = WHOLE) -> Self:
        """Make the folders of a stream that never was; harmless where they exist, Damaged where they are gone."""
        self.is_there()
        for folder in (self.manifests, self.data, self.readers):
            self.disk.make(folder)
        if partitioning != WHOLE and partitioning != self.partitioning():
            if self.numbers():
                raise ValueError(f"stream {self.name} has {self.partitioning()}, and cannot have {partitioning}")
            self.disk.seal(self.folder / PARTITIONS, partitioning)
        if self.head is not None and not self.head.exists():
            self.note_head(self.next_segment() - 1)
        return self

    def partitioning(self) -> Partitioning:
        """How the stream is split by key."""
        try:
            return msgspec.convert(read_sealed(self.folder / PARTITIONS), Partitioning)
        except FileNotFoundError:
            return WHOLE

    def committed(self) -> int | None:
        """The last segment that its writer knows to be committed, -1 before the first; None where nothing is known."""
        return None if self.head is None else read_note(self.head)

    def note_head(self, segment: int) -> None:
        """Keep elsewhere how far the stream has come."""
        if self.head is not None:
            self.disk.make(self.head.parent)
            self.disk.seal(self.head, segment, sync=False)

    def numbers(self) -> list[int]:
        """The segments whose manifests are here, in no order."""
        try:
            return [int(name) for name in os.listdir(self.manifests) if name.isdigit()]
        except FileNotFoundError:
            raise Damaged(self.manifests, "is gone") from None

    def next_segment(self) -> int:
        """The number that the next segment will get: one past the last."""
        return max(self.numbers(), default=-1) + 1

    def first_segment(self) -> int:
        """The oldest segment whose manifest is still here; 0 where there is none."""
        return min(self.numbers(), default=0)

    def manifest(self, segment: int) -> Manifest:
        """What a segment holds; FileNotFoundError where its manifest is not here (any more)."""
        path = self.manifests / number_of(segment)
        try:
            found = msgspec.json.decode(unseal(content_of(path), path), type=Manifest)
        except msgspec.MsgspecError as error:
            raise Damaged(path, f"is no manifest of this version: {error}") from error
        if self.run and found.run != self.run:
            raise Damaged(path, f"belongs to another run ({found.run or 'unknown'}), not to {self.run}")
        if found.segment != segment:
            raise Damaged(path, f"is that of segment {found.segment}")
        return found

    def needed_manifest(self, segment: int) -> Manifest:
        """What a segment holds that somebody still needs; Removed where its manifest is gone."""
        try:
            return self.manifest(segment)
        except FileNotFoundError:
            raise Removed(self.manifests / number_of(segment), "is gone, though its records are still needed") from None

    def last(self) -> Manifest | None:
        """The newest manifest, None while the stream is empty; Damaged where later ones were committed."""
        committed = self.committed()  # first: what a writer commits meanwhile must not look as if it were gone
        following = self.next_segment()
        if committed is not None and committed >= following:
            raise Damaged(self.manifests / number_of(committed), "is gone, though it was committed")
        return self.manifest(following - 1) if following else None

    def files(self, manifest: Manifest) -> list[Piece]:
        """The paths of a segment's records, each with its size and checksum."""
        folder = self.data / f"{number_of(manifest.segment)}-{manifest.epoch}"
        paths = (str(folder / name) for name in manifest.files)
        return list(zip(paths, manifest.sizes, manifest.sums, strict=True))

    def epoch(self) -> int:
        """The epoch that may write to the stream; 0 before the first."""
        try:
            return int(read_sealed(self.folder / "epoch"))
        except FileNotFoundError:
            return 0

    def fence(self, epoch: int) -> None:
        """From now on no writer with a lower epoch commits to the stream; a fence only rises."""
        self.create()
        if count(Counted(self.epoch()), FenceEntry(epoch))[1]:
            self.disk.seal(self.folder / "epoch", epoch)

    def write_to(self, records: DataFrame, folder: Path, measured: list[str], few: bool = False) -> Written:
        """Write a batch to a new folder and see what is in it; of `few` records it takes less time."""
        from weft.spark.channels import footers

        self.disk.remove_tree(folder)
        return footers.write_parquet(records, folder, {}, measured, self.partitioning(), few)
