"""What balances in a deployment? Its tree of sites, what may move in it, and the units in which loads count.

Operators bear the names of their streams; sources and sinks take part under names of their own, and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from weft.model import Balance, Deployment, MoveAt, dataflow
from weft.plan.dataflow.rates import cost_ms
from weft.protocol.balancing.eras import BalanceFrom, Declared
from weft.protocol.balancing.loads import Amounts, BalanceLimits
from weft.protocol.balancing.memory import Memory
from weft.protocol.balancing.selection import Streams

CPU_UNITS = 1_000_000  # microseconds of work a second, at capacity 1
MEMORY_KB_MAX = 1 << 40  # of a site that names no memory
AGAIN_MS = 1_000
"""How long after a move that did not come about it is asked for again."""
MARK = "balance:"


def balancer_name(site: str) -> str:
    """How the balancer of a site is called, in stories too."""
    return MARK + site


def balanced_site(name: str) -> str:
    """The site of a balancer."""
    return name.removeprefix(MARK)


def amounts(
    resources: Iterable[str], records: float, cost_ms: float, state_kb: float, seconds: float
) -> tuple[int, ...]:
    """What an operator takes of each resource, if so many records came to it in so many seconds."""
    each = {"cpu": round(records * cost_ms * 1000 / seconds), "memory": round(state_kb)}
    return tuple(each[one] for one in resources)


class BalancedTree:
    """What balancers are told before records flow: `homes` says where operators run, `shared` which run several times.

    What an operator that the scenario moves has to do with stays where it is, and so does what the file pins.
    """

    __slots__ = ("_deployment", "_operators", "_parent", "_places", "balance", "sites", "streams")

    def __init__(
        self, balance: Balance, deployment: Deployment, homes: Mapping[str, str], shared: Collection[str] = ()
    ) -> None:
        self.balance = balance
        self._deployment = deployment
        self._parent = {site.name: site.parent or "" for site in deployment.sites}
        above = set(self._parent.values())
        self.sites = tuple(sorted(site for site, up in self._parent.items() if up or site in above))
        self._operators = {f"{query.name}.{one.name}": one for query in deployment.queries for one in query.operators}
        self._places, self.streams = self._read(homes, shared)

    def _read(self, homes: Mapping[str, str], shared: Collection[str]) -> tuple[dict[str, str], Streams]:
        """Where operators, sources and sinks are, and which read which; what cannot move is pinned."""
        sources = self._deployment.sources
        places = {f"source {source.name}": source.site for source in sources} | dict(homes)
        inputs: dict[str, tuple[str, ...]] = {f"source {source.name}": () for source in sources}
        pinned = set(inputs)
        moved = {what.move.partition(".")[0] for what in self._deployment.scenario if isinstance(what, MoveAt)}
        flow = dataflow(self._deployment)
        for query in self._deployment.queries:
            for operator in query.operators:
                name = f"{query.name}.{operator.name}"
                inputs[name] = tuple(one if flow.makes(one) else f"source {one}" for one in flow.node(name).inputs)
                if operator.site or name in shared or query.name in moved or homes[name] not in self.sites:
                    pinned.add(name)
            for at, sink in enumerate(query.sinks):
                if sink.site is not None:
                    name = f"sink {query.name} {at}"
                    places[name], inputs[name] = sink.site, (f"{query.name}.{sink.from_}",)
                    pinned.add(name)
        return places, Streams(inputs, frozenset(pinned))

    def parent(self, site: str) -> str:
        """The site above, "" at a root."""
        return self._parent[site]

    def children(self, site: str) -> tuple[str, ...]:
        """The sites right below."""
        return tuple(sorted(child for child, up in self._parent.items() if up == site))

    def memory(self, site: str, address: Callable[[str], str]) -> Memory:
        """What a site's balancer begins with; `address` names the balancer of a child."""
        here = {name: self.load(name, 0) for name, home in sorted(self._places.items()) if home == site}
        below = {}
        for name, home in self._places.items():
            way = list(self._above(home))
            if site in way[1:]:
                below[name] = address(way[way.index(site) - 1])
        return Memory(here, below)

    def _above(self, site: str) -> Iterator[str]:
        while site:
            yield site
            site = self._parent[site]

    def limits(self, site: str) -> BalanceLimits:
        """The capacity of a site and its marks, in the units of `load`."""
        told = self._deployment.site(site)
        memory_kb = round(told.memory_mb * 1024) if told.memory_mb else MEMORY_KB_MAX
        each = {"cpu": round(told.capacity * CPU_UNITS), "memory": memory_kb}
        marks = (round(1000 * mark) for mark in (self.balance.low, self.balance.target, self.balance.high))
        return BalanceLimits(tuple(each[one] for one in self.resources), *marks)

    @property
    def resources(self) -> tuple[str, ...]:
        """What counts as load."""
        return ("cpu", "memory") if self.balance.measure == "both" else (self.balance.measure,)

    def load(self, name: str, records: int) -> Amounts:
        """What an operator takes of each resource, if so many records came to it in a period."""
        told = self._operators.get(name)
        if told is None:
            return (0,) * len(self.resources)
        return amounts(self.resources, records, cost_ms(told), told.state_kb, self.balance.period_s)

    def beginning(self, site: str, era: int) -> BalanceFrom:
        """What a desk tells a site to begin an era with."""
        declared = {
            name: Declared(None if one.cost_ms is None else one.cost_ms.mean_ms, one.state_kb)
            for name, one in self._operators.items()
        }
        return BalanceFrom(
            era, self.parent(site), self.children(site), self.streams, self.memory(site, balancer_name),
            self.limits(site), self.resources, declared, self.balance.period_s,
        )  # fmt: skip

    def in_order(self, operators: Iterable[str], giver: str, taker: str) -> list[str]:
        """Operators in the order in which they move, so that in between, too, streams flow upwards: going up, readers
        go first."""
        order = sorted(operators, key=lambda name: sum(1 for _ in self._upstream(name)))
        return order if self._parent[taker] == giver else order[::-1]

    def _upstream(self, name: str) -> Iterator[str]:
        for read in self.streams.inputs[name]:
            yield read
            yield from self._upstream(read)


def asks_again(runs_at: str, taken_to: str, to: str) -> bool:
    """True if a move that did not come about is still owed: a balancer took the operator, and it runs elsewhere."""
    return runs_at != to and taken_to == to
