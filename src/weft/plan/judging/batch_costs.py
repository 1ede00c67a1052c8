"""What does a micro-batch cost on a machine? The figures that `weft calibrate` measures, and those that are shipped.

A batch costs something whatever is in it; how much depends on whether its fragment keeps state, on how many outputs it
writes and on how many operators are Python. Batches of several fragments at once share the machine's cores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from weft.spec import DISTINCT, JOIN

REST = "*"
"""The name under which the correction of all fragments stands that have none of their own."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """How batches under way at once slow each other down: each one beyond those that there is room for, by a share."""

    crowd: float
    room: float = 1.0

    def slower(self, under_way: float) -> float:
        """How many times as long batches take where so many are under way at once."""
        return 1.0 + self.crowd * max(0.0, under_way - self.room)


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """Costs of micro-batches in ms of a machine that does nothing else.

    `stateful_ms` is one that aggregates; one that drops what came before or that joins may cost something else.
    `text_ms` is what a sink of csv or json takes more than one of Parquet.
    `after_ms` is the part of a batch that comes after its results are committed, while Spark writes down that it ended.
    So many batches as `room` run at once unhindered; each further one makes all longer by the share `crowd`.
    `look_ms` is the time until a fragment that waits sees a commit. `first_ms` is what a fragment's first batch takes
    more than later ones, and `cooling` the share of that which is left with each further one. `spread` is the relative
    deviation of durations. `factors` are corrections by fragment, of what the last run measured.
    """

    stateless_ms: float
    stateful_ms: float
    output_ms: float
    python_ms: float
    record_ms: float
    crowd: float
    look_ms: float
    first_ms: float
    cooling: float
    spread: float
    cores: int
    setting: str
    measured_at: str | None = None
    after_ms: float = 0.0
    text_ms: float = 0.0
    distinct_ms: float | None = None
    join_ms: float | None = None
    room: float = 1.0
    factors: dict[str, float] = field(default_factory=dict, hash=False)

    def slower(self, under_way: int) -> float:
        """How many times as long batches take where so many are under way at once."""
        return self.crowding.slower(under_way)

    @property
    def crowding(self) -> Crowding:
        """How batches slow each other down."""
        return Crowding(self.crowd, self.room)

    def state_ms(self, kind: str) -> float:
        """A batch of a fragment that keeps a kind of state."""
        known = {DISTINCT: self.distinct_ms, JOIN: self.join_ms}.get(kind)
        return self.stateful_ms if known is None else known

    @property
    def hop_ms(self) -> float:
        """What one more fragment on the way adds, as placement counts it: its batch, and what it takes of the cores."""
        return self.look_ms + self.stateless_ms * (1.0 + self.crowd)

    def as_json(self) -> dict[str, Any]:
        """As it is kept and printed."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def costs_from_json(data: bytes | str) -> BatchCosts:
    """The value in a JSON document; ValueError where there is none."""
    return msgspec.json.decode(data, type=BatchCosts)


# Two cores that did nothing else (Python 3.11, Java 17, Spark 4, local disk with fsync), as `weft calibrate` found it
# there, rounded: 59.9, 216.7, 60.5, 6.1, 0.0025, 0.50, 6.0, 730.9, 0.29. `cooling` was a guess, and `after_ms` is
# 0.18 of a batch without state, as its files told of ten fragments of four runs, `text_ms` half of one: of two such
# queries on one source the one with a csv sink took 1.48 times as long as that with Parquet. `distinct_ms` and
# `join_ms` are by what such batches took beside those without state in three runs: 1.6 to 1.8 times, 3.7 to 3.9 times.
SHIPPED = BatchCosts(
    stateless_ms=60.0,
    stateful_ms=220.0,
    output_ms=60.0,
    python_ms=6.0,
    record_ms=0.0025,
    crowd=0.5,
    look_ms=6.0,
    first_ms=730.0,
    cooling=0.3,
    spread=0.29,
    cores=2,
    setting="two cores",
    after_ms=11.0,
    text_ms=30.0,
    distinct_ms=100.0,
    join_ms=225.0,
)
