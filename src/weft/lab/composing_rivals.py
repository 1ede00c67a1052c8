"""The rivals of composition: Random, Greedy and Composition (QoS-aware, without sharing or projection), in one frame.

Each takes requests one after another and knows what sites have at that moment exactly; ours is the machine, with
messages under way and many requests at once. What all of them built is judged by the same function, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from weft.lab.composing_world import SECOND, Land, Request
from weft.plan.composing.graphs import extended, worth_keeping
from weft.plan.composing.impact import share, time_us
from weft.plan.composing.points import nearest, probed
from weft.plan.composing.values import Graph, Hop, Piece

RATIO, LEAST, FEW = 100, 2, 4
FULL = 0.9
"""A site asked for more than this counts as so much used: what waits there grows, but a run has an end."""


@dataclass(slots=True)
class State:
    """What runs, by query: its graph, what was asked, and what each site has of it."""

    land: Land
    load: dict[str, int]
    graphs: dict[str, Graph] = field(default_factory=dict)
    users: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """At each site, the queries there with the cost of an operator each."""
    probes: int = 0
    waits_us: list[int] = field(default_factory=list)

    def place(self, request: Request, sites: list[str]) -> None:
        """A query runs so."""
        hops, start = [], request.ask.plan.origins[0].site
        for piece, site in zip(request.ask.plan.pieces, sites, strict=True):
            link_us = self.land.ways.delay_us(start, site)
            hops.append(Hop(piece.name, site, piece.inputs[0], 0, link_us))
            self.load[site] += piece.load
            if piece.load:
                self.users.setdefault(site, []).append((request.ask.request, piece.cost_us))
            start = site
        self.graphs[request.ask.request] = Graph(tuple(hops))


Rival = Callable[[State, Request, Random], list[str] | None]


def by_chance(state: State, request: Request, rng: Random) -> list[str] | None:
    """Random: any of the candidates for each operator; a new one anywhere."""
    sites = []
    for piece in request.ask.plan.pieces:
        hosts = (piece.site,) if piece.site else state.land.hosts.get(piece.does) or tuple(state.land.capacity)
        sites.append(rng.choice(hosts))
        state.probes += 1
    return sites


def greedy(state: State, request: Request, rng: Random) -> list[str] | None:
    """Greedy: at each step the candidate of least delay; a new one at the site of least delay from there."""
    sites, here = [], request.ask.plan.origins[0].site
    for piece in request.ask.plan.pieces:
        here = next(iter(_candidates(state, piece, here, 1)))
        sites.append(here)
        state.probes += 1
    return sites


def _candidates(state: State, piece: Piece, here: str, least: int) -> tuple[str, ...]:
    if piece.site:
        return (piece.site,)
    hosts = state.land.hosts.get(piece.does)
    if hosts is None:  # nobody has it: a new one goes to the nearest other sites (Fig 2.20)
        return nearest((one for one in state.land.capacity if one != here), here, state.land.ways, max(3, least))
    return nearest(hosts, here, state.land.ways, probed(len(hosts), RATIO, least))


def composition(state: State, request: Request, rng: Random, projects: bool = False) -> list[str] | None:
    """Composition: candidates within the ratio, resources and delay so far checked, least phi; none where none fits."""
    plan, limit_us = request.ask.plan, request.limit_us
    known: dict[tuple[int, str], list[Graph]] = {}

    def ways(at: int, start: str, so_far_us: int) -> Iterator[Graph]:
        if at == len(plan.pieces):
            yield Graph()
            return
        piece = plan.pieces[at]
        for site in _candidates(state, piece, start, LEAST):
            state.probes += 1
            hop = _checked(state, piece, site, start, projects)
            if hop is None or so_far_us + hop.link_us + hop.exec_us > limit_us:
                continue
            if (at, site) not in known:
                below = ways(at + 1, site, so_far_us + hop.link_us + hop.exec_us)
                known[at, site] = worth_keeping(below, frozenset(), FEW)
            yield from (extended(hop, one) for one in known[at, site])

    found = [one for one in ways(0, plan.origins[0].site, 0) if one.us <= limit_us]
    if not found:
        return None
    best = min(found, key=lambda one: (one.phi, one.us, tuple(hop.site for hop in one.hops)))
    return [hop.site for hop in best.hops]


def projecting(state: State, request: Request, rng: Random) -> list[str] | None:
    """Composition + projection (Fig 2.15): what would break a running query's promise is no candidate (2.9)."""
    return composition(state, request, rng, projects=True)


def _checked(state: State, piece: Piece, site: str, start: str, projects: bool) -> Hop | None:
    """A piece at a site, with what it takes there now; None where it does not fit."""
    capacity, load = state.land.capacity[site], state.load[site] + piece.load
    link_us = state.land.ways.delay_us(start, site)
    if not piece.load:
        return Hop(piece.name, site, piece.inputs[0], 0, link_us)
    exec_us = time_us(piece.cost_us, load, capacity)
    if exec_us is None or (projects and any(_breaks(state, one, site, piece.load) for one in _here(state, site))):
        return None
    return Hop(piece.name, site, piece.inputs[0], exec_us, link_us, share(piece.load, capacity - load))


def _here(state: State, site: str) -> list[str]:
    return list(dict.fromkeys(name for name, _ in state.users.get(site, ())))


def _breaks(state: State, name: str, site: str, more: int) -> bool:
    """Whether so much more at a site breaks the promise of a query there (2.9)."""
    capacity, load = state.land.capacity[site], state.load[site]
    cost = sum(cost_us for who, cost_us in state.users[site] if who == name)
    now, then = time_us(cost, load, capacity), time_us(cost, load + more, capacity)
    if now is None or then is None:
        return True
    request = state.land.requests[int(name[1:])]
    return latency_us(state.land, state.load, request, state.graphs[name]) + then - now > request.limit_us


def latency_us(land: Land, load: dict[str, int], request: Request, graph: Graph, until: str = "") -> int:
    """What a record takes through a graph with what sites are asked for now, up to a piece or all."""
    pieces = {piece.name: piece for piece in request.ask.plan.pieces}
    total = 0.0
    for hop in graph.hops:
        capacity = land.capacity[hop.site]
        free = capacity - min(load[hop.site], FULL * capacity)
        total += hop.link_us + pieces[hop.piece].cost_us * SECOND / free
        if hop.piece == until:
            break
    return round(total)


RIVALS: dict[str, Rival] = {
    "Random": by_chance, "Greedy": greedy, "Composition": composition, "Composition + projection": projecting,
}  # fmt: skip
