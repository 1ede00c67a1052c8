"""Where does a fragment write to? Channels and sinks alike: a writer each, and the manifest of what was written."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame

from weft.model import Deployment, Sink, sink_name
from weft.plan.changing.fragments import Fragment
from weft.spark.channels.folders import Folders
from weft.spark.channels.footers import Written, look_at
from weft.spark.channels.log import Log, LogWriter, Manifest
from weft.spark.fragments.wiring import RunContext
from weft.spark.sinks.delivery import SinkWriter
from weft.spark.sinks.ownership import Claim
from weft.spark.sinks.updates import kept_aside, write_changes
from weft.spark.sources import streams as sources

AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Commit:
    """A segment or sink batch that a fragment has committed, for whoever measures."""

    fragment: str
    stream: str
    is_sink: bool
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """What a manifest says besides its records: births, event times, whether the stream ends, where inputs stand."""

    birth_ms: tuple[float, float] | None
    times_us: dict[str, int]
    end: bool
    inputs: dict[str, int]
    watermark_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fragment writes to: the operator whose records it takes, and the stream or sink they go to."""

    operator: str | None
    stream: str
    log: Log
    sink: Sink | None = None
    path: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of its log."""
        return self.log.folder

    def ahead(self, run: int) -> Path:
        """Where the first batch of a run lies until its turn comes, on the same disk."""
        return self.folder / AHEAD / str(run)

    def write(self, records: DataFrame, folder: Path, measured: list[str]) -> Written:
        """Write a batch aside and see what is in it."""
        self.log.disk.remove_tree(folder)
        if self.sink is None:
            return look_at(records, folder, "parquet", {}, measured)
        return look_at(records, folder, self.sink.format, self.sink.options, measured)


@dataclass(slots=True)
class Output:
    """A place that was claimed for an epoch, with its writer."""

    place: Place
    writer: LogWriter

    @property
    def operator(self) -> str | None:
        """Whose records it takes."""
        return self.place.operator

    @property
    def stream(self) -> str:
        """What its records are called."""
        return self.place.stream

    @property
    def sink(self) -> Sink | None:
        """The sink that it is; None for a channel."""
        return self.place.sink

    def write(self, records: DataFrame, measured: list[str]) -> Written:
        """Write a batch to where the next segment lies."""
        if self._keeps_changes():
            records = write_changes(records, self.writer.log, self.writer.segment)
        return self.place.write(records, self.writer.folder(), measured)

    def take(self, written: Written) -> Written:
        """Let a batch that was written ahead lie where the next segment lies."""
        assert written.folder is not None
        folder, disk = self.writer.folder(), self.writer.log.disk
        disk.remove_tree(folder)
        disk.rename(written.folder, folder)
        return replace(written, folder=folder)

    def commit(self, batch: int, written: Written, told: ManifestFacts) -> Manifest:
        """Commit what was written as the next segment."""
        last = self.writer.last
        changes = {}
        if self._keeps_changes() and written.rows:
            changes = kept_aside(self.writer.log, self.writer.segment)
        return self.writer.commit(
            Manifest(
                segment=self.writer.segment,
                epoch=self.writer.epoch,
                writer=self.writer.writer,
                batch=batch,
                rows=written.rows,
                bytes=written.bytes,
                rows_total=(last.rows_total if last else 0) + written.rows,
                files=written.files,
                birth_ms=told.birth_ms if written.rows else None,
                times_us=told.times_us,
                watermark_ms=told.watermark_ms,
                inputs=told.inputs,
                end=told.end,
                aside=changes,
                committed_ms=time.time() * 1000,
            )
        )

    def _keeps_changes(self) -> bool:
        """True if the end will want what changed in each batch."""
        return self.sink is not None and self.sink.mode == "update" and self.sink.path is not None


def places(context: RunContext, fragment: Fragment) -> list[Place]:
    """Everything a fragment writes to."""
    found = []
    for stream in fragment.outputs:
        operator = stream.rpartition(".")[2] if fragment.trunk else None
        found.append(Place(operator, stream, context.folders.stream(stream)))
    if fragment.query is not None:
        query = context.deployment.query(fragment.query)
        for sink in query.sinks:
            name = sink_name(query, sink)
            if name in fragment.sinks:
                operator = sink.from_ if fragment.trunk else None
                path = sink_path(context.deployment, context.folders, sink, name)
                found.append(Place(operator, name, context.folders.sink(name, path), sink, path))
    return found


def sweep_ahead(context: RunContext) -> None:
    """What a process that is gone had written ahead is nobody's any more."""
    logs = context.folders.streams()
    logs += [claim.log for claim in claims_of(context.deployment, context.folders)]
    for log in logs:
        log.disk.remove_tree(log.folder / AHEAD)


def open_outputs(context: RunContext, fragment: Fragment, epoch: int, writer: str) -> list[Output]:
    """All places of a fragment, claimed for an epoch; Fenced where a later one has taken over."""
    outputs = []
    for place in places(context, fragment):
        if place.sink is None or place.path is None:
            outputs.append(Output(place, LogWriter(place.log, epoch, writer)))
        else:
            outputs.append(Output(place, SinkWriter(place.path, place.sink, place.log, epoch, writer)))
    return outputs


def claims_of(deployment: Deployment, folders: Folders) -> list[Claim]:
    """Every sink of a deployment, with its folder and its log."""
    found = []
    for query in deployment.queries:
        for sink in query.sinks:
            name = sink_name(query, sink)
            path = sink_path(deployment, folders, sink, name)
            found.append(Claim(name, sink.format, path, folders.sink(name, path)))
    return found


def sink_path(deployment: Deployment, folders: Folders, sink: Sink, name: str) -> Path:
    """The folder of a sink's results; of one on the console, where it would be."""
    if sink.path is None:
        return folders.console(name)
    return Path(os.path.normpath(sources.path_of(deployment, sink.path)))
