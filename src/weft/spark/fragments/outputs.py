"""Where does a fragment write to? Channels and sinks alike: a writer each, and the manifest of what was written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.model import Deployment, Part, Query, Sink, late_outlets, sink_name
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.ordering import is_ordering
from weft.spark.channels.channel import Destination, Writer
from weft.spark.channels.folders import Folders
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.channels.position import Position
from weft.spark.fragments.wiring import RunContext
from weft.spark.sinks.delivery import SinkLog
from weft.spark.sinks.left_out import LeftOut
from weft.spark.sinks.ownership import Claim
from weft.spark.sources import streams as sources


@dataclass(frozen=True, slots=True)
class Commit:
    """A segment or sink batch that a fragment has committed, for whoever measures."""

    fragment: str
    stream: str
    is_sink: bool
    manifest: Manifest
    late: bool = False  # what a watermark left out: no result


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """What a manifest says besides its records: births, event times, whether the stream ends, where inputs stand."""

    birth_ms: tuple[float, float] | None
    times_us: dict[str, int]
    end: bool
    inputs: dict[str, Position]
    watermark_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fragment writes to: the operator whose records it takes, and the stream or sink they go to."""

    operator: str | None
    stream: str
    destination: Destination
    sink: Sink | None = None
    late: int | None = None  # the number of the operator's input whose late records it takes
    part: Part | None = None  # of an operator made of several: whose late records it counts


@dataclass(slots=True)
class Output:
    """A place that was claimed for an epoch, with its writer."""

    place: Place
    writer: Writer

    @property
    def operator(self) -> str | None:
        """Whose records it takes."""
        return self.place.operator

    @property
    def stream(self) -> str:
        """What its records are called."""
        return self.place.stream

    @property
    def late(self) -> int | None:
        """The number of the input whose late records it takes; None for results."""
        return self.place.late

    @property
    def part(self) -> Part | None:
        """The part whose late records it counts, of an operator that was made of several."""
        return self.place.part

    @property
    def sink(self) -> Sink | None:
        """The sink that it is; None for a channel."""
        return self.place.sink

    def commit(self, batch: int, written: Written, told: ManifestFacts) -> Manifest:
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
                parts=written.parts,
                part_rows=written.part_rows,
            )
        )


def places(context: RunContext, fragment: Fragment) -> list[Place]:
    """Everything a fragment writes to."""
    found = []
    for stream in fragment.outputs:
        operator = fragment.name(stream) if fragment.trunk else None
        found.append(Place(operator, stream, context.folders.stream(stream)))
    for query in map(context.deployment.query, fragment.queries):
        for sink in query.sinks:
            name = sink_name(query, sink)
            if name in fragment.sinks:
                operator = fragment.name(f"{query.name}.{sink.from_}") if fragment.trunk else None
                found.append(Place(operator, name, sink_log(context.deployment, context.folders, sink, name), sink))
    if fragment.query is not None:
        found += _late_places(context, context.deployment.query(fragment.query), fragment)
    return found


def _late_places(context: RunContext, query: Query, fragment: Fragment) -> Iterator[Place]:
    """Where a fragment writes what the watermark of its stateful operator leaves out: a sink, or a mere count."""
    operator = None if fragment.stateful is None else query.operator(fragment.stateful)
    if operator is None or is_ordering(operator):
        return
    for outlet in late_outlets(query, operator):
        destination: Destination
        if outlet.sink is not None:
            destination = sink_log(context.deployment, context.folders, outlet.sink, outlet.name)
        else:
            folders = context.folders
            head = folders.head(f"left out {outlet.name}")
            destination = LeftOut(folders.left_out(outlet.name), folders.run, folders.disk, head)
        number = operator.from_.index(outlet.input)
        yield Place(operator.name, outlet.name, destination, outlet.sink, number, outlet.part)


def sweep_aside(deployment: Deployment, folders: Folders) -> None:
    """What a process that is gone had written aside is nobody's any more; nothing may run."""
    destinations: list[Destination] = [*folders.streams()]
    destinations += [claim.log for claim in claims_of(deployment, folders)]
    for destination in destinations:
        destination.forget_aside()


def open_outputs(context: RunContext, fragment: Fragment, epoch: int, writer: str) -> list[Output]:
    """All places of a fragment, claimed for an epoch; Fenced where a later one has taken over."""
    return [Output(place, place.destination.open_writer(epoch, writer)) for place in places(context, fragment)]


def claims_of(deployment: Deployment, folders: Folders) -> list[Claim]:
    """Every sink of a deployment, those of late records included, with its folder and its log."""
    found = []
    for query in deployment.queries:
        for sink in query.sinks:
            name = sink_name(query, sink)
            log = sink_log(deployment, folders, sink, name)
            found.append(Claim(name, sink.format, log.path, log))
        for outlet in (one for operator in query.operators for one in late_outlets(query, operator)):
            if outlet.sink is not None:
                log = sink_log(deployment, folders, outlet.sink, outlet.name)
                found.append(Claim(outlet.name, outlet.sink.format, log.path, log))
    return found


def sink_log(deployment: Deployment, folders: Folders, sink: Sink, name: str) -> SinkLog:
    """The log of what a sink was given."""
    path = sink_path(deployment, folders, sink, name)
    return SinkLog(folders.sink(name, path), sink, path)


def sink_path(deployment: Deployment, folders: Folders, sink: Sink, name: str) -> Path:
    """The folder of a sink's results; of one on the console or of a topic, where it would be."""
    if sink.facts.has_topic:
        return folders.topic(name)
    if sink.path is None:
        return folders.console(name)
    spelled = Path(os.path.normpath(sources.path_of(deployment, sink.path)))
    if spelled.is_symlink() and spelled.with_name(f".{spelled.name}.weft").is_dir():
        return spelled  # where a run of an earlier version keeps its record
    # By whatever name a folder is reached, its record lies in one place.
    return Path(os.path.realpath(spelled))
