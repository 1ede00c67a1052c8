"""Which of the ways found is taken, and what may each operator take of the promise? (Synergy §2.3.1, steps 4 and 5)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from weft.plan.composing.values import Graph, Hop, Level

NOTHING = Graph()


def extended(hop: Hop, below: Graph) -> Graph:
    """A way by one piece longer, at its beginning."""
    return Graph((hop, *below.hops), hop.link_us + hop.exec_us + below.us, hop.own + hop.line + below.phi)


def merged(branches: Sequence[Sequence[Graph]]) -> list[Graph]:
    """Ways of several branches together, where they agree on which site has what."""
    made = list(branches[0]) if branches else [NOTHING]
    for others in branches[1:]:
        made = [both for one in made for other in others if (both := _union(one, other)) is not None]
    return made


def _union(one: Graph, other: Graph) -> Graph | None:
    places = {hop.piece: (hop.site, hop.leans) for hop in one.hops}
    if any(places.get(hop.piece, (hop.site, hop.leans)) != (hop.site, hop.leans) for hop in other.hops):
        return None
    known = {(hop.piece, hop.before) for hop in one.hops}
    hops = (*one.hops, *(hop for hop in other.hops if (hop.piece, hop.before) not in known))
    own = {hop.piece: hop.own for hop in hops}
    return Graph(hops, max(one.us, other.us), sum(own.values()) + sum(hop.line for hop in hops))


def worth_keeping(graphs: Iterable[Graph], joins: frozenset[str], few: int) -> list[Graph]:
    """Those that no other beats in both time and price, a few for each way of placing what must agree."""
    apart: dict[tuple[tuple[str, str], ...], list[Graph]] = {}
    for graph in graphs:
        must = tuple(sorted({(hop.piece, hop.site) for hop in graph.hops if hop.piece in joins})) if joins else ()
        apart.setdefault(must, []).append(graph)
    kept: list[Graph] = []
    for some in apart.values():
        front: list[Graph] = []
        for graph in sorted(some, key=_price):
            if not front or graph.us < front[-1].us:
                front.append(graph)
        kept += front if len(front) <= few else [*front[: few - 1], front[-1]]
    return kept


def _price(graph: Graph) -> tuple[int, int, tuple[str, ...]]:
    return graph.phi, graph.us, tuple(hop.site for hop in graph.hops)


def ranked(graphs: Iterable[Graph], levels: Sequence[Level]) -> list[tuple[Level | None, Graph]]:
    """Graphs with the level each would keep: the weightiest level first (B7), then the least phi (2.5)."""
    by_price = sorted(graphs, key=_price)
    if not levels:
        return [(None, graph) for graph in by_price]
    found: list[tuple[Level | None, Graph]] = []
    taken: set[int] = set()
    for level in sorted(levels, key=lambda one: (-one.weight, one.latency_us)):
        for at, graph in enumerate(by_price):
            if at not in taken and graph.us <= level.latency_us:
                taken.add(at)
                found.append((level, graph))
    return found


def ways(graph: Graph) -> Iterator[tuple[Hop, ...]]:
    """Every way from a start to a result."""
    after: dict[str, list[Hop]] = {}
    for hop in graph.hops:
        after.setdefault(hop.before, []).append(hop)
    pieces = {hop.piece for hop in graph.hops}
    stack: list[tuple[Hop, ...]] = [(hop,) for hop in graph.hops if hop.before not in pieces]
    while stack:
        way = stack.pop()
        further = after.get(way[-1].piece)
        if further is None:
            yield way
        else:
            stack += [(*way, hop) for hop in further]


def divided(graph: Graph, limit_us: int) -> dict[str, int]:
    """How long each operator may take at its site so that every way keeps the promise, whoever comes to those sites.

    As published each site measures what comes against the whole slack of a query: two sites may spend it twice. Here it
    is divided, in proportion to what operators take now. What is shared, and links, take what they take.
    """
    factors: dict[str, tuple[int, int]] = {}
    for way in ways(graph):
        work = sum(hop.exec_us for hop in way if not hop.leans)
        fixed = sum(hop.link_us + (hop.exec_us if hop.leans else 0) for hop in way)
        if not work:
            continue
        left = max(limit_us - fixed, 0)
        for hop in way:
            above, below = factors.get(hop.piece, (left, work))
            if left * below <= above * work:
                factors[hop.piece] = (left, work)
    return {
        hop.piece: hop.exec_us * factors[hop.piece][0] // factors[hop.piece][1]
        for hop in graph.hops if hop.exec_us and not hop.leans
    }  # fmt: skip


def whole_slack(graph: Graph, limit_us: int) -> dict[str, int]:
    """The published measure: each site may use up all that is left of the promise, as if it were the only one."""
    return {hop.piece: hop.exec_us + limit_us - graph.us for hop in graph.hops if hop.exec_us and not hop.leans}


def assured(graph: Graph, bounds: Mapping[str, int]) -> dict[str, int]:
    """By when, after their sources, records of each piece's stream are there at the latest."""
    by_us: dict[str, int] = {}
    for way in ways(graph):
        at = 0
        for hop in way:
            at += hop.link_us + (hop.exec_us if hop.leans else bounds.get(hop.piece, 0))
            by_us[hop.piece] = max(by_us.get(hop.piece, 0), at)
    return by_us
