"""How does a fragment start before its turn? Behind a gate: it runs, but finds nothing to read until the gate opens.

    fragments/ID/gate-2.json    {"channel_...": 17, ...}

The file opens the gate of a fragment's second generation and says where each input goes on, since whoever read it
before went on reading meanwhile: what lies before is passed over, also when Spark replays that first batch later.

While the gate is closed every reader asks for one batch without records, a rehearsal: what Spark has to start for a
first batch is then there when it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.spark.channels.position import BEGINNING, Position, as_position, reaches
from weft.spark.storage.disk import Disk, read_sealed

GATE = "gate"
CLOSED = "gate_closed"
ENTRY = "entry"
REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate of one generation; `waits` where a reader must find it open before it reads anything."""

    path: Path
    waits: bool = False
    disk: Disk = field(default_factory=Disk, compare=False)

    def options(self, entry: str) -> dict[str, str]:
        """What a reader is told of it."""
        return {GATE: str(self.path), CLOSED: str(int(self.waits)), ENTRY: entry}

    def open(self, positions: Mapping[str, Position]) -> None:
        """Let readers in, each at its place."""
        self.disk.make(self.path.parent)
        self.disk.seal(self.path, positions)

    def is_open(self) -> bool:
        """True if readers are let in."""
        return self.path.exists()

    def positions(self) -> dict[str, Position]:
        """Where readers go on at the earliest; empty where none was told."""
        try:
            return {name: as_position(at) for name, at in read_sealed(self.path).items()}
        except FileNotFoundError:
            return {}

    def forget(self) -> None:
        """As if it had never been there."""
        self.path.unlink(missing_ok=True)


class Gatekeeper:
    """A reader's view of its gate."""

    def __init__(self, options: dict[str, str]) -> None:
        self._gate = Gate(Path(options[GATE]), options[CLOSED] == "1") if GATE in options else None
        self._entry = options.get(ENTRY, "")
        self._first: Position | None = None
        self._rehearsal: int | None = None

    def closed(self) -> bool:
        """Whether nothing may be read yet."""
        return self._gate is not None and self._gate.waits and self._first is None and not self._gate.is_open()

    def rehearsal(self, start: dict[str, Any]) -> dict[str, Any]:
        """The offset of a reader behind a closed gate: one step from where it began, to no record."""
        if self._rehearsal is None:
            self._rehearsal = start.get(REHEARSAL, 0) + 1
        return {**start, REHEARSAL: self._rehearsal}

    def nothing_beyond(self, reach: Position) -> bool:
        """Whether a stream has come no further than those before have read: a batch of it would be empty."""
        return self._gate is not None and self._gate.waits and reaches(self.first(), reach)

    def first(self) -> Position:
        """The position before which everything is somebody else's."""
        if self._first is None and not self.closed():
            self._first = self._gate.positions().get(self._entry, BEGINNING) if self._gate else BEGINNING
        return BEGINNING if self._first is None else self._first
