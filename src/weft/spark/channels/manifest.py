"""What does a commit say? Its number, its writer, its records, and how far its stream has come with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from weft.spark.channels.position import Position

END_TIME_US = 253_370_764_800_000_000  # 9999-01-01: the event time of a stream that has ended


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a segment holds, who wrote it, and how far its stream has come with it."""

    segment: int
    epoch: int
    writer: str
    batch: int
    rows: int = 0
    bytes: int = 0
    rows_total: int = 0
    files: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()
    birth_ms: tuple[float, float] | None = None
    times_us: dict[str, int] = {}
    watermark_ms: int | None = None
    inputs: dict[str, Position] = {}
    end: bool = False
    replaces: bool = False
    bad: int = 0
    aside: dict[str, tuple[int, int]] = {}
    run: str = ""
    committed_ms: float = 0.0
    # Of a stream with several partitions, file by file: the partition, and how many records.
    parts: tuple[int, ...] = ()
    part_rows: tuple[int, ...] = ()

    def rows_in(self, partitions: Collection[int] | None) -> int:
        """Records in some partitions; None: in all."""
        if partitions is None:
            return self.rows
        if not self.parts:
            return self.rows if 0 in partitions else 0
        return sum(rows for part, rows in zip(self.parts, self.part_rows, strict=True) if part in partitions)


@dataclass(frozen=True, slots=True)
class Written:
    """A batch that is not committed yet: its records, bytes and files, and the greatest value of each time column."""

    rows: int = 0
    bytes: int = 0
    files: tuple[str, ...] = ()
    times_us: dict[str, int] = field(default_factory=dict)
    folder: Path | None = None
    parts: tuple[int, ...] = ()
    part_rows: tuple[int, ...] = ()
