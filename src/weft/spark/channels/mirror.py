"""The channel of sites that share no folder: each keeps a log of its own; where it does not write, that is a copy.

Who reads at a site reads the copy there, with the reader of the log in folders; who writes writes the log that lies at
its own site, the stream's home. Between them goes whatever carries the bytes (`bodies/live/mirrors`): it follows the
home from a number on, and hands segment by segment to `take_in`, which keeps the counting rule.

    streams/NAME/begins    the first segment of a copy; absent: 0
    streams/NAME/epoch     as in the home: the greatest epoch that this site was told of

A fence that was told to a copy keeps out what a writer still adds to a home that cannot be reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from weft.protocol.stream_rule import Counted, FenceEntry, SegmentEntry, count
from weft.spark.channels.log import Log
from weft.spark.channels.manifest import Manifest
from weft.spark.channels.partitions import Partitioning
from weft.spark.channels.segments import number_of
from weft.spark.storage.disk import Damaged, read_sealed, unseal

BEGINS = "begins"
RETAIN_EVERY = 8
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@~-]{0,250}\Z")


class Refused(ValueError):
    """Something that came from another site is not what a stream can take."""


class TakenIn(NamedTuple):
    """A segment whose files lie in their folder and are not counted yet."""

    manifest: Manifest
    sealed: bytes
    folder: Path
    bare: bool = False
    """Every reader has passed its records: only the manifest, which tells how far the stream has come, is kept."""

    @property
    def files(self) -> list[Path]:
        """Where its records lie."""
        return [] if self.bare else [self.folder / name for name in self.manifest.files]


def is_stream_name(name: str) -> bool:
    """Whether a name that came from outside can be that of a stream, and of its folder."""
    return bool(_NAME.match(name)) and ".." not in name


class Mirror(Log):
    """A stream's log at one site: its home, where its writer is, or a copy."""

    # ---- as it is read

    def begins(self) -> int:
        """The first segment that a copy has, or will have."""
        try:
            return int(read_sealed(self.folder / BEGINS))
        except FileNotFoundError:
            return 0

    def next_segment(self) -> int:
        """The number that the next segment will get: one past the last, or where an empty copy begins."""
        return max(self.numbers(), default=-1) + 1 or self.begins()

    def first_segment(self) -> int:
        """The oldest segment whose manifest is still here, or where an empty copy begins."""
        numbers = self.numbers()
        return min(numbers) if numbers else self.begins()

    # ---- as it is filled from its home

    def counted(self) -> Counted:
        """How far this log was counted."""
        return Counted(self.epoch(), self.next_segment())

    def wanted(self) -> int:
        """The first segment that a copy lacks: after the last it has, else just before the first its readers need."""
        if self.numbers():
            return self.next_segment()
        # The manifest before the first needed segment carries the times.
        return max(self.begins(), self.needed() - 1)

    def begin_at(self, number: int, partitioning: Partitioning) -> None:
        """Let an empty copy begin with a segment; what a former copy held that nobody needs any more goes."""
        self.create(partitioning)
        if self.numbers() and self.next_segment() == number:
            return
        if any(segment >= self.needed() for segment in self.numbers()) and self.known():
            raise Refused(f"stream {self.name}: segments before {number} are gone at its home, and still needed here")
        for segment in self.numbers():
            self.disk.remove(self.manifests / number_of(segment))
        for folder in self.data.iterdir():
            self.disk.remove_tree(folder)
        self.disk.seal(self.folder / BEGINS, number)
        self.note_head(number - 1)

    def room_for(self, sealed: bytes) -> TakenIn:
        """Where the files of a segment from the home go; Refused where its manifest is none of this stream."""
        try:
            manifest = msgspec.json.decode(unseal(sealed, self.folder), type=Manifest)
        except (Damaged, msgspec.MsgspecError) as error:
            raise Refused(f"stream {self.name}: a manifest that is none: {error}") from error
        if self.run and manifest.run != self.run:
            raise Refused(f"stream {self.name}: segment {manifest.segment} belongs to run {manifest.run or 'unknown'}")
        if len(manifest.files) != len(manifest.sizes) or any(not _inside(name) for name in manifest.files):
            raise Refused(f"stream {self.name}: segment {manifest.segment} names files that cannot be")
        return TakenIn(manifest, sealed, self.data / f"{number_of(manifest.segment)}-{manifest.epoch}")

    def take_in(self, segments: Iterable[TakenIn]) -> int:
        """Count segments whose files lie there: bytes first, then manifests, each on disk before the next; how many."""
        held, counting = self.counted(), []
        for one in segments:
            held, counts = count(held, SegmentEntry(one.manifest.epoch, one.manifest.segment))
            if counts:
                counting.append(one)
            elif not (self.manifests / number_of(one.manifest.segment)).exists():
                self.disk.remove_tree(one.folder)
        if not counting:
            return 0
        files = [file for one in counting for file in one.files]
        temporaries = []
        for one in counting:
            temporaries.append(self.manifests / f".{number_of(one.manifest.segment)}-{one.manifest.epoch}")
            self.disk.write(temporaries[-1], one.sealed)
        folders = [one.folder for one in counting if one.files]
        self.disk.sync([*files, *temporaries], [*folders, *{file.parent for file in files}, self.data] if files else ())
        for temporary, one in zip(temporaries, counting, strict=True):
            self.disk.link(temporary, self.manifests / number_of(one.manifest.segment))
            self.disk.remove(temporary)
        self.disk.sync((), [self.manifests])
        last = counting[-1].manifest.segment
        self.note_head(last)
        if any(one.manifest.segment % RETAIN_EVERY == 0 for one in counting):
            self.retain()
        return len(counting)

    def hear_fence(self, epoch: int) -> Counted:
        """Take a fence that another site tells of; how far this log is counted now, on disk before it is said."""
        self.create()
        held, rises = count(self.counted(), FenceEntry(epoch))
        if rises:
            self.disk.seal(self.folder / "epoch", epoch)
        return held

    def cut_back(self, number: int) -> None:
        """Forget the segments from a number on: whoever takes the stream over writes them again under its own epoch."""
        for segment in sorted(self.numbers(), reverse=True):
            if segment >= number:
                self.disk.remove(self.manifests / number_of(segment))
        self.disk.sync((), [self.manifests])
        self.note_head(number - 1)

    def places(self) -> dict[str, tuple[int, bool]]:
        """Every reader registered here: the first segment it needs, and whether it has read any."""
        return {reader: (self._place(reader), self.has_read(reader)) for reader in self.known()}


def _inside(name: str) -> bool:
    """Whether a file's name stays within the folder of its segment."""
    parts = Path(name).parts
    return bool(parts) and len(parts) <= 2 and not name.startswith("/") and all(p not in ("..", ".", "") for p in parts)
