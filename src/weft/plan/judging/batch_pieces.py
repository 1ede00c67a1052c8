"""What does a placement make Spark do? Its fragments as the model of micro-batches sees them: pieces.

A piece reads sources and channels, takes a batch at a time, and commits what comes out to channels and sinks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.model import Dataflow, Deployment, Operator, Placement, dataflow
from weft.plan.changing.fragments import Fragment, cut, source_of
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.dataflow.rates import RESULTS_EXPECTED, Rates, cost_ms
from weft.plan.judging.batch_costs import REST, BatchCosts
from weft.plan.network.paths import Paths
from weft.spec import gathers, is_stateful, kind_of_state


@dataclass(frozen=True, slots=True)
class Intake:
    """A source that a piece reads: its rate, and whether records wait there from their birth until they are taken."""

    source: str
    per_s: float
    timed: bool


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What leaves a piece for each record that enters it: to a channel (its stream) or to a query's sink."""

    stream: str | None
    query: str | None
    share: float


@dataclass(frozen=True, slots=True)
class BatchPiece:
    """A fragment: what it reads, what a batch of it costs alone on the machine, and what it gives.

    `after_ms` of the cost comes after the commit. `closes_windows`: what it gives waits for the watermark, which moves
    from one batch to the next. Channels come with the delay of the links that are emulated on their way.
    """

    id: str
    site: str
    intakes: tuple[Intake, ...]
    channels: tuple[tuple[str, float], ...]
    fixed_ms: float
    record_ms: float
    closes_windows: bool
    outgoing: tuple[Outgoing, ...]
    taken_per_s: float = 0.0
    after_ms: float = 0.0

    @property
    def rehearsed(self) -> int:
        """Batches that are over before sources flow: one without records, where all it reads waits for that."""
        return int(all(intake.timed for intake in self.intakes))


def with_expected(deployment: Deployment) -> Deployment:
    """The deployment with what aggregates that declare no selectivity, and were not measured, are expected to give."""
    queries = tuple(
        replace(
            query,
            operators=tuple(
                replace(one, selectivity=RESULTS_EXPECTED) if one.selectivity is None and gathers(one) else one
                for one in query.operators
            ),
        )
        for query in deployment.queries
    )
    return deployment if queries == deployment.queries else replace(deployment, queries=queries)


def fragments_of(deployment: Deployment, placement: Placement) -> tuple[Fragment, ...]:
    """The fragments that a placement is cut into, by what SQL tells of operators."""
    return cut(deployment, placement, lambda query, operator: is_stateful(operator), passes_by_sql)


def pieces_of(
    deployment: Deployment, fragments: tuple[Fragment, ...], rates: Rates, costs: BatchCosts
) -> tuple[BatchPiece, ...]:
    """The pieces of a deployment, upstream first."""
    flow, paths = dataflow(deployment), Paths(deployment)
    made_at = {stream: fragment.site for fragment in fragments for stream in fragment.outputs}

    def delay_ms(stream: str, site: str) -> float:
        way = paths.between(made_at.get(stream, site), site)
        return way.delay_ms if way is not None and way.emulate else 0.0

    return tuple(
        _piece(deployment, flow, one, rates, costs, tuple((name, delay_ms(name, one.site)) for name in one.channels))
        for one in fragments
    )


def record_cost_ms(operator: Operator, costs: BatchCosts) -> float:
    """The work of a record in an operator: what was declared or measured, else what a simple one takes."""
    return costs.record_ms if operator.cost_ms is None else cost_ms(operator)


def _piece(
    deployment: Deployment, flow: Dataflow, fragment: Fragment, rates: Rates, costs: BatchCosts,
    channels: tuple[tuple[str, float], ...],
) -> BatchPiece:  # fmt: skip
    query = None if fragment.query is None else deployment.query(fragment.query)
    operators = [flow.node(stream).operator for stream in fragment.streams]
    intakes = tuple(
        Intake(name, rates.per_s[name], flow.sources[name].facts.born_outside_spark) for name in fragment.sources
    )
    taken_per_s = sum(one.per_s for one in intakes) + sum(_rate(rates, stream) for stream in fragment.channels)
    outgoing, texts = [], 0
    for stream in fragment.outputs:
        outgoing.append(Outgoing(stream, None, _share(_rate(rates, stream), taken_per_s)))
    for outlet in flow.outlets:
        if outlet.name in fragment.sinks:
            texts += outlet.sink.facts.text
            outgoing.append(Outgoing(None, outlet.query, _share(_rate(rates, outlet.stream), taken_per_s)))
    work_ms = costs.record_ms * taken_per_s
    for node in map(flow.node, fragment.streams):
        work_ms += record_cost_ms(node.operator, costs) * sum(_rate(rates, stream) for stream in node.inputs)
    kept = None if query is None or fragment.stateful is None else query.operator(fragment.stateful)
    updates = query is not None and any(sink.mode == "update" for sink in query.sinks)
    return BatchPiece(
        fragment.id,
        fragment.site,
        intakes,
        channels,
        _fixed_ms(fragment, operators, kept, texts, costs),
        _share(work_ms, taken_per_s),
        kept is not None and gathers(kept) and not updates,
        tuple(outgoing),
        taken_per_s,
        costs.after_ms * _factor(fragment, costs),
    )


def _fixed_ms(
    fragment: Fragment, operators: list[Operator], kept: Operator | None, texts: int, costs: BatchCosts
) -> float:
    base = costs.stateless_ms if kept is None else costs.state_ms(kind_of_state(kept))
    outputs = len(fragment.outputs) + len(fragment.sinks)
    more = costs.output_ms * max(0, outputs - 1) + costs.text_ms * texts
    more += costs.python_ms * sum(operator.call is not None for operator in operators)
    return (base + more) * _factor(fragment, costs)


def _factor(fragment: Fragment, costs: BatchCosts) -> float:
    return costs.factors.get(fragment.id, costs.factors.get(REST, 1.0))


def _rate(rates: Rates, stream: str) -> float:
    """Records a second of a stream; a relay's stream has those of its source."""
    return rates.per_s[stream if stream in rates.per_s else source_of(stream)]


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
