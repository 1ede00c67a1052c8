"""Where does a fragment write to? Channels and sinks alike: a writer each, and the manifest of what was written."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame

from weft.model import Sink
from weft.plan.fragments import Fragment
from weft.plan.graph import sink_name
from weft.spark import sources
from weft.spark.footers import Written, look_at
from weft.spark.log import LogWriter, Manifest
from weft.spark.sinks import SinkWriter, aside_of
from weft.spark.updates import write_changes
from weft.spark.wiring import Plans

AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Commit:
    """A segment or sink batch that a fragment has committed, for whoever measures."""

    fragment: str
    stream: str
    is_sink: bool
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Told:
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
    folder: Path
    sink: Sink | None = None

    def ahead(self, run: int) -> Path:
        """Where the first batch of a run lies until its turn comes, on the same disk."""
        return self.folder / AHEAD / str(run)

    def write(self, records: DataFrame, folder: Path, measured: list[str]) -> Written:
        """Write a batch aside and see what is in it."""
        if folder.exists():
            shutil.rmtree(folder)
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
        if self.sink is not None and self.sink.mode == "update" and isinstance(self.writer, SinkWriter):
            records = write_changes(records, self.writer.path, self.writer.segment)
        return self.place.write(records, self.writer.folder(), measured)

    def take(self, written: Written) -> Written:
        """Let a batch that was written ahead lie where the next segment lies."""
        assert written.folder is not None
        folder = self.writer.folder()
        if folder.exists():
            shutil.rmtree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        os.rename(written.folder, folder)
        return replace(written, folder=folder)

    def commit(self, batch: int, written: Written, told: Told) -> Manifest:
        """Commit what was written as the next segment."""
        last = self.writer.last
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
                committed_ms=time.time() * 1000,
            )
        )


def places(plans: Plans, fragment: Fragment) -> list[Place]:
    """Everything a fragment writes to."""
    found = []
    for stream in fragment.outputs:
        operator = stream.rpartition(".")[2] if fragment.trunk else None
        found.append(Place(operator, stream, plans.folders.stream(stream).folder))
    if fragment.query is not None:
        query = plans.deployment.query(fragment.query)
        for sink in query.sinks:
            name = sink_name(query, sink)
            if name in fragment.sinks:
                operator = sink.from_ if fragment.trunk else None
                found.append(Place(operator, name, aside_of(_path(plans, sink, name)), sink))
    return found


def sweep_ahead(plans: Plans) -> None:
    """What a process that is gone had written ahead is nobody's any more."""
    folders = [log.folder for log in plans.folders.streams()]
    for query in plans.deployment.queries:
        folders += [aside_of(_path(plans, sink, sink_name(query, sink))) for sink in query.sinks]
    for folder in folders:
        shutil.rmtree(folder / AHEAD, ignore_errors=True)


def open_outputs(plans: Plans, fragment: Fragment, epoch: int, writer: str) -> list[Output]:
    """All places of a fragment, claimed for an epoch; Fenced where a later one has taken over."""
    outputs = []
    for place in places(plans, fragment):
        if place.sink is None:
            outputs.append(Output(place, LogWriter(plans.folders.stream(place.stream), epoch, writer)))
        else:
            path = _path(plans, place.sink, place.stream)
            outputs.append(Output(place, SinkWriter(path, place.sink, epoch, writer)))
    return outputs


def _path(plans: Plans, sink: Sink, name: str) -> Path:
    if sink.path is None:
        return plans.folders.state / "console" / name
    return Path(sources.path_of(plans.deployment, sink.path))
