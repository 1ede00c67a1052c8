"""How does a batch get to a sink? It is committed in a log like that of any stream, and only then delivered."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from weft.model import Sink
from weft.spark.channels.channel import Writer
from weft.spark.channels.log import Log
from weft.spark.channels.log_writer import LogWriter
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.position import Position
from weft.spark.channels.segments import number_of
from weft.spark.sinks.changed_rows import changes_of, kept_aside, write_changes
from weft.spark.sinks.kind import Delivery, SinkKind
from weft.spark.sinks.kinds import SINKS
from weft.spark.storage.disk import Damaged, read_note, verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DONE = ".done-"
DELIVERED = "delivered"


class SinkLog(Log):
    """The log of what a sink was given."""

    def __init__(self, log: Log, sink: Sink, path: Path) -> None:
        super().__init__(log.folder, log.run, log.disk, log.head)
        self.sink = sink
        self.path = path

    @property
    def kind(self) -> SinkKind:
        """What sinks of its format do."""
        return SINKS[self.sink.format]

    @property
    def can_write_aside(self) -> bool:
        """True if a batch can be written before it is known whether it will ever be committed."""
        return self.kind.can_write_aside

    @property
    def keeps_changes(self) -> bool:
        """True if the end will want what changed in each batch."""
        return self.sink.mode == "update" and self.sink.path is not None

    def open_writer(self, epoch: int, writer: str) -> Writer:
        """Claim the sink for an epoch, and deliver what is still on its way; Fenced where a later one has it."""
        return SinkWriter(self, epoch, writer)

    def write_to(self, records: DataFrame, folder: Path, measured: list[str], few: bool = False) -> Written:
        """Write a batch to a new folder, as the sink's format has it."""
        self.disk.remove_tree(folder)
        return self.kind.write(records, folder, self.sink, measured, few)

    def inspect(self, needed: Position | None) -> None:
        """Damaged where a manifest is gone, for together they list what was written, or what is still to be given."""
        if not self.is_there():
            return
        last = self.last()
        self.contiguous(0)
        for folder in sorted(self.data.iterdir()) if self.data.is_dir() else ():
            number, _, epoch = folder.name.partition("-")
            manifest = self._committed(number)
            if manifest is not None and epoch == str(manifest.epoch):
                self.check_waiting(manifest)
        self.check_delivered()
        if self.keeps_changes and last is not None:
            self._inspect_changes(last.segment)

    def check_waiting(self, manifest: Manifest) -> None:
        """Damaged where a committed batch that is still on its way is not what was written."""
        for file, size, crc in self.files(manifest):
            verify(file, size, crc, "it was committed and not delivered yet")

    def check_delivered(self) -> None:
        """Damaged where the last batch was not delivered, by the note of the last that was, and is gone."""
        last, noted = self.last(), read_note(self.folder / DELIVERED)
        if last is None or not last.files or noted is None or noted >= last.segment:
            return
        folder = self.data / f"{number_of(last.segment)}-{last.epoch}"
        if folder.is_dir() or self.kind.has_delivered(last, self.path):
            return  # on its way, or the note was lost in a power cut
        raise Damaged(folder, "is gone, though what it held was committed and not delivered yet")

    def _committed(self, number: str) -> Manifest | None:
        try:
            return self.manifest(int(number)) if number.isdigit() else None
        except FileNotFoundError:
            return None  # it never was committed, and is written again

    def _inspect_changes(self, last: int) -> None:
        manifests = {segment: self.manifest(segment) for segment in range(last + 1)}
        first = max((segment for segment, one in manifests.items() if one.replaces), default=0)
        for segment in range(first, last + 1):
            for name, (size, crc) in manifests[segment].aside.items():
                verify(changes_of(self, segment) / name, size, crc, "the last values are still to be taken from it")


class SinkWriter(LogWriter):
    """Commits batches to a sink's log under an epoch, and delivers them."""

    def __init__(self, log: SinkLog, epoch: int, writer: str) -> None:
        self.target = log
        self._kept: dict[str, Any] = {}
        if log.sink.path is not None:
            log.disk.make(log.path)
        for left in log.data.glob(f"{DONE}*"):
            log.disk.remove_tree(left)
        super().__init__(log, epoch, writer)
        log.check_delivered()

    def found(self, folder: Path, segment: int) -> None:
        """A batch that was committed is still on its way."""
        manifest = self.log.manifest(segment)
        try:
            self.target.check_waiting(manifest)
        except Damaged:
            if folder.is_dir():
                raise
            return  # who was overtaken has delivered it meanwhile
        self._deliver(manifest, folder)

    def write(self, records: DataFrame, measured: list[str], few: bool = False) -> Written:
        """Write a batch to where the next segment lies; of a sink in update mode, what changed is kept, too."""
        if self.target.keeps_changes:
            records = write_changes(records, self.target, self.segment)
        return super().write(records, measured, few)

    def commit(self, manifest: Manifest) -> Manifest:
        """Commit the batch, then deliver it."""
        folder = self.folder()
        if self.target.keeps_changes and manifest.rows:
            manifest = msgspec.structs.replace(manifest, aside=kept_aside(self.target, self.segment))
        manifest = super().commit(manifest)
        self._deliver(manifest, folder)
        if self.target.sink.facts.has_topic:
            # Its readers have it when the broker has: that is where latency ends.
            return msgspec.structs.replace(manifest, committed_ms=time.time() * 1000)
        return manifest

    def _deliver(self, manifest: Manifest, folder: Path) -> None:
        target, disk = self.target, self.log.disk
        target.kind.deliver(Delivery(target.sink, manifest, folder, target, target.path, self._kept))
        disk.seal(target.folder / DELIVERED, manifest.segment, sync=False)
        if folder.is_dir():
            # Under another name first: what lies under its own is still to be delivered, all of it.
            done = folder.with_name(f"{DONE}{folder.name}")
            disk.rename(folder, done)
            disk.remove_tree(done)

    def retain(self) -> None:
        """A sink keeps everything: its manifests are the list of what was written."""
