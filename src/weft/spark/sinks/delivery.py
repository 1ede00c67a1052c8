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
from weft.spark.sinks.changed_rows import kept_aside, write_changes
from weft.spark.sinks.kind import Delivery, SinkKind
from weft.spark.sinks.kinds import SINKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DONE = ".done-"


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
        """Damaged where a manifest is gone: together they are the list of what was written."""
        if self.is_there():
            self.last()
            self.contiguous(0)


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

    def found(self, folder: Path, segment: int) -> None:
        """A batch that was committed is still on its way."""
        self._deliver(self.log.manifest(segment), folder)

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
        if folder.is_dir():
            # Under another name first: what lies under its own is still to be delivered, all of it.
            done = folder.with_name(f"{DONE}{folder.name}")
            disk.rename(folder, done)
            disk.remove_tree(done)

    def retain(self) -> None:
        """A sink keeps everything: its manifests are the list of what was written."""
