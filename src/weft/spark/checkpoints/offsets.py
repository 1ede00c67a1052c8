"""What does a batch bring? Read from the offsets that Spark wrote down before it ran: arithmetic, no extra columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.spark.channels.channel import Channel
from weft.spark.channels.position import BEGINNING, POSITION, Position, as_position
from weft.spark.sources.rate import COUNT


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where a batch ends on every input, by the name Spark knows it under, and Spark's clocks for it."""

    ends: dict[str, dict[str, Any]]
    watermark_ms: int
    clock_ms: float


@dataclass(frozen=True, slots=True)
class Arrival:
    """What one input brings to a batch: births, how far its event times have come, whether it has ended."""

    birth_ms: tuple[float, float] | None
    times_us: dict[str, int]
    end: bool
    position: Position = BEGINNING
    rows: int | None = None  # None: users' files, which only Spark counts
    bytes: int = 0  # in a channel


def lines_of(checkpoint: Path, batch: int) -> tuple[list[str], dict[str, str]]:
    """A batch's offsets as Spark writes them: two lines of heading, then a line for each input that has any."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    assert lines[0] == "v2", f"offset log of version {lines[0]}"
    named = (line.partition(":") for line in lines[2:])
    return lines[:2], {name: offset for name, _, offset in named if offset and offset != "-"}


def read_offsets(checkpoint: Path, batch: int) -> Offsets | None:
    """The offsets of a batch, None where there was no such batch or it is long gone."""
    try:
        heading, lines = lines_of(checkpoint, batch)
    except FileNotFoundError:
        return None
    clocks = json.loads(heading[1])
    ends = {name: json.loads(offset) for name, offset in lines.items()}
    return Offsets(ends, clocks["batchWatermarkMs"], clocks["batchTimestampMs"])


def from_channel(channel: Channel, start: Position, end: Position) -> Arrival:
    """What was committed between two positions brings."""
    manifests = [manifest for _, manifest in channel.commits(start, end)]
    births = [manifest.birth_ms for manifest in manifests if manifest.birth_ms is not None and manifest.rows]
    birth_ms = (min(low for low, _ in births), max(high for _, high in births)) if births else None
    last = manifests[-1] if manifests else channel.upto(end)
    rows, size = sum(manifest.rows for manifest in manifests), sum(manifest.bytes for manifest in manifests)
    if last is None:
        return Arrival(birth_ms, {}, False, end, rows, size)
    return Arrival(birth_ms, last.times_us, last.end, end, rows, size)


def position_of(offsets: Offsets | None, name: str) -> Position:
    """The position in its channel that an input had come to; the beginning before its first batch."""
    return as_position(offsets.ends[name][POSITION]) if offsets and name in offsets.ends else BEGINNING


def count_of(offsets: Offsets | None, name: str) -> int:
    """The records a timed source had given; 0 before its first batch."""
    held = offsets.ends[name].get(COUNT, 0) if offsets and name in offsets.ends else 0
    return held if isinstance(held, int) else 0  # else it is a topic of that name


def least(births: list[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The range that covers all births."""
    known = [birth for birth in births if birth is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None
