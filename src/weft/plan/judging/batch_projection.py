"""What would a placement do to its queries on Spark? Latencies by micro-batches, against what was promised.

Where the ideal model knows sites of some capacity, here all sites share one machine, as they do live: capacities do not
count, links count where they are emulated, and a promise is held against the quantile that it names. Availability and
loss are those of the ideal model. A source that declares no arrivals is taken to give a record a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from weft.model import AddAt, Constant, Deployment, PartitionAt, Placement, Query, RemoveAt, dataflow
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.rates import Rates, ideal_rates
from weft.plan.judging.batch_costs import BatchCosts
from weft.plan.judging.batch_pieces import BatchPiece, fragments_of, pieces_of, with_expected
from weft.plan.judging.micro_batches import Simulated, Span, mean_of, quantile_of, simulate
from weft.plan.judging.projection import MICRO_BATCH, Projection, Where, judged, project

SILENT_PER_S = 1.0
SEED = 0  # durations scatter alike in every projection, so that placements are compared by what differs in them


@dataclass(frozen=True, slots=True)
class OnSpark:
    """A placement as the model of micro-batches sees it: what runs, and what comes of it."""

    pieces: tuple[BatchPiece, ...]
    simulated: Simulated
    overload: str | None
    """By how much records alone ask for more than this machine does, and where; None where they do not."""


def on_spark(
    deployment: Deployment, placement: Placement, costs: BatchCosts, fragments: tuple[Fragment, ...] | None = None
) -> OnSpark:
    """Lets the micro-batches of a placement fall; `fragments` where it is known already how it is cut."""
    heard = with_expected(_heard(deployment))
    cut = fragments_of(heard, placement) if fragments is None else fragments
    pieces = pieces_of(heard, cut, ideal_rates(heard), costs)
    return OnSpark(pieces, simulate(pieces, costs, Random(SEED)), overload(pieces, costs))


def project_on_spark(
    deployment: Deployment, placement: Placement, costs: BatchCosts, rates: Rates | None = None
) -> dict[str, Projection]:
    """The projection of every query of a whole placement, by micro-batches."""
    ideal = project(deployment, placement, rates)
    found = on_spark(deployment, placement, costs)
    spans = {} if found.overload is not None else found.simulated.spans
    return {
        query.name: _of(query, ideal[query.name], spans.get(query.name, []), found, _longest(deployment, query, found))
        for query in deployment.queries
    }


def _longest(deployment: Deployment, query: Query, found: OnSpark) -> Where:
    """The fragment whose batches take longest on the way to a query's results."""
    behind = {node.stream for node in dataflow(deployment).behind(query.name)}
    pieces = [one for one in found.pieces if one.id in behind]
    longest = max(pieces, key=lambda one: found.simulated.batch_ms.get(one.id, 0.0), default=None)
    if longest is None:
        return Where()
    took_ms = found.simulated.batch_ms.get(longest.id, 0.0)
    return Where(f"its longest batches are those of {longest.id} at {longest.site}, {took_ms:.0f} ms")


def _of(query: Query, ideal: Projection, spans: list[Span], of: OnSpark, where: Where) -> Projection:
    if not spans:
        more: dict[str, float] = {}
        latency_ms = None
    else:
        latency_ms = quantile_of(spans, query.promise.quantile)
        more = {"mean_ms": mean_of(spans), "p50_ms": quantile_of(spans, 0.5), "p95_ms": quantile_of(spans, 0.95)}
    found = Projection(latency_ms, ideal.availability, True, "", model=MICRO_BATCH, lost=ideal.lost, **more)
    too_much = f": {of.overload}" if of.overload is not None else ""
    return judged(query, found, f"records come faster than this machine takes them{too_much}", where)


def why_ideal(deployment: Deployment) -> str | None:
    """Why a deployment is not one that Spark would run as it is, so that the ideal model is asked; None where it is."""
    control = deployment.control
    if any(site.batch is not None for site in deployment.sites):
        return "sites say themselves how their batches fall"
    if control.balance is not None:
        return "what `balance` moves is foreseen by what sites can do"
    if control.scale is not None:
        return "`scale` acts in the twin, not yet live"
    if control.serve != type(control.serve)():
        return "`serve` is of the twin"
    if any(isinstance(what, PartitionAt) for what in deployment.scenario):
        return "`partition` is of the twin"
    if any(isinstance(what, AddAt | RemoveAt) for what in deployment.scenario):
        return "queries come or go in the scenario"
    if any(node.operator.queue is not None for node in dataflow(deployment).nodes):
        return "queues of a bounded length are of the twin"
    return None


def overload(pieces: tuple[BatchPiece, ...], costs: BatchCosts) -> str | None:
    """By how much records alone, without what batches cost, ask for more than one batch a piece can do at once."""
    if not pieces:
        return None
    loads = [piece.record_ms * piece.taken_per_s for piece in pieces]
    most, at = max((load, -number) for number, load in enumerate(loads))
    if most >= 1000:
        piece = pieces[-at]
        return _too_much(f"{piece.id} at {piece.site} alone asks", most, 1000)
    busy = sum(load > 0 for load in loads)
    done = 1000 * max(1, busy) / costs.slower(busy)
    return _too_much("all fragments together ask", sum(loads), done) if sum(loads) >= done else None


def _too_much(who: str, asked_ms: float, done_ms: float) -> str:
    share = done_ms / asked_ms
    return f"{who} for {asked_ms:,.0f} ms of work a second, {done_ms:,.0f} can be done: {share:.0%} of the records"


def _heard(deployment: Deployment) -> Deployment:
    """The deployment with a rate for every source."""
    sources = tuple(
        source if source.arrivals is not None else replace(source, arrivals=Constant(SILENT_PER_S))
        for source in deployment.sources
    )
    return deployment if sources == deployment.sources else replace(deployment, sources=sources)
