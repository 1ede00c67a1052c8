"""How does the twin run what Spark would run? Every fragment becomes a place of its own that serves in micro-batches.

A place is called `SITE/FRAGMENT` and linked to its site. Relays of sources and sinks become operators that hand records
on. Links take time where they are emulated, and capacities do not count: all places share the cores of one machine, so
each batch is slowed by those under way when it begins (`loop/batches.py`). A move in the scenario goes to the place of
the fragment that it would be cut into, a crash takes all places of a site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from weft.bodies.twin.outcome.result import Move, Result, Series
from weft.bodies.twin.records import names_of
from weft.bodies.twin.setup.options import Recut, Shared, SharedPlace
from weft.model import (
    Batch,
    Cost,
    CrashAt,
    Deployment,
    Happening,
    Link,
    MoveAt,
    Operator,
    Placement,
    Query,
    RestartAt,
    Site,
    dataflow,
)
from weft.plan.changing.fragments import Fragment, source_of
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.judging.batch_costs import BatchCosts
from weft.plan.judging.batch_pieces import BatchPiece, fragments_of, pieces_of, with_expected

SEPARATOR = "/"
LOOKS = 2.0  # a fragment that waits looks at every so many times the mean time until it sees a commit


@dataclass(slots=True)
class _Places:
    """Places so far, and where every operator is as the scenario goes on."""

    costs: BatchCosts
    pieces: dict[str, BatchPiece]
    of: dict[str, str]  # by operator's stream, or by relay
    recut: dict[tuple[tuple[str, str], str], dict[str, Recut]] = field(default_factory=dict)

    @staticmethod
    def name(site: str, fragment: str) -> str:
        return f"{site}{SEPARATOR}{fragment}"


@dataclass(frozen=True, slots=True)
class OnSpark:
    """A deployment as the record plane runs it, and what its places share."""

    deployment: Deployment
    placement: Placement
    shared: Shared


def on_spark(deployment: Deployment, placement: Placement, costs: BatchCosts) -> OnSpark:
    """The deployment with a place for every fragment."""
    deployment = with_expected(deployment)
    fragments = fragments_of(deployment, placement)
    rates = ideal_rates(deployment)
    pieces = {piece.id: piece for piece in pieces_of(deployment, fragments, rates, costs)}
    places = _Places(costs, {}, {})
    for fragment in fragments:
        place = places.name(fragment.site, fragment.id)
        places.pieces[place] = pieces[fragment.id]
        for stream in _streams(fragment):
            places.of[stream] = place
    homes = dict(places.of)
    scenario = tuple(_scenario(deployment, placement, places))
    queries = _with_relays(deployment, fragments, costs)
    sites = tuple(
        [replace(site, parent=None, batch=None, capacity=1.0) for site in deployment.sites]
        + [_site(place, piece, costs) for place, piece in places.pieces.items()]
    )
    links = tuple([_link(link) for link in deployment.links] + [_joined(place) for place in places.pieces])
    control = replace(deployment.control, balance=None, scale=None, advise=None, relief=None)
    made = replace(deployment, sites=sites, links=links, queries=queries, scenario=scenario, control=control)
    shared = Shared(
        costs.crowd,
        costs.spread,
        costs.cooling,
        {
            place: SharedPlace(piece.closes_windows, costs.first_ms * costs.cooling**piece.rehearsed, piece.after_ms)
            for place, piece in places.pieces.items()
        },
        places.recut,
        costs.room,
    )
    return OnSpark(made, Placement({node.stream: homes[node.stream] for node in dataflow(made).nodes}), shared)


def _streams(fragment: Fragment) -> list[str]:
    """The operators of a fragment by their streams; a relay's own name."""
    return [*fragment.streams] or [_relay(fragment)]


def _relay(fragment: Fragment) -> str:
    """The operator that stands for a fragment without operators: of its query, or one of the relays of sources."""
    return fragment.id if fragment.query is not None else f"{RELAYS}.{_carrier(fragment)}"


def _carrier(fragment: Fragment) -> str:
    """The name of a relay as an operator, which no source has."""
    return f"relay of {fragment.id}"


RELAYS = "(relays)"


def _with_relays(deployment: Deployment, fragments: tuple[Fragment, ...], costs: BatchCosts) -> tuple[Query, ...]:
    """Queries whose operators and sinks read through relays, where fragments do; relays of sources are a query."""
    relays = [fragment for fragment in fragments if not fragment.operators]
    of_sources = {stream: f"{RELAYS}.{_carrier(one)}" for one in relays if one.query is None for stream in one.outputs}
    through = {(fragment.query, operator): stream for fragment in fragments for operator, stream in fragment.relayed}
    queries = []
    for query in deployment.queries:
        operators = [_operator(query, one, costs, through, of_sources) for one in query.operators]
        sinks = []
        for outlet, sink in zip(dataflow(deployment).outlets_of(query.name), query.sinks, strict=True):
            carried = next((one for one in relays if outlet.name in one.sinks), None)
            if carried is None:
                sinks.append(replace(sink, site=None))
                continue
            name = carried.id.partition(".")[2]
            reads = of_sources.get(carried.inputs[0], carried.inputs[0])
            operators.append(Operator(name, (reads,), cost_ms=_cost(costs), selectivity=1.0))
            sinks.append(replace(sink, from_=name, site=None))
        queries.append(replace(query, operators=tuple(operators), sinks=tuple(sinks)))
    carriers = tuple(
        Operator(_carrier(one), one.sources, cost_ms=_cost(costs), selectivity=1.0)
        for one in relays
        if one.query is None
    )
    return (*queries, Query(RELAYS, carriers, ())) if carriers else tuple(queries)


def _operator(
    query: Query, operator: Operator, costs: BatchCosts, through: dict[tuple[str | None, str], str],
    of_sources: dict[str, str],
) -> Operator:  # fmt: skip
    stream = through.get((query.name, operator.name))
    names = operator.from_
    if stream is not None:
        names = tuple(of_sources[stream] if name == source_of(stream) else name for name in names)
    cost = operator.cost_ms if operator.cost_ms is not None else _cost(costs)
    return replace(operator, from_=names, site=None, cost_ms=cost)


def _cost(costs: BatchCosts) -> Cost:
    return Cost("constant", (costs.record_ms,))


def _site(place: str, piece: BatchPiece, costs: BatchCosts) -> Site:
    return Site(place, batch=Batch(LOOKS * costs.look_ms, piece.fixed_ms))


def _link(link: Link) -> Link:
    return link if link.emulate else replace(link, delay_ms=0.0, bandwidth_kbps=None)


def _joined(place: str) -> Link:
    return Link(place.partition(SEPARATOR)[0], place)


def _scenario(deployment: Deployment, placement: Placement, places: _Places) -> Iterator[Happening]:
    """What happens, told of places; moves make the places that they go to."""
    for what in sorted(deployment.scenario, key=lambda one: one.at_s):
        if isinstance(what, MoveAt):
            placement = placement.put(what.move, what.to)
            to = _place_after(deployment, placement, places, what.move)
            places.of[what.move] = to
            places.recut[names_of(what.move), to] = _recut(deployment, placement, places)
            yield replace(what, to=to)
        elif isinstance(what, CrashAt):
            yield what
            yield from (replace(what, crash=place) for place in _at(places, what.crash))
        elif isinstance(what, RestartAt):
            yield what
            yield from (replace(what, restart=place) for place in _at(places, what.restart))
        else:
            yield what


def _at(places: _Places, site: str) -> list[str]:
    """The places of a site as the scenario has come so far."""
    return sorted({place for place in places.of.values() if place.partition(SEPARATOR)[0] == site})


def _place_after(deployment: Deployment, placement: Placement, places: _Places, stream: str) -> str:
    """The place of the fragment that an operator belongs to after its move: that of others in it, or a new one."""
    fragments = fragments_of(deployment, placement)
    fragment = next(one for one in fragments if stream in _streams(one))
    others = {places.of[other] for other in _streams(fragment) if other != stream}
    if len(others) == 1 and next(iter(others)).partition(SEPARATOR)[0] == fragment.site:
        return next(iter(others))
    rates = ideal_rates(deployment)
    piece = next(one for one in pieces_of(deployment, fragments, rates, places.costs) if one.id == fragment.id)
    name = places.name(fragment.site, fragment.id)
    while name in places.pieces:
        name += "'"
    places.pieces[name] = piece
    return name


def _recut(deployment: Deployment, placement: Placement, places: _Places) -> dict[str, Recut]:
    """What the places are after a move: of fragments that stay each by itself."""
    fragments = fragments_of(deployment, placement)
    pieces = {one.id: one for one in pieces_of(deployment, fragments, ideal_rates(deployment), places.costs)}
    held: dict[str, list[BatchPiece]] = {}
    for fragment in fragments:
        there = {places.of[stream] for stream in _streams(fragment) if stream in places.of}
        for place in there:
            held.setdefault(place, []).append(pieces[fragment.id])
    return {
        place: Recut(those[0].fixed_ms, those[0].closes_windows, those[0].after_ms)
        for place, those in held.items()
        if len(those) == 1
    }


def site_of(place: str) -> str:
    """The site of a place."""
    return place.partition(SEPARATOR)[0]


def told(deployment: Deployment, placement: Placement, result: Result, costs: BatchCosts) -> Result:
    """The result in terms of the deployment: places are their sites again, relays are nobody's."""
    names = {site.name for site in deployment.sites}
    busy = dict.fromkeys(names, 0.0)
    queued = dict.fromkeys(names, 0)
    for place, one in result.sites.items():
        site = place.partition(SEPARATOR)[0]
        busy[site] += one["utilisation"]
        queued[site] = max(queued[site], one["queue_max"])
    result.sites = {
        site.name: {
            "utilisation": round(min(1.0, busy[site.name] / costs.cores), 9),
            "queue_max": queued[site.name],
        }
        for site in deployment.sites
    }
    if result.series is not None:
        result.series = _of_sites(result.series, tuple(site.name for site in deployment.sites), costs.cores)
    result.queries.pop(RELAYS, None)
    result.moves = [_told_move(move) for move in result.moves]
    result.site_rows = [{"site": name, **one, "records_mean": 0.0} for name, one in result.sites.items()]
    result.operator_rows = [
        {**row, "site": row["site"].partition(SEPARATOR)[0]} for row in result.operator_rows if row["query"] != RELAYS
    ]
    result.placement = placement.as_json()
    result.placement_at_end = {
        query: {name: [site_of(place) for place in places] for name, places in operators.items()}
        for query, operators in result.placement_at_end.items()
        if query != RELAYS
    }
    return result


def _of_sites(series: Series, sites: tuple[str, ...], cores: int) -> Series:
    """How busy sites have been: what their places took of the machine's cores."""
    rows = [[at for at, place in enumerate(series.sites) if site_of(place) == site] for site in sites]
    busy_ns = tuple(
        (at_ns, np.array([busy[those].sum() // cores for those in rows], np.int64)) for at_ns, busy in series.busy_ns
    )
    return replace(series, sites=sites, busy_ns=busy_ns)


def _told_move(move: Move) -> Move:
    return replace(move, from_=site_of(move.from_), to=site_of(move.to))
