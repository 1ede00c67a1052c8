"""Where is each operator closest to its inputs, as capacity, pins, links and the tree rule allow?"""

from __future__ import annotations

from weft.model import Dataflow, Deployment, Node, Placement, dataflow
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.errors import NoPlacement
from weft.plan.network.paths import Paths


def nearest(deployment: Deployment) -> Placement:
    """Operators in order, heaviest traffic first to count: least delay from their inputs on a site with room."""
    return _Near(deployment).placement()


class _Near:
    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.flow = dataflow(deployment)
        self.paths = Paths(deployment)
        self.rates = ideal_rates(deployment)
        self.room_ms = {site.name: 1000.0 * site.capacity * site.quota for site in deployment.sites}
        self.homes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}

    def placement(self) -> Placement:
        for node in self.flow.nodes:
            self._put(node)
        for outlet in self.flow.outlets:
            start = self.flow.site_of(outlet.stream, self.homes)
            why_not = self.paths.why_not(start, outlet.site(self.flow, self.homes))
            if why_not:
                raise NoPlacement(f"query {outlet.query}, sink from {outlet.sink.from_}: {why_not}")
        return Placement(self.homes, reasons=self.reasons)

    def _put(self, node: Node) -> None:
        operator = node.operator
        inputs = [(stream, self.flow.site_of(stream, self.homes)) for stream in node.inputs]
        load_ms = self.rates.load_ms[node.stream]
        below = self.flow.downstream(node.stream)
        must_reach = _must_reach(self.flow, node, below)
        refused: list[str] = []
        fitting: list[tuple[float, int, str]] = []
        full: list[tuple[float, int, str]] = []
        for rank, site in enumerate(self.deployment.sites):
            if operator.site is not None and site.name != operator.site:
                continue
            why_not = self._why_not(inputs, site.name, must_reach, below)
            if why_not:
                refused.append(f"{site.name}: {why_not}")
                continue
            distance_ms = self._distance_ms(inputs, site.name)
            if operator.site is not None or self.room_ms[site.name] >= load_ms:
                fitting.append((distance_ms, rank, site.name))
            else:
                full.append((load_ms - self.room_ms[site.name], rank, site.name))
        if not fitting and not full:
            raise NoPlacement(f"operator {node.stream} fits nowhere: {'; '.join(refused)}")
        distance_ms, _, home = min(fitting) if fitting else min(full)
        self.room_ms[home] -= load_ms
        self.homes[node.stream] = home
        self.reasons[node.stream] = self._reason(node, home, bool(fitting), len(full))

    def _why_not(
        self, inputs: list[tuple[str, str]], site: str, must_reach: list[str], below: tuple[Node, ...]
    ) -> str | None:
        for _, start in inputs:
            why_not = self.paths.why_not(start, site)
            if why_not:
                return why_not
        for end in must_reach:
            why_not = self.paths.why_not(site, end)
            if why_not:
                return f"its results are needed at {end}, but {why_not}"
        return self._no_meeting(site, below)

    def _no_meeting(self, site: str, below: tuple[Node, ...]) -> str | None:
        # An operator downstream may join this stream with others: some site must be reachable by all.
        for node in below:
            starts = {site, *self._starts(node)}
            ends = [pin] if (pin := node.operator.site) else [end.name for end in self.deployment.sites]
            if not any(all(self.paths.why_not(start, end) is None for start in starts) for end in ends):
                return f"{node.operator.name} could not be reached by all of {', '.join(sorted(starts))}"
        return None

    def _starts(self, node: Node) -> set[str]:
        """Where the streams that an operator depends on come from: operators that are placed, else sources."""
        sites: set[str] = set()
        waiting = [node.stream]
        seen: set[str] = set()
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in self.homes:
                sites.add(self.homes[current])
            elif self.flow.makes(current):
                waiting.extend(self.flow.node(current).inputs)
            else:
                sites.add(self.flow.sources[current].site)
        return sites

    def _distance_ms(self, inputs: list[tuple[str, str]], site: str) -> float:
        total = 0.0
        for stream, start in inputs:
            path = self.paths.between(start, site)
            assert path is not None, "sites without a path were refused before"
            # Rates weigh the inputs; silent ones still count a little, so that ties fall to the nearer site.
            total += path.delay_ms * (self.rates.per_s[stream] + 1e-6)
            total += 1e-9 * (len(path.sites) - 1)
        return total

    def _reason(self, node: Node, home: str, fits: bool, full: int) -> str:
        if node.operator.site is not None:
            return "pinned"
        if not fits:
            return "no site has room for its load; this one lacks the least"
        names = node.operator.from_
        starts = [self.flow.site_of(stream, self.homes) for stream in node.inputs]
        if all(start == home for start in starts):
            return f"beside its input{'s' if len(names) > 1 else ''} {', '.join(names)}"
        nearest = "nearest site with room that" if full else "nearest site that"
        return f"{nearest} all of {', '.join(names)} can reach"


def _must_reach(flow: Dataflow, node: Node, below: tuple[Node, ...]) -> list[str]:
    """Pinned sites downstream of an operator, sinks included, sorted."""
    pins = {one.operator.site for one in below}
    pins |= {outlet.sink.site for one in (node, *below) for outlet in flow.shown(one.stream)}
    return sorted(pin for pin in pins if pin is not None)
