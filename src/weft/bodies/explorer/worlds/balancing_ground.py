"""The ground of balancing worlds: which operators really run where, what they take, and what disks hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice
from weft.protocol import Effect, Input
from weft.protocol.balancing import (
    BalanceLimits,
    Begin,
    Check,
    Memory,
    Part,
    Refuse,
    Remember,
    Start,
    Stop,
    Stopped,
    Streams,
)

TOO_MUCH = "no site takes what it has no room for"
TOO_LITTLE = "no site gives so much that it falls below its target"
STALE = "what is handed over is told as it was last seen"
FAULTS = (TOO_MUCH, TOO_LITTLE, STALE)

Loads = tuple[int, ...]
_write = msgspec.msgpack.Encoder(order="deterministic").encode
_read = cache(msgspec.msgpack.Decoder(Memory).decode)


class Changed(Input, frozen=True):
    """An operator takes more or less from now on; its site will see it at the next look."""

    operator: str
    loads: Loads


class Tree:
    """A tree with operators: `sites` as "r a<r b<r", operators as "x@a=30<s,t", pinned ones as "s@a!".

    `changes` are loads that operators may come to have, in order; `checks` is how often each site looks, once unless
    it says otherwise. `ends` are the placements it may come to where nothing goes wrong; `only` says what sites do,
    where they do not do both: "offer", "demand" or "nothing".
    """

    def __init__(
        self,
        sites: str,
        operators: str,
        changes: str = "",
        checks: str = "",
        capacity: Loads = (100,),
        ends: tuple[str, ...] = (),
        only: str = "",
    ) -> None:
        parents = [site.partition("<") for site in sites.split()]
        self.parent = {site: parent for site, _, parent in parents}
        self.children = {site: tuple(one for one, up in self.parent.items() if up == site) for site in self.parent}
        self.homes: dict[str, str] = {}
        self.loads: dict[str, Loads] = {}
        inputs: dict[str, tuple[str, ...]] = {}
        for text in operators.split():
            head, _, read = text.partition("<")
            name, _, rest = head.partition("@")
            self.homes[name], _, load = rest.rstrip("!").partition("=")
            self.loads[name] = _loads(load) if load else (0,) * len(capacity)
            inputs[name] = tuple(read.split(",")) if read else ()
        self.streams = Streams(inputs, frozenset(text.partition("@")[0] for text in operators.split() if "!" in text))
        self.changes = tuple((one.partition("=")[0], _loads(one.partition("=")[2])) for one in changes.split())
        times = dict(one.split("*") for one in checks.split())
        self.checks = tuple((site, int(times.get(site, 1))) for site in self.parent)
        self.limits = BalanceLimits(capacity=capacity)
        self.ends, self.only = frozenset(ends), only

    def above(self, site: str) -> Iterator[str]:
        """A site and all on its way to the root."""
        while site:
            yield site
            site = self.parent[site]

    def memory(self, site: str) -> Memory:
        """What a site knows at the start."""
        here = {operator: self.loads[operator] for operator, home in sorted(self.homes.items()) if home == site}
        below = {}
        for operator, home in self.homes.items():
            way = list(self.above(home))
            if site in way[1:]:
                below[operator] = way[way.index(site) - 1]
        return Memory(here, below)


class Land(msgspec.Struct, frozen=True):
    """What really is; sites look a few times, and loads change in between or not."""

    case: Any
    runs: tuple[tuple[str, str], ...]
    disks: tuple[tuple[str, bytes], ...]
    loads: tuple[tuple[str, Loads], ...]
    known: tuple[tuple[str, Loads], ...]
    checks: tuple[tuple[str, int], ...]
    changed: int = 0
    stopping: tuple[tuple[str, str, int, tuple[str, ...]], ...] = ()
    down: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    declined: bool = False
    refused: bool = False
    fault: str = ""

    def memory(self, site: str) -> Memory:
        """What a site's disk holds."""
        return _read(dict(self.disks)[site])

    def perform(self, site: str, effect: Effect) -> Land:
        """The ground after an effect."""
        match effect:
            case Remember():
                return self.written(site, effect)
            case Stop(peer, serial, operators):
                stopping = tuple(sorted((*self.stopping, (site, peer, serial, operators))))
                again = (site, peer, serial, operators) in self.stopping
                return self.but(stopping=stopping, fault=self.fault if again else self.gives(site, stopping))
            case Start(operators):
                return self.but(runs=tuple(sorted({*self.runs, *((operator, site) for operator in operators)})))
            case Refuse():
                return self.but(refused=True)
        return self

    def written(self, site: str, what: Remember) -> Land:
        """The ground with one disk written."""
        memory = self.memory(site).after(what, self.case.parent[site])
        disks = tuple((name, _write(memory) if name == site else held) for name, held in self.disks)
        fault = self.fault
        if what.verb == "took":
            known = dict(self.known)
            sums = tuple(sum(one) for one in zip(*(known[operator] for operator in memory.here), strict=True))
            if any(a > b for a, b in zip(sums, self.case.limits.thresholds().most, strict=True)):
                fault = TOO_MUCH
            if any(known[part.operator] != part.loads for part in what.operators):
                fault = STALE
        return self.but(disks=disks, fault=fault, declined=self.declined or what.verb == "declined")

    def gives(self, site: str, stopping: Any) -> str:
        """What is wrong with what a site gives, as far as it can know."""
        if self.changed and self.case.only != "offer":
            return self.fault
        leaves = {operator for where, _, _, operators in stopping if where == site for operator in operators}
        known = dict(self.known)
        rest = [known[operator] for operator in self.memory(site).here if operator not in leaves]
        sums = tuple(sum(one) for one in zip(*rest, strict=True)) if rest else self.case.limits.capacity
        below = [a < b for a, b in zip(sums, self.case.limits.thresholds().target, strict=True)]
        return TOO_LITTLE if all(below) else self.fault

    def choices(self) -> Iterator[Choice]:
        """What may come next: operators end, sites look or come up, loads change."""
        for one in self.stopping:
            site, peer, serial, operators = one
            at = self.stopping.index(one)
            # What was asked to stop twice stops once, and says so twice.
            others = (*self.stopping[:at], *self.stopping[at + 1 :])
            rest = tuple(sorted((*other[:3], ()) if other == one else other for other in others))
            runs = tuple(run for run in self.runs if run not in [(operator, site) for operator in operators])
            yield Choice(site, Stopped(peer, serial), self.but(stopping=rest, runs=runs))
        for site in self.down:
            yield Choice(site, Begin(), self.but(down=tuple(other for other in self.down if other != site)))
        for site, times in self.checks:
            if times:
                yield Choice(site, self.seen(site), self.looked(site, times - 1))
        if self.changed < len(self.case.changes):
            operator, loads = self.case.changes[self.changed]
            now = tuple(sorted({**dict(self.loads), operator: loads}.items()))
            after = self.but(loads=now, changed=self.changed + 1)
            yield Choice(self.case.homes[operator], Changed(operator, loads), after, due=False, heard=False)

    def seen(self, site: str) -> Check:
        """What a site sees when it looks."""
        now = dict(self.loads)
        return Check(tuple(Part(operator, now[operator]) for operator in self.memory(site).here))

    def looked(self, site: str, left: int) -> Land:
        """The ground after a site has looked: what it saw is what it counts with."""
        known = {**dict(self.known), **{part.operator: part.loads for part in self.seen(site).loads}}
        checks = tuple((name, left if name == site else times) for name, times in self.checks)
        blind = tuple(one for one in self.blind if one != site)
        return self.but(checks=checks, known=tuple(sorted(known.items())), blind=blind)

    def crash(self, site: str) -> Land:
        """Nothing runs there any more, until it comes up again."""
        return self.but(
            runs=tuple(run for run in self.runs if run[1] != site),
            stopping=tuple(one for one in self.stopping if one[0] != site),
            down=tuple(sorted({*self.down, site})),
            blind=tuple(sorted({*self.blind, site})),
        )

    def but(self, **changes: Any) -> Land:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def land(case: Tree) -> Land:
    """The ground of a case at its start."""
    return Land(
        case,
        tuple(sorted(case.homes.items())),
        tuple((site, _write(case.memory(site))) for site in case.parent),
        tuple(sorted(case.loads.items())),
        tuple(sorted(case.loads.items())),
        case.checks,
    )


def _loads(text: str) -> Loads:
    return tuple(int(one) for one in text.split("/"))
