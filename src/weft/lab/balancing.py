"""Tree balancing over many periods: operators grow and shrink on a tree of sites, with and without the balancers.

The setting of Neighbor §4: only the control plane runs, in the twin's virtual time; memory is what counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import fmean, pstdev

from weft.bodies.twin.control.carrier import Carrier
from weft.protocol import Effect
from weft.protocol.balancing import (
    BalanceLimits,
    Balancer,
    Begin,
    Check,
    Memory,
    Part,
    Start,
    Stop,
    Stopped,
    Streams,
)

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What the document gives, and below it what it leaves open."""

    sites: int = 15
    operators: int = 360
    period_s: int = 5
    timespan_s: int = 16
    growth_mean: float = 2.0
    half_s: int = 480
    log_s: int = 2
    start_s: int = 2
    low: int = 400
    target: int = 500
    high: int = 600
    capacity: int = 290
    size_min: int = 2
    size_max: int = 8
    chain: int = 3
    message_ms: float = 5.0
    stop_ms: float = 100.0


@dataclass(slots=True)
class Log:
    """Utilisations of all sites, every two seconds; and what was moved and said."""

    utilisations: list[list[float]] = field(default_factory=list)
    moves: int = 0
    messages: int = 0

    def overloaded(self, high: float) -> list[int]:
        """How many sites are overloaded at each moment."""
        return [sum(one > high for one in moment) for moment in self.utilisations]

    def overload(self, high: float) -> float:
        """Utilisation above the mark, summed over sites and moments."""
        return sum(max(0.0, one - high) for moment in self.utilisations for one in moment)

    def means(self) -> list[float]:
        """The mean utilisation at each moment."""
        return [fmean(moment) for moment in self.utilisations]

    def deviations(self) -> list[float]:
        """The standard deviation over sites at each moment."""
        return [pstdev(moment) for moment in self.utilisations]


@dataclass(frozen=True, slots=True)
class Workload:
    """One drawing: where operators start, which read which, and how each grows and shrinks second by second."""

    homes: dict[str, int]
    sizes: dict[str, int]
    inputs: dict[str, tuple[str, ...]]
    changes: tuple[tuple[int, str, int], ...]


def parent(site: int) -> int:
    """The parent in a perfect binary tree whose root is 0; -1 above the root."""
    return (site - 1) // 2 if site else -1


def depth(site: int) -> int:
    """How far a site is from the root."""
    return 0 if site == 0 else 1 + depth(parent(site))


def leaf_below(site: int, setting: Setting, rng: Random) -> int:
    """A leaf under a site, by chance."""
    while 2 * site + 2 < setting.sites:
        site = 2 * site + rng.choice((1, 2))
    return site


def draw(setting: Setting, seed: int) -> Workload:
    """Operators at sites by chance, again until no site starts overloaded; chains follow streams from leaf to root."""
    rng = Random(seed)
    while True:
        homes = {f"o{number:03}": rng.randrange(setting.sites) for number in range(setting.operators)}
        sizes = {operator: rng.randint(setting.size_min, setting.size_max) for operator in homes}
        loads = [sum(sizes[one] for one, home in homes.items() if home == site) for site in range(setting.sites)]
        if max(loads) * 1000 <= setting.high * setting.capacity:
            break
    leaves = {operator: leaf_below(home, setting, rng) for operator, home in homes.items()}
    inputs: dict[str, tuple[str, ...]] = {f"s{leaf}": () for leaf in sorted(set(leaves.values()))}
    for leaf in sorted(set(leaves.values())):
        group = [operator for operator in homes if leaves[operator] == leaf]
        rng.shuffle(group)
        for at in range(0, len(group), setting.chain):
            before = f"s{leaf}"
            for operator in sorted(group[at : at + setting.chain], key=lambda one: -depth(homes[one])):
                inputs[operator] = (before,)
                before = operator
    return Workload(homes, sizes, inputs, tuple(_changes(setting, sorted(homes), rng)))


def _changes(setting: Setting, operators: list[str], rng: Random) -> list[tuple[int, str, int]]:
    """Every timespan another operator grows each second; in the second half, those that grew shrink."""
    grown: dict[str, int] = {}
    made: list[tuple[int, str, int]] = []
    for begin in range(setting.start_s, 2 * setting.half_s, setting.timespan_s):
        grows = begin < setting.half_s
        if not grows and not any(grown.values()):
            break
        operator = rng.choice(operators if grows else sorted(one for one, by in grown.items() if by))
        for second in range(begin, begin + setting.timespan_s):
            by = _poisson(setting.growth_mean, rng)
            if not grows:
                by = -min(by, grown[operator])
            grown[operator] = grown.get(operator, 0) + by
            made.append((second, operator, by))
    return made


def _poisson(mean: float, rng: Random) -> int:
    """Counts arrivals within one unit of time."""
    count, at = 0, rng.expovariate(mean)
    while at < 1.0:
        count += 1
        at += rng.expovariate(mean)
    return count


class Run:
    """One run of a workload, with balancers or without."""

    def __init__(self, setting: Setting, work: Workload, balanced: bool) -> None:
        self.setting, self.work = setting, work
        self.homes = {operator: str(home) for operator, home in work.homes.items()}
        self.sizes = dict(work.sizes)
        self.log = Log()
        self.carrier = Carrier(self._delay_ns, self._perform, 0)
        for second, operator, by in work.changes:
            self.carrier.at(second * NS_PER_S, partial(self._grow, operator, by))
        for second in range(0, 2 * setting.half_s + 1, setting.log_s):
            self.carrier.at(second * NS_PER_S, self._note)
        if balanced:
            self._balance()

    def _balance(self) -> None:
        setting, work = self.setting, self.work
        pinned = frozenset(one for one in work.inputs if one.startswith("s"))
        streams = Streams(work.inputs, pinned)
        places = {**work.homes, **{source: int(source[1:]) for source in pinned}}
        limits = BalanceLimits((setting.capacity,), setting.low, setting.target, setting.high)
        for site in range(setting.sites):
            here: dict[str, tuple[int, ...]] = {}
            here |= {operator: (self.sizes.get(operator, 0),) for operator, at in sorted(places.items()) if at == site}
            below = {operator: str(_side(at, site)) for operator, at in places.items() if _side(at, site) >= 0}
            children = tuple(str(one) for one in (2 * site + 1, 2 * site + 2) if one < setting.sites)
            up = str(parent(site)) if site else ""
            self.carrier.add(Balancer(str(site), up, children, streams, Memory(here, below), limits))
            self.carrier.feed(str(site), Begin())
            # Sites do not look in step: each begins its period a little after the one before.
            offset_ns = site * setting.period_s * NS_PER_S // setting.sites
            for second in range(setting.period_s, 2 * setting.half_s, setting.period_s):
                self.carrier.at(second * NS_PER_S + offset_ns, partial(self._check, str(site)))

    def _check(self, site: str) -> None:
        machine = self.carrier.machines[site]
        assert isinstance(machine, Balancer)
        loads = tuple(Part(operator, (self.sizes.get(operator, 0),)) for operator in machine.memory.here)
        self.carrier.take(site, Check(loads))

    def _delay_ns(self, sender: str, to: str) -> int:
        self.log.messages += 1
        return round(self.setting.message_ms * 1_000_000)

    def _perform(self, site: str, effect: Effect) -> None:
        match effect:
            case Stop(peer=peer, serial=serial):
                self.carrier.feed(site, Stopped(peer, serial), round(self.setting.stop_ms * 1_000_000))
            case Start(operators=operators, giver=giver) if giver:
                self.log.moves += len(operators)
                self.homes.update(dict.fromkeys(operators, site))

    def _grow(self, operator: str, by: int) -> None:
        self.sizes[operator] += by

    def _note(self) -> None:
        used = dict.fromkeys(map(str, range(self.setting.sites)), 0)
        for operator, home in self.homes.items():
            used[home] += self.sizes[operator]
        self.log.utilisations.append([one / self.setting.capacity for one in used.values()])

    def run(self) -> Log:
        """Runs to the end."""
        until_ns = 2 * self.setting.half_s * NS_PER_S
        while (due_ns := self.carrier.next_ns()) is not None and due_ns <= until_ns:
            self.carrier.step()
        return self.log


def _side(site: int, of: int) -> int:
    """The child of a site under which another lies; -1 where it lies elsewhere."""
    while site > 0:
        if parent(site) == of:
            return site
        site = parent(site)
    return -1


def pair(setting: Setting, seed: int) -> tuple[Log, Log]:
    """One workload without and with balancing."""
    work = draw(setting, seed)
    return Run(setting, work, balanced=False).run(), Run(setting, work, balanced=True).run()
