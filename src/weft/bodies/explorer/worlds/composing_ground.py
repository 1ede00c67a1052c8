"""What is really so around composers and keepers: what disks hold, what runs, the directory, what was told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice
from weft.plan.composing.graphs import divided
from weft.plan.composing.values import Graph, Hop, Level, Origin, Piece, QueryPlan
from weft.protocol import Effect
from weft.protocol.composing import (
    Admitted,
    Decided,
    End,
    Find,
    Forget,
    Found,
    Gone,
    Hosts,
    Instance,
    Kept,
    Note,
    Refused,
    Remember,
    Run,
    Strike,
)

DELAY_US = 1_000
Bounds = Callable[[Graph, int], dict[str, int]]
UNWRITTEN = "a query is admitted only when that is written down"
TAKEN_BACK = "a query that was admitted is not refused"
UNNAMED = "a refusal says what would break, and where"
FAULTS = (UNWRITTEN, TAKEN_BACK, UNNAMED)


class Roads:
    """All sites are as far from one another; what a way carries may differ."""

    def __init__(self, kbps: Mapping[str, int]) -> None:
        self.most = dict(kbps)

    def delay_us(self, start: str, end: str) -> int:
        """How long a record is under way."""
        return 0 if start == end else DELAY_US

    def kbps(self, start: str, end: str) -> int:
        """What the way carries at most."""
        return self.most.get(f"{start}>{end}", 1_000)


class Case(msgspec.Struct, frozen=True):
    """Queries by name (`composer: piece(inputs)@hosts ... > sink`), what sites have, and how runs may end.

    A query is text: `x: o1(s@a) o2(o1) > b, 5000` asks at composer x for operator o2 on o1 on the source s of site a,
    the result at b, within 5000 us; two numbers are two levels, the first of which weighs more.
    """

    queries: dict[str, str]
    hosts: dict[str, str]
    capacity: dict[str, int] = {}
    kbps: dict[str, int] = {}
    others: str = ""
    load: int = 300_000
    """What each operator takes of a site, which has a million; 1000 us of work each record."""
    runs: dict[str, str] = {}
    """Queries that run from the start, with the site of each operator: `o1@a o2@b > b, 5000`."""
    stale: bool = False
    """Whether the directory goes on telling of what has ended."""
    leaves: str = ""
    ends: tuple[str, ...] = ()
    """The sets of queries that may run at the end where nothing goes wrong; none: any."""

    def sites(self) -> tuple[str, ...]:
        """All sites, by name."""
        return tuple(sorted(self.capacity))

    def composers(self) -> tuple[str, ...]:
        """All composers, by name."""
        named = {text.partition(":")[0] for text in (*self.queries.values(), *self.runs.values())}
        return tuple(sorted(f"{one}:" for one in named))

    def query(self, name: str) -> tuple[str, QueryPlan, tuple[Level, ...]]:
        """A query: at which composer, what, and which promises it would take."""
        composer, _, rest = self.queries[name].partition(": ")
        text, _, limits = rest.partition(", ")
        plan = self.plan(text)
        times = [int(one) for one in limits.split()] if limits else []
        return f"{composer}:", plan, tuple(Level(time, len(times) - at) for at, time in enumerate(times))

    def plan(self, text: str) -> QueryPlan:
        """The pieces that a text names."""
        steps, _, sink = text.partition(" > ")
        pieces: list[Piece] = []
        origins: dict[str, Origin] = {}
        streams: dict[str, str] = {}
        for step in steps.split():
            does, _, read = step.rstrip(")").partition("(")
            inputs = []
            for one in read.split("+"):
                name, _, site = one.partition("@")
                inputs.append(name)
                if site:
                    origins[name], streams[name] = Origin(name, site, 10), one
            streams[does] = f"{does}({'+'.join(streams[one] for one in inputs)})"
            pieces.append(Piece(does, does, streams[does], tuple(inputs), 1_000, self.load, 10))
        pieces.append(Piece("out", "", "", (pieces[-1].name,), site=sink))
        return QueryPlan(tuple(pieces), tuple(origins.values()))

    def running(
        self, bounds_of: Bounds = divided
    ) -> tuple[tuple[tuple[str, Kept], ...], tuple[tuple[str, Decided], ...]]:
        """What keepers and composers have written down of queries that run from the start."""
        kept: list[tuple[str, Kept]] = []
        noted: list[tuple[str, Decided]] = []
        loads = dict.fromkeys(self.capacity, 0)
        for text in self.runs.values():
            for step in text.partition(": ")[2].partition(" > ")[0].split():
                loads[step.partition("@")[2]] += self.load
        for name, text in self.runs.items():
            composer, _, rest = text.partition(": ")
            steps, _, end = rest.partition(" > ")
            sink, _, limit = end.partition(", ")
            attempt, before = f"{name}#0.1", ""
            hops: list[Hop] = []
            for step in (*steps.split(), f"out@{sink}"):
                piece, _, site = step.partition("@")
                took = 0 if piece == "out" else 1_000 * 1_000_000 // (self.capacity[site] - loads[site])
                far = DELAY_US if hops and hops[-1].site != site else 0
                hops.append(Hop(piece, site, before or "s", took, far))
                before = piece
            graph = Graph(tuple(hops), sum(hop.exec_us + hop.link_us for hop in hops))
            bounds = bounds_of(graph, int(limit))
            for at, hop in enumerate(hops):
                start = hops[at - 1].site if at else hop.site
                work = 0 if hop.piece == "out" else self.load
                feed = (hop.before, start, 10 if start != hop.site else 0)
                kept.append((hop.site, Kept(
                    attempt, hop.piece, f"{composer}:", f"{hop.piece} of {name}" if work else "", work,
                    1_000 if work else 0, bounds.get(hop.piece, 0), int(limit), (feed,), "", True,
                )))  # fmt: skip
            noted.append((f"{composer}:", Decided(name, attempt, int(limit), "alone", graph)))
        return tuple(kept), tuple(noted)


class Terrain(msgspec.Struct, frozen=True):
    """Disks, what runs, what is asked of the directory, what was told; `fault` is what was wrong first."""

    case: Case
    disks: tuple[tuple[str, Kept], ...] = ()
    notes: tuple[tuple[str, Decided], ...] = ()
    runs: tuple[Instance, ...] = ()
    known: tuple[Instance, ...] = ()
    finds: tuple[tuple[str, Find], ...] = ()
    told: tuple[tuple[str, str], ...] = ()
    lives: tuple[tuple[str, int], ...] = ()
    fault: str = ""

    def __hash__(self) -> int:
        return hash((
            self.disks, self.notes, self.runs, self.known, self.finds, self.told, self.lives, self.fault
        ))  # fmt: skip

    def perform(self, site: str, effect: Effect) -> Terrain:
        """The ground after an effect."""
        match effect:
            case Remember(kept=kept):
                rest = self._but(site, kept.attempt, kept.piece)
                return self.but(disks=_sorted((*rest, (site, kept))))
            case Forget(attempt=attempt, piece=piece):
                return self.but(disks=self._but(site, attempt, piece))
            case Run(instance=instance):
                both = _sorted({*self.runs, instance}), _sorted({*self.known, instance})
                return self.but(runs=both[0], known=both[1])
            case End(instance=instance):
                runs = tuple(one for one in self.runs if one != instance)
                known = self.known if self.case.stale else tuple(one for one in self.known if one != instance)
                return self.but(runs=runs, known=known)
            case Find():
                return self.but(finds=(*(one for one in self.finds if one[0] != site), (site, effect)))
            case Note(decided=decided):
                others = tuple(one for one in self.notes if one[1].request != decided.request)
                return self.but(notes=_sorted((*others, (site, decided))))
            case Strike(request=request):
                return self.but(notes=tuple(one for one in self.notes if one[1].request != request))
        return self.telling(effect)

    def telling(self, effect: Effect) -> Terrain:
        """The ground after something was told to whoever asked."""
        match effect:
            case Admitted(request=request):
                written = any(one.request == request for _, one in self.notes)
                return self.tell(request, "admitted", "" if written else UNWRITTEN)
            case Refused(request=request, broken=broken, reason=reason):
                fault = TAKEN_BACK if dict(self.told).get(request) == "admitted" else ""
                named = broken.what == "silence" or (broken.site and broken.site in reason)
                return self.tell(request, "refused", fault or ("" if named else UNNAMED))
            case Gone(request=request):
                return self.tell(request, "gone", "")
        return self

    def tell(self, request: str, what: str, fault: str) -> Terrain:
        """Somebody was told something of a query."""
        told = {**dict(self.told), request: what}
        return self.but(told=tuple(sorted(told.items())), fault=self.fault or fault)

    def choices(self) -> Iterator[Choice]:
        """The directory answers."""
        case = self.case
        for composer, find in self.finds:
            made = tuple(one for stream in find.streams for one in self.known if one.stream == stream)
            hosts = tuple(Hosts(does, tuple(case.hosts[does].split())) for does in find.does if does in case.hosts)
            found = Found(find.request, find.serial, made, hosts, tuple(case.others.split()))
            finds = tuple(one for one in self.finds if one != (composer, find))
            yield Choice(composer, found, self.but(finds=finds))

    def crash(self, site: str) -> Terrain:
        """What is on disk stays; what ran has ended, and a composer comes back with another life."""
        lives = {**dict(self.lives), site: dict(self.lives).get(site, 1) + 1}
        finds = tuple(one for one in self.finds if one[0] != site)
        runs = tuple(one for one in self.runs if one.site != site)
        return self.but(lives=tuple(sorted(lives.items())), finds=finds, runs=runs)

    def but(self, **changes: Any) -> Terrain:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)

    def _but(self, site: str, attempt: str, piece: str) -> tuple[tuple[str, Kept], ...]:
        return tuple(one for one in self.disks if (one[0], one[1].attempt, one[1].piece) != (site, attempt, piece))


def _sorted(values: Any) -> tuple[Any, ...]:
    return tuple(sorted(values, key=repr))
