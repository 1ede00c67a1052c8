"""Where does a fragment write to? Channels and sinks alike: a writer each, and the manifest of what was written."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from weft.model import Sink
from weft.plan.fragments import Fragment
from weft.plan.graph import sink_name
from weft.spark import sources
from weft.spark.footers import Written, look_at
from weft.spark.log import LogWriter, Manifest
from weft.spark.sinks import SinkWriter
from weft.spark.updates import write_changes
from weft.spark.wiring import Plans


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


@dataclass(slots=True)
class Output:
    """One place a fragment writes to: the operator whose records it takes, and the writer."""

    operator: str | None
    stream: str
    writer: LogWriter
    sink: Sink | None = None

    def write(self, records: DataFrame, measured: list[str]) -> Written:
        """Write a batch aside and see what is in it."""
        folder = self.writer.folder()
        if folder.exists():
            shutil.rmtree(folder)
        if self.sink is None:
            return look_at(records, folder, "parquet", {}, measured)
        if self.sink.mode == "update" and isinstance(self.writer, SinkWriter):
            records = write_changes(records, self.writer.path, self.writer.segment)
        return look_at(records, folder, self.sink.format, self.sink.options, measured)

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


def open_outputs(plans: Plans, fragment: Fragment, epoch: int, writer: str) -> list[Output]:
    """Everything a fragment writes to, claimed for an epoch; Fenced where a later one has taken over."""
    outputs = []
    for stream in fragment.outputs:
        operator = stream.rpartition(".")[2] if fragment.trunk else None
        outputs.append(Output(operator, stream, LogWriter(plans.folders.stream(stream), epoch, writer)))
    if fragment.query is not None:
        query = plans.deployment.query(fragment.query)
        for sink in query.sinks:
            name = sink_name(query, sink)
            if name in fragment.sinks:
                operator = sink.from_ if fragment.trunk else None
                outputs.append(Output(operator, name, SinkWriter(_path(plans, sink, name), sink, epoch, writer), sink))
    return outputs


def _path(plans: Plans, sink: Sink, name: str) -> Path:
    if sink.path is None:
        return plans.folders.state / "console" / name
    return Path(sources.path_of(plans.deployment, sink.path))
