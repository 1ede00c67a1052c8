"""Where do backups stand? Few sites, never two replicas of one operator on one, near the primaries (Synergy §4.3-4.4).

A query is up while every operator has a replica, so replicas belong together: on as few sites as resources allow. A
primary needs its load and the bandwidth of its streams; a backup takes the output of its primary and no load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random

from weft.model import Dataflow, Deployment, Node, Placement, dataflow
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.record_sizes import record_bytes
from weft.plan.errors import NoPlacement
from weft.plan.network.paths import Paths
from weft.spec import after_what_they_read

ReplicaPlanner = Callable[[Deployment, int, Random], Placement]


class _Room:
    """What sites and paths have left."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.paths = Paths(deployment)
        self.flow = dataflow(deployment)
        self.rates = ideal_rates(deployment)
        self.bytes = record_bytes(deployment, self.rates)
        self.left_ms = {site.name: 1000.0 * site.capacity * site.quota for site in deployment.sites}
        self.left_kbps: dict[tuple[str, str], float] = {}

    def kbps(self, stream: str) -> float:
        return self.rates.per_s[stream] * self.bytes[stream] * 8 / 1000

    def delay_ms(self, start: str, end: str) -> float:
        path = self.paths.between(start, end)
        return float("inf") if path is None else path.delay_ms

    def fits(self, start: str, end: str, kbps: float) -> bool:
        """Whether a stream may flow and every link on its way has room for it."""
        if self.paths.why_not(start, end) is not None:
            return False
        return all(self._left(way) >= kbps for way in self._ways(start, end))

    def send(self, start: str, end: str, kbps: float) -> None:
        for way in self._ways(start, end):
            self.left_kbps[way] = self._left(way) - kbps

    def _left(self, way: tuple[str, str]) -> float:
        width = self.paths.link(*way).bandwidth_kbps
        return self.left_kbps.get(way, float("inf") if width is None else width)

    def _ways(self, start: str, end: str) -> list[tuple[str, str]]:
        path = self.paths.between(start, end)
        sites = () if path is None else path.sites
        return list(pairwise(sites))


def collocated(deployment: Deployment, degree: int, rng: Random) -> Placement:
    """Synergy's: primaries, then backups, on the closest sites the query uses already, else on the closest."""
    return _placed(deployment, degree, lambda used, distance: (not used, distance))


def with_backups(deployment: Deployment, placement: Placement, degree: int) -> Placement:
    """Backups for primaries that are placed already: on the closest sites that their query uses, else the closest."""
    _check(deployment, degree)
    room = _Room(deployment)
    backups: dict[str, tuple[str, ...]] = {}
    for query in deployment.queries:
        nodes = room.flow.owned(query.name)
        used = {placement.home(node.stream) for node in nodes}
        for node in nodes:
            home = placement.home(node.stream)
            backups[node.stream] = _backups(room, node.stream, home, degree, used, lambda used, far: (not used, far))
            used.update(backups[node.stream])
    return replace(placement, backups=backups)


def by_latency(deployment: Deployment, degree: int, rng: Random) -> Placement:
    """Network delay alone: the closest site, used or not."""
    return _placed(deployment, degree, lambda used, distance: (False, distance))


def by_chance(deployment: Deployment, degree: int, rng: Random) -> Placement:
    """Any sites with room, drawn anew for every replica."""
    return _placed(deployment, degree, lambda used, distance: (False, rng.random()))


def partitioned(deployment: Deployment, degree: int, rng: Random) -> Placement:
    """Sites in fixed groups of `degree`, all replicas of an operator in one group drawn by chance (as RAID-1)."""
    _check(deployment, degree)
    names = [site.name for site in deployment.sites]
    rng.shuffle(names)
    groups = [names[at : at + degree] for at in range(0, len(names) - degree + 1, degree)]
    sites = {}
    for query in deployment.queries:
        for operator in query.operators:
            group = list(rng.choice(groups))
            if operator.site is not None:
                group = [operator.site, *(name for name in group if name != operator.site)][:degree]
            else:
                rng.shuffle(group)
            sites[f"{query.name}.{operator.name}"] = tuple(group)
    return _replicated(sites, "a group of sites, drawn by chance")


def optimal(deployment: Deployment, degree: int, rng: Random) -> Placement:
    """All primaries of a query on one site, all backups on each of the next: the bound, resources left aside."""
    _check(deployment, degree)
    sites = {}
    for query in deployment.queries:
        room = _Room(deployment)
        start = _start(room.flow, query.name)
        near = sorted((site.name for site in deployment.sites), key=lambda name: room.delay_ms(start, name))
        for operator in query.operators:
            sites[f"{query.name}.{operator.name}"] = tuple(near[:degree])
    return _replicated(sites, "one site for all primaries, one for all backups")


REPLICA_PLANNERS: dict[str, ReplicaPlanner] = {
    "collocated": collocated, "optimal": optimal, "random": by_chance, "partition": partitioned, "latency": by_latency,
}  # fmt: skip


def _check(deployment: Deployment, degree: int) -> None:
    if not 1 <= degree <= len(deployment.sites):
        raise NoPlacement(f"{degree} replicas need as many sites; there are {len(deployment.sites)}")


def _start(flow: Dataflow, query: str) -> str:
    """The site of the first source that a query's results come from."""
    stream = flow.owned(query)[0].stream
    while flow.makes(stream):
        stream = flow.node(stream).inputs[0]
    return flow.sources[stream].site


def _placed(deployment: Deployment, degree: int, rank: Callable[[bool, float], tuple[bool, float]]) -> Placement:
    _check(deployment, degree)
    room = _Room(deployment)
    sites: dict[str, tuple[str, ...]] = {}
    homes: dict[str, str] = {}
    for query in (deployment.queries[at].name for at in after_what_they_read(deployment.queries)):
        used: set[str] = set()
        for node in room.flow.owned(query):
            homes[node.stream] = _primary(room, node, homes, used, rank)
            used.add(homes[node.stream])
        for node in room.flow.owned(query):
            backups = _backups(room, node.stream, homes[node.stream], degree, used, rank)
            sites[node.stream] = (homes[node.stream], *backups)
            used.update(backups)
    return _replicated(sites, "beside others of its query, as far as resources allow")


def _replicated(sites: Mapping[str, tuple[str, ...]], reason: str) -> Placement:
    """Each operator at home on the first of its sites, with backups on the others."""
    return Placement(
        {stream: one[0] for stream, one in sites.items()},
        backups={stream: one[1:] for stream, one in sites.items()},
        reasons=dict.fromkeys(sites, reason),
    )


def _primary(
    room: _Room, node: Node, homes: dict[str, str], used: set[str],
    rank: Callable[[bool, float], tuple[bool, float]],
) -> str:  # fmt: skip
    """§4.4 steps 1-4: candidates with room for the load and for every input, the closest used ones first.

    Where an operator has several upstreams, its site is the one closest to them together.
    """
    # Of queries that read each other one is placed first, without what it reads of the other.
    placed = [stream for stream in node.inputs if stream in homes or not room.flow.makes(stream)]
    inputs = [(room.flow.site_of(stream, homes), room.kbps(stream)) for stream in placed]
    operator, load_ms = node.operator, room.rates.load_ms[node.stream]
    found: list[tuple[bool, float, int, str]] = []
    for at, site in enumerate(room.deployment.sites):
        if operator.site not in (None, site.name):
            continue
        enough = room.left_ms[site.name] >= load_ms or operator.site is not None
        if enough and all(room.fits(start, site.name, kbps) for start, kbps in inputs):
            distance = sum(room.delay_ms(start, site.name) for start, _ in inputs)
            found.append((*rank(site.name in used, distance), at, site.name))
    if not found:
        raise NoPlacement(f"operator {node.stream} fits nowhere: no site has {load_ms:.0f} ms/s and links left")
    home = min(found)[-1]
    room.left_ms[home] -= load_ms
    for start, kbps in inputs:
        room.send(start, home, kbps)
    return home


def _backups(
    room: _Room, stream: str, home: str, degree: int, used: set[str],
    rank: Callable[[bool, float], tuple[bool, float]],
) -> tuple[str, ...]:  # fmt: skip
    """§4.4 step 5: the closest used candidates, then the closest, that the primary's output can reach."""
    kbps = room.kbps(stream)
    chosen = [home]
    while len(chosen) < degree:
        found = [
            (*rank(site.name in used, room.delay_ms(home, site.name)), at, site.name)
            for at, site in enumerate(room.deployment.sites)
            if site.name not in chosen and room.fits(home, site.name, kbps)
        ]
        if not found:
            raise NoPlacement(f"operator {stream}: no site left for replica {len(chosen) + 1} of {degree}")
        chosen.append(min(found)[-1])
        used.add(chosen[-1])
        room.send(home, chosen[-1], kbps)
    return tuple(chosen[1:])
