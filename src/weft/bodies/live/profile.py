"""How much can an operator take? Its input rate is raised until its output no longer follows (Decentral §4.3.1).

The operator runs alone, on a recording of what it would read: a sample of the sources, the operators before it
applied. The rate doubles step by step; where less is worked off in a step than was offered, the operator is at its
limit, and the pace it then keeps, over whole batches, is its capacity. Writing its results is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.bodies.live.embedded import EmbeddedSites
from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Operator, Query, Sink, Site, Source, Trace, Watermark, dataflow
from weft.plan.dataflow.event_times import watermark_of
from weft.spark.fragments.analysis import analyse
from weft.spark.measuring import samples as trial
from weft.spark.session.lent import Lent, let_go
from weft.spark.session.starting import start_session
from weft.spark.sources.arrivals import Flow
from weft.spec import with_reads_from

BEHIND_MAX = 0.5  # of what a step offers: a batch or two under way are less, and a hiccup does not count
RATE_PER_S_FIRST = 25.0
WARMING_STEPS = 3  # at the first rate, not judged: Spark compiles, Python processes start
SATURATED_BATCHES = 3
PATIENCE_STEPS = 10
SITE = "trial"


@dataclass(frozen=True, slots=True)
class Step:
    """Records per second offered and worked off while one rate held, and whether the output kept up."""

    offered_per_s: float
    done_per_s: float
    follows: bool


@dataclass(slots=True)
class Trial:
    """One operator under a rising rate: how much it had done at which moment, and what to conclude."""

    rates_per_s: tuple[float, ...]
    step_s: float
    done: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])

    def saw(self, at_s: float, records: int) -> None:
        """So many records were worked off by then."""
        if records > self.done[-1][1]:
            self.done.append((at_s, records))

    def done_at(self, at_s: float) -> float:
        """Records worked off by a moment, even between two batches."""
        before = [point for point in self.done if point[0] <= at_s][-1]
        after = next((point for point in self.done if point[0] > at_s), None)
        if after is None:
            return float(before[1])
        share = (at_s - before[0]) / (after[0] - before[0])
        return before[1] + share * (after[1] - before[1])

    def steps(self, until_s: float) -> list[Step]:
        """The steps that are over and, in each, what was offered and done."""
        found = []
        offered = 0.0
        for at, rate in enumerate(self.rates_per_s):
            start_s, end_s = at * self.step_s, (at + 1) * self.step_s
            if end_s > until_s:
                break
            offered += rate * self.step_s
            done_per_s = (self.done_at(end_s) - self.done_at(start_s)) / self.step_s
            behind = offered - self.done_at(end_s)
            follows = at < WARMING_STEPS or behind <= BEHIND_MAX * rate * self.step_s
            found.append(Step(rate, done_per_s, follows))
        return found

    def overwhelmed_at_s(self, until_s: float) -> float | None:
        """When the first step began that was not kept up with."""
        lost = [at for at, step in enumerate(self.steps(until_s)) if not step.follows]
        return lost[0] * self.step_s if lost else None

    def is_over(self, at_s: float) -> bool:
        """Whether enough whole batches were seen at the limit, or no more is to be expected."""
        since_s = self.overwhelmed_at_s(at_s)
        if since_s is None:
            return at_s >= len(self.rates_per_s) * self.step_s
        batches = [moment for moment, _ in self.done if moment >= since_s]
        return len(batches) > SATURATED_BATCHES or at_s >= since_s + PATIENCE_STEPS * self.step_s

    def capacity_per_s(self, until_s: float) -> float | None:
        """The pace at the limit, from the end of one batch to the end of a later one; None where it was not reached."""
        since_s = self.overwhelmed_at_s(until_s)
        if since_s is None:
            return None
        whole = [point for point in self.done if point[0] >= since_s]
        if len(whole) < 2:
            return max((step.done_per_s for step in self.steps(until_s)), default=None)
        (first_s, first), (last_s, last) = whole[0], whole[-1]
        return (last - first) / (last_s - first_s)


def rising(rate_per_s_max: float) -> tuple[float, ...]:
    """Rates that double up to the greatest, the first held for a while."""
    rates = [min(RATE_PER_S_FIRST, rate_per_s_max)] * (WARMING_STEPS + 1)
    while rates[-1] < rate_per_s_max:
        rates.append(min(2 * rates[-1], rate_per_s_max))
    return tuple(rates)


def profile(
    deployment: Deployment,
    wanted: tuple[tuple[str, str], ...],
    rate_per_s_max: float,
    step_s: float,
    folder: Path,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """Capacity, cost and selectivity of operators (query, operator), each tried alone in a folder to throw away."""
    lent, (spark, _) = Lent.now(), deployment.shared_spark()
    session = start_session(folder / "logs", [deployment.folder], str(spark.master), spark.conf, folder / "temporary")
    try:
        schemas = analyse(session, deployment).schemas
        found = {}
        for query, operator in wanted:
            tell(f"{query}.{operator}: preparing its input")
            one = _Profile(session, deployment, deployment.query(query), operator, schemas, folder)
            found[f"{query}.{operator}"] = one.go(rising(rate_per_s_max), step_s, tell)
        return found
    finally:
        let_go(session, lent)


class _Profile:
    """One operator on its own."""

    def __init__(
        self, session: Any, deployment: Deployment, query: Query, operator: str, schemas: dict[str, Any], folder: Path
    ) -> None:
        self.session = session
        self.deployment = deployment
        self.query = query
        self.operator = query.operator(operator)
        self.schemas = schemas
        self.folder = folder / f"{query.name}.{operator}"

    def go(self, rates: tuple[float, ...], step_s: float, tell: Callable[[str], None]) -> dict[str, Any]:
        share = len(self.operator.from_)
        arrivals = Trace(tuple(rate / share for rate in rates), step_s)
        records = Flow(arrivals, 0).count(len(rates) * step_s) + 1
        inputs = trial.inputs_of(self.session, self.deployment, self.query, self.operator.name)
        for name, frame in inputs.items():
            if not trial.lay_down(frame, self.folder / name, records, self._time(name)):
                return {"error": f"{name} holds no records to try it on"}
        tried = Trial(rates, step_s)
        run = Run(self._alone(arrivals), self.folder / ".weft", Options(seconds=(len(rates) + PATIENCE_STEPS) * step_s))
        told = 0

        def watch(seen: Run) -> None:
            nonlocal told
            if seen.flowing_s is None or not isinstance(seen.sites, EmbeddedSites):
                return
            at_s = seen.flowed_s()
            runs = list(seen.sites.runs.values())
            tried.saw(at_s, sum(rows for one in runs for rows in one.taken_sources().values()))
            for step in tried.steps(at_s)[told:]:
                told += 1
                tell(f"{self._name}: {step.offered_per_s:,.0f}/s offered, {step.done_per_s:,.0f}/s done")
            if tried.is_over(at_s):
                seen.stop()

        summary = run.go(watch)
        return self._found(tried, run.flowed_s(), summary["operators"].get(self._name, {}))

    @property
    def _name(self) -> str:
        return f"{self.query.name}.{self.operator.name}"

    def _found(self, tried: Trial, at_s: float, measured: dict[str, Any]) -> dict[str, Any]:
        steps = tried.steps(at_s)
        capacity = tried.capacity_per_s(at_s)
        bound = math.inf if capacity is None else capacity
        followed = [step.offered_per_s for step in steps if step.follows and step.offered_per_s <= bound]
        return {
            "capacity_per_s": None if capacity is None else round(capacity, 1),
            "follows_up_to_per_s": max(followed, default=0.0),
            "cost_ms": measured.get("cost_ms"),
            "selectivity": measured.get("selectivity"),
            "steps": [
                {"offered_per_s": round(s.offered_per_s, 1), "done_per_s": round(s.done_per_s, 1)} for s in steps
            ],
        }

    def _watermark(self, name: str) -> Watermark | None:
        """What the operator asks of one input, by a moment: of a window its end."""
        found = watermark_of(self.deployment, self.query, self.operator, name)
        if found is None or found.column is None or "." in found.column:
            return found
        column = next(one for one in self._columns(name) if one.name == found.column)
        is_window = str(column.type).startswith("struct")
        return replace(found, column=f"{found.column}.end") if is_window else found

    def _time(self, name: str) -> str | None:
        watermark = self._watermark(name)
        return watermark.column if watermark is not None else None

    def _columns(self, name: str) -> tuple[Column, ...]:
        schema = self.schemas[dataflow(self.deployment).stream(self.query.name, name)]
        return tuple(Column(one.name, one.dataType.simpleString()) for one in schema)

    def _alone(self, arrivals: Trace) -> Deployment:
        """A deployment of this operator, its inputs replayed at a rising rate."""
        sources = []
        watermarks = []
        # A stream of another query becomes a source, whose name has no dot.
        named = {name: name.replace(".", "__") for name in self.operator.from_}
        for name, own in named.items():
            path, columns = str(self.folder / name), self._columns(name)
            sources.append(Source(own, SITE, "replay", columns, path, event_time=self._time(name), arrivals=arrivals))
            watermark = self._watermark(name)
            if watermark is not None:
                watermarks.append(replace(watermark, input=own))
        sql = self.operator.sql and with_reads_from(self.operator.sql, {a: b for a, b in named.items() if a != b})
        operator: Operator = replace(
            self.operator, from_=tuple(named.values()), sql=sql, site=None, watermarks=tuple(watermarks)
        )
        sink = next((one for one in self.query.sinks if one.from_ == operator.name), None)
        mode, key = (sink.mode, sink.key) if sink is not None else ("append", ())
        out = Sink(operator.name, "parquet", str(self.folder / "out"), mode=mode, key=key)
        query = Query(self.query.name, (operator,), (out,))
        return Deployment((Site(SITE),), tuple(sources), (query,), folder=self.deployment.folder)
