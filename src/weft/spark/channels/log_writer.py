"""How is a segment committed? Its files are synced, its manifest is linked under its number, and that is synced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weft.protocol.stream_rule import Counted, FenceEntry, SegmentEntry, count
from weft.spark.channels.channel import Fenced, Writer
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.segments import Segments, number_of
from weft.spark.storage.disk import Damaged, seal, size_and_sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RETAIN_EVERY = 8


class LogWriter(Writer):
    """The one that may commit segments to a stream under its epoch."""

    def __init__(self, log: Segments, epoch: int, writer: str) -> None:
        self.log = log.create()
        self.epoch = epoch
        self.writer = writer
        self._left: list[Path] = []
        self._claim()
        self.last = log.last()
        self._sweep()

    def _claim(self) -> None:
        current, _ = count(Counted(self.log.epoch()), FenceEntry(self.epoch))
        if current.epoch != self.epoch:
            raise Fenced(self.log.name, self.epoch, current.epoch)
        self.log.disk.seal(self.log.folder / "epoch", self.epoch)

    def _sweep(self) -> None:
        """Records of segments that were never committed go, as soon as nobody can commit them; they are written again.

        Who was fenced off between its look at the fence and its commit still commits: only a number that is taken
        keeps it out.
        """
        kept = set(self.log.numbers())
        for folder in self.log.data.iterdir():
            number, _, epoch = folder.name.partition("-")
            if not number.isdigit() or not epoch.isdigit():
                continue
            if int(number) not in kept:
                self._left.append(folder)
            elif int(epoch) != self.log.manifest(int(number)).epoch:
                self.log.disk.remove_tree(folder)
            else:
                self.found(folder, int(number))

    def found(self, folder: Path, segment: int) -> None:
        """A committed segment's folder was there at the start."""

    def folder(self) -> Path:
        """Where the records of the segment to come are written."""
        return self.log.data / f"{number_of(self.segment)}-{self.epoch}"

    def _free_folder(self) -> Path:
        """The same; Fenced where another of this epoch has committed the segment: its records lie there."""
        if (self.log.manifests / number_of(self.segment)).exists():
            raise Fenced(f"{self.log.name}, segment {self.segment}", self.epoch, self.log.epoch())
        return self.folder()

    def write(self, records: DataFrame, measured: list[str], few: bool = False) -> Written:
        """Write a batch to where the next segment lies."""
        return self.log.write_to(records, self._free_folder(), measured, few)

    def take(self, written: Written) -> Written:
        """Let a batch that was written aside lie where the next segment lies."""
        assert written.folder is not None
        folder, disk = self._free_folder(), self.log.disk
        disk.remove_tree(folder)
        if written.files:
            disk.rename(written.folder, folder)
        else:  # a batch without records may never have had a folder
            disk.remove_tree(written.folder)
        return replace(written, folder=folder)

    def discard(self, written: Written) -> None:
        """Remove what was written and is not to be committed."""
        if written.folder is not None:
            self.log.disk.remove_tree(written.folder)

    def commit(self, manifest: Manifest) -> Manifest:
        """Link the manifest under its number: from here on the segment is there, once and for all."""
        try:
            manifest = self._commit(manifest)
        except FileNotFoundError as error:
            gone = self.log.folder if not self.log.manifests.is_dir() else (error.filename or self.log.folder)
            raise Damaged(gone, "is gone in the middle of the run") from error
        own = self.folder()
        self.last = manifest
        self.log.note_head(manifest.segment)
        while self._left:
            if (left := self._left.pop()) != own:
                self.log.disk.remove_tree(left)
        if manifest.segment % RETAIN_EVERY == 0:
            self.retain()
        return manifest

    def _commit(self, manifest: Manifest) -> Manifest:
        log, disk, folder = self.log, self.log.disk, self.folder()
        if not log.manifests.is_dir():
            raise FileNotFoundError(2, "no such folder", str(log.manifests))
        current = log.epoch()
        if not count(Counted(current, self.segment), SegmentEntry(self.epoch, manifest.segment))[1]:
            raise Fenced(log.name, self.epoch, current)
        files = [folder / name for name in manifest.files]
        told = [size_and_sum(file) for file in files]
        manifest = msgspec.structs.replace(
            manifest, run=log.run, sizes=tuple(size for size, _ in told), sums=tuple(crc for _, crc in told)
        )
        temporary = log.manifests / f".{number_of(manifest.segment)}-{self.epoch}"
        holding = [*dict.fromkeys(file.parent for file in files if file.parent != folder), folder, log.data]
        try:
            disk.write(temporary, seal(msgspec.json.encode(manifest)))
            disk.sync([*files, temporary], holding if files else ())
            disk.link(temporary, log.manifests / number_of(manifest.segment))
            disk.sync((), [log.manifests])
        except FileExistsError as error:
            raise Fenced(f"{log.name}, segment {manifest.segment}", self.epoch, current) from error
        finally:
            disk.remove(temporary)
        return manifest

    def retain(self) -> None:
        """Delete what every reader has passed."""
        self.log.retain()
