"""What came to the operators of one site? Counted from what the site measures of its fragments, in whole periods only.

What came into a fragment since the last look is what it took and what waits for it more (of users' files: what it
took). It is spread over its operators as the batches were that have been weighed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from weft.bodies.live.costs import OperatorCosts
from weft.plan.changing.fragments import Fragment
from weft.protocol.balancing import BalanceFrom, Declared, Part, amounts
from weft.protocol.reporting import BatchDone, BatchWeighed, FragmentNow, Measured

WEIGHED_MAX = 32

Running = Mapping[str, tuple[int, Fragment]]
"""What runs at a site: by fragment, its epoch and how it is cut."""


@dataclass(slots=True)
class _Weighed:
    """The last batches of a fragment: records into and out of each of its operators, by stream."""

    start: int
    batches: deque[tuple[dict[str, int | None], dict[str, int | None]]] = field(
        default_factory=lambda: deque(maxlen=WEIGHED_MAX)
    )


class Unmeasured(Exception):
    """A period was not measured whole; the text says what is missing."""


class SiteLoads:
    """Counts what comes to the operators of one site between two looks."""

    def __init__(self) -> None:
        self._now: dict[str, FragmentNow] = {}
        self._then: dict[str, tuple[int, int]] = {}
        self._files: dict[str, int] = {}
        self._weighed: dict[str, _Weighed] = {}
        self._state_kb: dict[str, float] = {}
        self._costs = OperatorCosts()

    def add(self, measured: Measured) -> None:
        """Take in what the site has measured."""
        self._now = {one.fragment: one for one in measured.now.fragments}
        for event in measured.events:
            match event:
                case BatchDone(fragment=fragment, sources=sources):
                    self._files[fragment] = self._files.get(fragment, 0) + sum(sources.values())
                    self._state_kb |= event.state_kb
                case BatchWeighed():
                    self._costs.add("", event)
                    self._weigh(event)

    def _weigh(self, event: BatchWeighed) -> None:
        held = self._weighed.get(event.fragment)
        if held is None or held.start != event.start:
            held = self._weighed[event.fragment] = _Weighed(event.start)
        streams = [name if "." in name else f"{event.query}.{name}" for name in event.operators]
        into, out = (dict(zip(streams, counts, strict=True)) for counts in (event.into, event.out))
        held.batches.append((into, out))

    def look(self, running: Running, told: BalanceFrom, seconds: float) -> tuple[Part, ...]:
        """The loads of all operators that run here, by what came since the last look; Unmeasured where that is not
        known of all."""
        then, now = self._then, dict(self._counted(running))
        self._then = now
        parts: list[Part] = []
        self._costs.weigh(lambda query, name: _declared_ms(told, f"{query}.{name}"))
        costs = {f"{query}.{name}": one["cost_ms"] for (query, name), one in self._costs.operators().items()}
        for name, (epoch, fragment) in running.items():
            known = [stream for stream in fragment.streams if stream in told.operators]
            if not known:
                continue
            if name not in now or now[name][0] != epoch or then.get(name, (0, 0))[0] != epoch:
                raise Unmeasured(f"records of {known[0]}")
            records = max(0, now[name][1] - then[name][1])
            for stream in known:
                came = self._share(name, fragment, stream, told.streams.inputs) * records if records else 0.0
                cost_ms, state_kb = self._weight(stream, told.operators[stream], costs, came > 0)
                parts.append(Part(stream, amounts(told.resources, came, cost_ms, state_kb, seconds)))
        return tuple(parts)

    def _counted(self, running: Running) -> Iterator[tuple[str, tuple[int, int]]]:
        """By fragment that is through with its first batch: its epoch, and all records that have come to it so far."""
        for name in running:
            now = self._now.get(name)
            if now is not None and now.begun:
                # What waits in users' files has come some time; it counts when it is read.
                waiting = (one.records for one in now.waiting if one.segments is not None or one.stream in now.sources)
                yield name, (now.epoch, now.taken + sum(waiting) + self._files.get(name, 0))

    def _share(self, name: str, fragment: Fragment, stream: str, inputs: Mapping[str, Iterable[str]]) -> float:
        """How many records come to an operator for each that comes into its fragment."""
        if fragment.streams == (stream,):
            return 1.0
        into = entered = 0
        for taken, given in self._weighed[name].batches if name in self._weighed else ():
            came = _entered(taken, given, inputs)
            mine = taken.get(stream)
            if came is not None and mine is not None:
                into, entered = into + mine, entered + came
        if not entered:
            raise Unmeasured(f"records of {stream}")
        return into / entered

    def _weight(
        self, stream: str, declared: Declared, costs: Mapping[str, float | None], came: bool
    ) -> tuple[float, float]:
        """Its cost per record and its state, as measured, else as declared."""
        cost_ms = costs.get(stream)
        cost_ms = declared.cost_ms if cost_ms is None else cost_ms
        if cost_ms is None and came:
            raise Unmeasured(f"cost of {stream}")
        return cost_ms or 0.0, self._state_kb.get(stream, declared.state_kb)


def _declared_ms(told: BalanceFrom, stream: str) -> float | None:
    declared = told.operators.get(stream)
    return None if declared is None else declared.cost_ms


def _entered(
    into: Mapping[str, int | None], out: Mapping[str, int | None], inputs: Mapping[str, Iterable[str]]
) -> int | None:
    """Records that a batch took from outside its fragment; None where that is not known."""
    found = 0
    for stream, taken in into.items():
        inside = [one for one in inputs.get(stream, ()) if one in into]
        if inside and len(inside) == len(tuple(inputs.get(stream, ()))):
            continue
        given = [out[one] for one in inside]
        if taken is None or None in given:
            return None
        found += taken - sum(one or 0 for one in given)
    return found
