"""What does a site still have to say? Events in order, each said until the desk has it; bounded while nobody hears.

An event gets its number when it is first said. What was said is not changed any more. What waits for its turn may be:
beyond `waiting_max` batches of a fragment become one, and the oldest commits and weights are given up and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from weft.protocol.reporting.words import (
    BatchDone,
    BatchWeighed,
    Committed,
    Counts,
    Event,
    FragmentNow,
    Report,
    SiteNow,
)

SYNCS_KEPT = 256

_size = msgspec.json.Encoder()


class OutboxLimits(msgspec.Struct, frozen=True):
    """How many events are said before they are heard, how large one report is, and what is kept of what waits."""

    events_max: int = 500
    bytes_max: int = 256 * 1024
    waiting_max: int = 20_000
    commits_kept: int = 4096
    weighed_kept: int = 1024


class Outbox:
    """What one life of a site has to say."""

    def __init__(self, life: str, limits: OutboxLimits | None = None) -> None:
        self.life = life
        self.limits = limits or OutboxLimits()
        self.dropped = 0
        self._number = 0
        self._had = 0
        self._said: deque[Event] = deque()
        self._waiting: deque[Event] = deque()

    def add(self, event: Event) -> None:
        """Something happened."""
        self._waiting.append(event)
        if len(self._waiting) > self.limits.waiting_max:
            self._shrink()

    def heard(self, life: str, upto: int) -> None:
        """The desk has all up to a number."""
        if life != self.life:
            return
        for _ in range(min(upto - self._had, len(self._said))):
            self._said.popleft()
            self._had += 1

    @property
    def waits(self) -> bool:
        """True if events have not been said for a first time."""
        return bool(self._waiting)

    def reports(self, now: SiteNow, at_ms: float, answers: int = 0) -> list[Report]:
        """What is to be said now: some of the events, or with an answer all; of bounded size each."""
        room = len(self._waiting) if answers else max(0, self.limits.events_max - len(self._said))
        for _ in range(min(room, len(self._waiting))):
            self._said.append(self._waiting.popleft())
        told, first = [], self._had + 1
        for events, fragments in _parts(self._said, now.fragments, self.limits.bytes_max):
            self._number += 1
            part = msgspec.structs.replace(now, fragments=fragments)
            told.append(Report(self.life, self._number, at_ms, self._had, first, events, 0, self.dropped, part))
            first += len(events)
        last = msgspec.structs.replace(told[-1], more=len(self._waiting), answers=answers)
        return [*told[:-1], last]

    def _shrink(self) -> None:
        """Make one of the batches of a fragment, and keep the newest of what else there is."""
        batches: dict[tuple[str, int], BatchDone] = {}
        commits: deque[Committed] = deque(maxlen=self.limits.commits_kept)
        weighed: deque[BatchWeighed] = deque(maxlen=self.limits.weighed_kept)
        before = 0
        for event in self._waiting:
            match event:
                case BatchDone(fragment=fragment, generation=generation):
                    held = batches.get((fragment, generation))
                    batches[fragment, generation] = event if held is None else merged(held, event)
                case Committed():
                    before += 1
                    commits.append(event)
                case BatchWeighed():
                    before += 1
                    weighed.append(event)
        self.dropped += before - len(commits) - len(weighed)
        self._waiting = deque([*batches.values(), *commits, *weighed])


def merged(one: BatchDone, later: BatchDone) -> BatchDone:
    """Batches of one fragment as one."""
    return BatchDone(
        one.fragment,
        one.generation,
        later.batch,
        one.busy_ms + later.busy_ms,
        _added(one.sources, later.sources),
        _added(one.bad, later.bad),
        _added(one.operators, later.operators),
        {**one.state_kb, **later.state_kb},
        (*one.sync_ms, *later.sync_ms)[-SYNCS_KEPT:],
        one.batches + later.batches,
    )


def _added(one: Counts, other: Counts) -> Counts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _parts(
    events: deque[Event], fragments: tuple[FragmentNow, ...], bytes_max: int
) -> Iterator[tuple[tuple[Event, ...], tuple[FragmentNow, ...]]]:
    """Events, in order, and fragments in parts that a message can hold; one part where there is nothing."""
    some_events: list[Event] = []
    some_fragments: list[FragmentNow] = []
    held = 0
    for one in (*events, *fragments):
        size = len(_size.encode(one))
        if held and held + size > bytes_max:
            yield tuple(some_events), tuple(some_fragments)
            some_events, some_fragments, held = [], [], 0
        held += size
        if isinstance(one, FragmentNow):
            some_fragments.append(one)
        else:
            some_events.append(one)
    yield tuple(some_events), tuple(some_fragments)
