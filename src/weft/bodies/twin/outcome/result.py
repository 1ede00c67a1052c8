"""What a run of the twin tells: values, tables, the contract's JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bodies.twin.loop.columns import Floats, Ints
from weft.model import Observed

if TYPE_CHECKING:
    import pandas as pd


NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Move:
    """An operator that went from one site to another, and how long it did not run."""

    query: str
    operator: str
    from_: str
    to: str
    at_s: float
    pause_ms: float | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        """As the commands print it."""
        return {
            "query": self.query, "operator": self.operator, "from": self.from_, "to": self.to, "at_s": self.at_s,
            "pause_ms": self.pause_ms, "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """What was measured over time, as it was counted: latencies in buckets, and how long sites had been busy when."""

    queries: tuple[str, ...]
    sites: tuple[str, ...]
    bucket_ns: int
    records: Ints
    latency_ns: Floats
    busy_ns: tuple[tuple[int, Ints], ...]

    def latencies(self) -> list[dict[str, Any]]:
        """Rows of query, at_s, latency_ms, records."""
        rows = []
        for number, query in enumerate(self.queries):
            for bucket in np.flatnonzero(self.records[number]):
                count = int(self.records[number, bucket])
                mean_ms = float(self.latency_ns[number, bucket]) / count / 1e6
                at_s = int(bucket) * self.bucket_ns / NS_PER_S
                rows.append({"query": query, "at_s": at_s, "latency_ms": mean_ms, "records": count})
        return rows

    def utilisations(self) -> list[dict[str, Any]]:
        """Rows of site, at_s, utilisation."""
        rows = []
        before_ns, before = 0, np.zeros(len(self.sites), np.int64)
        for at_ns, busy in self.busy_ns:
            if at_ns > before_ns:
                shares = (busy - before) / (at_ns - before_ns)
                at_s = before_ns / NS_PER_S
                rows += [
                    {"site": name, "at_s": at_s, "utilisation": float(share)}
                    for name, share in zip(self.sites, shares, strict=True)
                ]
            before_ns, before = at_ns, busy
        return rows


@dataclass(slots=True)
class Result:
    """The outcome of one run; the tables are plain rows, the frames are pandas."""

    queries: dict[str, dict[str, Any]]
    sites: dict[str, dict[str, Any]]
    moves: list[Move]
    events: int
    wall_s: float
    warnings: list[str]
    seconds: float
    operator_rows: list[dict[str, Any]] = field(default_factory=list)
    link_rows: list[dict[str, Any]] = field(default_factory=list)
    site_rows: list[dict[str, Any]] = field(default_factory=list)
    series: Series | None = None
    story: list[str] = field(default_factory=list)
    in_flight_max: int = 0
    placement: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    placement_at_end: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """What the plan in force says when the run ends, further instances included."""
    shared: list[dict[str, Any]] = field(default_factory=list)
    ordering: dict[str, dict[str, float]] = field(default_factory=dict)
    observed: list[Observed] = field(default_factory=list)
    advice: list[dict[str, Any]] | None = None
    """What rules would have moved, look by look; None where nobody asked."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    """Every change that somebody asked for or a rule wished, and what became of it."""
    decisions: list[dict[str, Any]] | None = None
    """What rules wished, by which numbers, and what became of it; None where no rule is on."""
    slack_ms: dict[str, dict[str, float]] | None = None
    """By site, the slack of its operators as the site itself knows it at the end; None where nothing is fed back."""

    def as_json(self) -> dict[str, Any]:
        """The contract's JSON; of two runs with one seed only `wall_s` differs."""
        return {
            "queries": self.queries,
            "sites": self.sites,
            "moves": [move.as_json() for move in self.moves],
            "events": self.events,
            "wall_s": self.wall_s,
            "warnings": self.warnings,
            "changes": self.changes,
            **({"placement_at_end": self.placement_at_end} if self.placement_at_end != self.placement else {}),
            **({"shared": self.shared} if self.shared else {}),
            **({"ordering": self.ordering} if self.ordering else {}),
            **({"advice": self.advice} if self.advice is not None else {}),
            **({"decisions": self.decisions} if self.decisions is not None else {}),
            **({"slack_ms": self.slack_ms} if self.slack_ms is not None else {}),
        }

    def text(self) -> str:
        """The JSON as text."""
        return json.dumps(self.as_json(), indent=2)

    @property
    def latency_rows(self) -> list[dict[str, Any]]:
        """Mean latency of each query over time, as plain rows."""
        return [] if self.series is None else self.series.latencies()

    @property
    def utilisation_rows(self) -> list[dict[str, Any]]:
        """Utilisation of each site over time, as plain rows."""
        return [] if self.series is None else self.series.utilisations()

    @property
    def latency(self) -> pd.DataFrame:
        """Mean latency of each query over time: query, at_s, latency_ms, records."""
        return _frame(self.latency_rows)

    @property
    def utilisation(self) -> pd.DataFrame:
        """Utilisation of each site over time: site, at_s, utilisation."""
        return _frame(self.utilisation_rows)

    @property
    def operators(self) -> pd.DataFrame:
        """Counts of each operator: arrived, served, dropped, emitted, waiting at the end."""
        return _frame(self.operator_rows)

    @property
    def links(self) -> pd.DataFrame:
        """Counts of each link that can hold records up: sent, utilisation."""
        return _frame(self.link_rows)

    @property
    def site_table(self) -> pd.DataFrame:
        """Each site: utilisation, greatest and mean number of records."""
        return _frame(self.site_rows)


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)
