"""Worlds for composition as Synergy §2.4 sets them: sites and the ways between them, operators at sites, requests.

A request is a chain of operators from a source to the site that asks. What the document leaves open is chosen here, in
one place, and told with the rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from weft.plan.composing.values import Level, Origin, Piece, QueryPlan
from weft.protocol.composing import Ask

SECOND = 1_000_000
TRANSIT_DOMAINS, TRANSIT_ROUTERS, STUBS, STUB_ROUTERS = 6, 5, 7, 7
ROUTERS = TRANSIT_DOMAINS * TRANSIT_ROUTERS * (1 + STUBS * STUB_ROUTERS)


@dataclass(frozen=True, slots=True)
class Survey:
    """How a world is drawn."""

    sites: int = 500
    operators: int = 200
    degree: int = 5
    fewest: int = 2
    most: int = 10
    requests: int = 100
    per_s: float = 9.0
    zipf: float = 1.6
    templates: int = 100
    repeats: float | None = None
    """Where given, requests are not drawn by Zipf: this share repeats one asked before, all others differ."""
    tolerance: float = 0.30
    missing: bool = False
    """Whether each request asks for one operator that nobody has."""
    transit_stub: bool = True
    cost_ms: tuple[float, float] = (10.0, 50.0)
    rate_per_s: float = 2.0
    speeds: tuple[float, ...] = (0.5, 1.0, 2.0)
    kbps: tuple[int, ...] = (2_000, 5_000, 10_000)
    stream_kbps: int = 50


class Ways:
    """Delays between sites and what ways carry, by number."""

    def __init__(self, names: Sequence[str], delays_us: Any, kbps: Sequence[int]) -> None:
        self.at = {name: at for at, name in enumerate(names)}
        self.delays: list[list[int]] = delays_us.tolist()
        self.class_of = list(kbps)

    def delay_us(self, start: str, end: str) -> int:
        """How long a record is under way."""
        return self.delays[self.at[start]][self.at[end]]

    def kbps(self, start: str, end: str) -> int:
        """What the way carries at most: what the thinner of the two ends does."""
        return min(self.class_of[self.at[start]], self.class_of[self.at[end]])


@dataclass(frozen=True, slots=True)
class Request:
    """A query that is asked for: where, when and what."""

    site: str
    at_us: int
    ask: Ask

    @property
    def limit_us(self) -> int:
        """What it was to be promised."""
        return self.ask.levels[0].latency_us


@dataclass(frozen=True, slots=True)
class Land:
    """A world: sites with their capacities, ways, who has which operator, and requests in the order of time."""

    capacity: dict[str, int]
    ways: Ways
    hosts: dict[str, tuple[str, ...]]
    requests: tuple[Request, ...]


def drawn(setting: Survey, seed: int) -> Land:
    """One drawing."""
    rng = Random(f"composing/{seed}/{setting.sites}")
    names = [f"s{at:03}" for at in range(setting.sites)]
    delays = transit_stub(setting.sites, seed) if setting.transit_stub else plane(setting.sites, seed)
    ways = Ways(names, delays, [rng.choice(setting.kbps) for _ in names])
    capacity = {name: round(SECOND * rng.choice(setting.speeds)) for name in names}
    hosts = _hosts(setting, names, rng)
    costs = {does: round(1_000 * rng.uniform(*setting.cost_ms)) for does in [*hosts, "new"]}
    mean_us = round(float(delays.sum()) / max(1, setting.sites * (setting.sites - 1)))
    asked = Random(f"requests/{seed}/{setting.requests}/{setting.repeats}")
    return Land(capacity, ways, hosts, tuple(_requests(setting, names, hosts, costs, mean_us, asked)))


def _hosts(setting: Survey, names: list[str], rng: Random) -> dict[str, tuple[str, ...]]:
    """Operators by turns over shuffled sites, so that all sites have as many, and none one of them twice."""
    order: list[str] = []
    hosts: dict[str, tuple[str, ...]] = {}
    for at in range(setting.operators):
        chosen: list[str] = []
        while len(chosen) < min(setting.degree, len(names)):
            if not order:
                order = rng.sample(names, len(names))
            site = order.pop()
            if site not in chosen:
                chosen.append(site)
        hosts[f"o{at:03}"] = tuple(sorted(chosen))
    return hosts


def _requests(
    setting: Survey, names: list[str], hosts: dict[str, Any], costs: dict[str, int], mean_us: int, rng: Random
) -> list[Request]:
    count = setting.templates if setting.repeats is None else setting.requests
    templates = []
    for _ in range(count):
        does = [rng.choice(list(hosts)) for _ in range(rng.randint(setting.fewest, setting.most))]
        if setting.missing:
            does[rng.randrange(len(does))] = "new"
        templates.append((rng.choice(names), does))
    weights = list(accumulate((at + 1) ** -setting.zipf for at in range(count)))
    made: list[Request] = []
    used: list[tuple[str, list[str]]] = []
    fresh, at_us = iter(templates), 0.0
    for number in range(setting.requests):
        at_us += rng.expovariate(setting.per_s) * SECOND
        if setting.repeats is None:
            source, does = rng.choices(templates, cum_weights=weights)[0]
        elif used and rng.random() < setting.repeats:
            source, does = rng.choice(used)
        else:
            source, does = next(fresh)
        used.append((source, does))
        plan = chain(setting, source, does, rng.choice(names), costs)
        # In isolation: on idle sites of mean speed, over ways of mean delay.
        alone_us = sum(costs[one] for one in does) / fmean(setting.speeds) + mean_us * (len(does) + 1)
        level = Level(round((1 + setting.tolerance) * alone_us))
        made.append(Request(plan.pieces[-1].site, round(at_us), Ask(f"q{number:04}", plan, (level,))))
    return made


def chain(setting: Survey, source: str, does: list[str], sink: str, costs: dict[str, int]) -> QueryPlan:
    """A query: operators one after another, from a source to a site."""
    pieces, before, stream = [], "source", f"source@{source}"
    for at, one in enumerate(does):
        stream = f"{one}({stream})"
        load = round(costs[one] * setting.rate_per_s)
        pieces.append(Piece(f"p{at}", one, stream, (before,), costs[one], load, setting.stream_kbps))
        before = f"p{at}"
    pieces.append(Piece("out", "", "", (before,), site=sink))
    return QueryPlan(tuple(pieces), (Origin("source", source, setting.stream_kbps),))


@lru_cache(maxsize=8)
def plane(sites: int, seed: int) -> Any:
    """Delays in us between sites on a plane of 100 by 100 ms, 5 ms more for every way: a testbed over a continent."""
    rng = np.random.default_rng(seed)
    spots = rng.uniform(0, 100_000, (sites, 2))
    found = np.hypot(*(spots[:, None, :] - spots[None, :, :]).transpose(2, 0, 1)) + 5_000
    np.fill_diagonal(found, 0)
    return found.astype(np.int64)


@lru_cache(maxsize=8)
def transit_stub(sites: int, seed: int) -> Any:
    """Delays in us between sites at chance routers of a transit-stub network of 1,500 routers, by least delay."""
    rng = Random(f"routers/{seed}")
    links = _routers(rng)
    chosen = rng.sample(range(ROUTERS), sites)
    found = np.zeros((sites, sites), np.int64)
    for at, start in enumerate(chosen):
        far = _from(links, start)
        found[at] = [far[end] for end in chosen]
    return found


def _routers(rng: Random) -> list[list[tuple[int, int]]]:
    """Domains of transit routers in a ring with chords, stub domains at each router; every domain is a ring."""
    links: list[list[tuple[int, int]]] = [[] for _ in range(ROUTERS)]

    def join(one: int, other: int, least_us: int, most_us: int) -> None:
        delay = rng.randint(least_us, most_us)
        links[one].append((other, delay))
        links[other].append((one, delay))

    domains = [list(range(at * TRANSIT_ROUTERS, (at + 1) * TRANSIT_ROUTERS)) for at in range(TRANSIT_DOMAINS)]
    for at, domain in enumerate(domains):
        for one, other in zip(domain, [*domain[1:], domain[0]], strict=True):
            join(one, other, 5_000, 15_000)
        for other in {(at + 1) % len(domains), (at + 2) % len(domains)}:
            join(rng.choice(domain), rng.choice(domains[other]), 20_000, 50_000)
    next_router = TRANSIT_DOMAINS * TRANSIT_ROUTERS
    for router in range(TRANSIT_DOMAINS * TRANSIT_ROUTERS):
        for _ in range(STUBS):
            stub = list(range(next_router, next_router + STUB_ROUTERS))
            next_router += STUB_ROUTERS
            join(router, rng.choice(stub), 2_000, 8_000)
            for one, other in zip(stub, [*stub[1:], stub[0]], strict=True):
                join(one, other, 500, 3_000)
    return links


def _from(links: list[list[tuple[int, int]]], start: int) -> list[int]:
    """Least delays from a router (Dijkstra)."""
    far = [1 << 60] * len(links)
    far[start] = 0
    todo = [(0, start)]
    while todo:
        so_far, at = heapq.heappop(todo)
        if so_far > far[at]:
            continue
        for other, delay in links[at]:
            if so_far + delay < far[other]:
                far[other] = so_far + delay
                heapq.heappush(todo, (so_far + delay, other))
    return far
