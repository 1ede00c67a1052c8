"""What a run of the twin tells: values, tables, the contract's JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.model import Query

if TYPE_CHECKING:
    import pandas as pd


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
    latency_rows: list[dict[str, Any]] = field(default_factory=list)
    utilisation_rows: list[dict[str, Any]] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    in_flight_max: int = 0
    placement: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The contract's JSON; of two runs with one seed only `wall_s` differs."""
        return {
            "queries": self.queries,
            "sites": self.sites,
            "moves": [move.as_json() for move in self.moves],
            "events": self.events,
            "wall_s": self.wall_s,
            "warnings": self.warnings,
        }

    def text(self) -> str:
        """The JSON as text."""
        return json.dumps(self.as_json(), indent=2)

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


def promise_kept(query: Query, quantile_ms: float | None, records_in: int, dropped: int) -> bool | None:
    """Whether what was promised and can be seen here held; None where there is nothing to judge."""
    promise = query.promise
    judged: list[bool] = []
    if promise.latency_ms is not None and quantile_ms is not None:
        judged.append(quantile_ms <= promise.latency_ms)
    if promise.loss is not None and records_in:
        judged.append(dropped <= promise.loss * records_in)
    return all(judged) if judged else None


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)
