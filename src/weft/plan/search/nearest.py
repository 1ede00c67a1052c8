"""Where is each operator closest to its inputs, as capacity, pins, links and the tree rule allow?"""

from __future__ import annotations

from weft.model import Deployment, Operator, Placement, Query
from weft.plan.dataflow.graph import sink_site, stream_of, topological
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.errors import NoPlacement
from weft.plan.network.paths import Paths


def nearest(deployment: Deployment) -> Placement:
    """Operators in order, heaviest traffic first to count: least delay from their inputs on a site with room."""
    return _Near(deployment).placement()


class _Near:
    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.paths = Paths(deployment)
        self.rates = ideal_rates(deployment)
        self.room_ms = {site.name: 1000.0 * site.capacity * site.quota for site in deployment.sites}
        self.homes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    def placement(self) -> Placement:
        for query in self.deployment.queries:
            homes: dict[str, str] = {}
            for name in topological(query):
                homes[name] = self._put(query, query.operator(name), homes)
            for sink in query.sinks:
                start = homes.get(sink.from_) or self.deployment.source(sink.from_).site
                why_not = self.paths.why_not(start, sink_site(self.deployment, query, sink, homes))
                if why_not:
                    raise NoPlacement(f"query {query.name}, sink from {sink.from_}: {why_not}")
        return Placement(self.homes, reasons=self.reasons)

    def _put(self, query: Query, operator: Operator, homes: dict[str, str]) -> str:
        inputs = [(name, homes.get(name) or self.deployment.source(name).site) for name in operator.from_]
        load_ms = self.rates.load_ms[query.name, operator.name]
        refused: list[str] = []
        fitting: list[tuple[float, int, str]] = []
        full: list[tuple[float, int, str]] = []
        for rank, site in enumerate(self.deployment.sites):
            if operator.site is not None and site.name != operator.site:
                continue
            why_not = self._why_not(query, operator, inputs, site.name, homes)
            if why_not:
                refused.append(f"{site.name}: {why_not}")
                continue
            distance_ms = self._distance_ms(query, inputs, site.name)
            if operator.site is not None or self.room_ms[site.name] >= load_ms:
                fitting.append((distance_ms, rank, site.name))
            else:
                full.append((load_ms - self.room_ms[site.name], rank, site.name))
        if not fitting and not full:
            raise NoPlacement(f"operator {query.name}.{operator.name} fits nowhere: {'; '.join(refused)}")
        distance_ms, _, home = min(fitting) if fitting else min(full)
        self.room_ms[home] -= load_ms
        stream = f"{query.name}.{operator.name}"
        self.homes[stream] = home
        self.reasons[stream] = self._reason(operator, inputs, home, bool(fitting), len(full))
        return home

    def _why_not(
        self, query: Query, operator: Operator, inputs: list[tuple[str, str]], site: str, homes: dict[str, str]
    ) -> str | None:
        for _, start in inputs:
            why_not = self.paths.why_not(start, site)
            if why_not:
                return why_not
        for end in sorted(_must_reach(query, operator.name)):
            why_not = self.paths.why_not(site, end)
            if why_not:
                return f"its results are needed at {end}, but {why_not}"
        return self._no_meeting(query, operator, site, homes)

    def _no_meeting(self, query: Query, operator: Operator, site: str, homes: dict[str, str]) -> str | None:
        # An operator downstream may join this stream with others: some site must be reachable by all.
        for name in _downstream(query, operator.name):
            starts = {site, *_starts(self.deployment, query, name, homes)}
            ends = [pin] if (pin := query.operator(name).site) else [end.name for end in self.deployment.sites]
            if not any(all(self.paths.why_not(start, end) is None for start in starts) for end in ends):
                return f"{name} could not be reached by all of {', '.join(sorted(starts))}"
        return None

    def _distance_ms(self, query: Query, inputs: list[tuple[str, str]], site: str) -> float:
        total = 0.0
        for name, start in inputs:
            path = self.paths.between(start, site)
            assert path is not None, "sites without a path were refused before"
            # Rates weigh the inputs; silent ones still count a little, so that ties fall to the nearer site.
            total += path.delay_ms * (self.rates.per_s[stream_of(query, name)] + 1e-6)
            total += 1e-9 * (len(path.sites) - 1)
        return total

    def _reason(self, operator: Operator, inputs: list[tuple[str, str]], home: str, fits: bool, full: int) -> str:
        if operator.site is not None:
            return "pinned"
        if not fits:
            return "no site has room for its load; this one lacks the least"
        here = [name for name, start in inputs if start == home]
        if len(here) == len(inputs):
            return f"beside its input{'s' if len(here) > 1 else ''} {', '.join(here)}"
        nearest = "nearest site with room that" if full else "nearest site that"
        return f"{nearest} all of {', '.join(name for name, _ in inputs)} can reach"


def _downstream(query: Query, name: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for operator in query.consumers(waiting.pop()):
            if operator.name not in found:
                found[operator.name] = None
                waiting.append(operator.name)
    return tuple(found)


def _must_reach(query: Query, name: str) -> set[str]:
    """Pinned sites downstream of an operator, sinks included."""
    names = (name, *_downstream(query, name))
    pins = {query.operator(other).site for other in names[1:]} | {
        sink.site for sink in query.sinks if sink.from_ in names
    }
    return {pin for pin in pins if pin is not None}


def _starts(deployment: Deployment, query: Query, name: str, homes: dict[str, str]) -> set[str]:
    """Where the streams that an operator depends on come from: operators that are placed, else sources."""
    operators = {operator.name for operator in query.operators}
    sites: set[str] = set()
    waiting = [name]
    seen: set[str] = set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in homes:
            sites.add(homes[current])
        elif current in operators:
            waiting.extend(query.operator(current).from_)
        else:
            sites.add(deployment.source(current).site)
    return sites
