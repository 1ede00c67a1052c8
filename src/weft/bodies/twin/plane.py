"""The record plane: runs events up to a moment, and lets steering act in between."""

from __future__ import annotations

import numpy as np

from weft.bodies.twin import columns as c
from weft.bodies.twin import hands
from weft.bodies.twin.arena import aligned
from weft.bodies.twin.kernel import advance, settle, start_sources
from weft.bodies.twin.layout import Layout
from weft.bodies.twin.measures import Measures


class Overflow(Exception):
    """More records in flight than a run may hold."""


class Plane:
    """Sites, queues and links of one run, in virtual nanoseconds."""

    def __init__(self, layout: Layout, measures: Measures) -> None:
        self.layout = layout
        self.measures = measures
        self.m, self.x = layout.m, layout.x
        self.now_ns = 0
        self._sites = np.array(list(layout.sites.values()), np.int64)
        self._busy = np.zeros(len(self._sites), np.int64)
        self._shorten()
        start_sources(self.m, self.x)

    def advance(self, until_ns: int) -> None:
        """Runs every event before a moment; Overflow where too many records are in flight."""
        while True:
            self.now_ns, status = advance(self.m, self.x, self.now_ns, until_ns)
            n = int(self.m[c.LOG_N])
            if n:
                log = self.m[self.m[c.LOG] : self.m[c.LOG] + 3 * n].reshape(n, 3)
                self.measures.take(log[:, 0], log[:, 1], log[:, 2])
                self.m[c.LOG_N] = 0
            if status == c.GROW:
                if self.m[c.RECORDS_N] + self.m[c.NEED] > self.m[c.RECORDS_MAX]:
                    raise Overflow
                self._grow()
            if status == c.DONE:
                return

    def _grow(self) -> None:
        """Makes room for as many records again, and for those that one event needs."""
        m = self.m
        more = int(min(m[c.RECORDS_N], max(1, m[c.RECORDS_MAX] + 1 - m[c.RECORDS_N])) + m[c.NEED] + m[c.SPARE])
        first = len(m)
        heap = first + more * c.RECORD_SIZE
        self.m = aligned(heap + int(m[c.RECORDS_N]) + more)
        self.m[:first] = m
        self.m[first + c.NEXT : heap : c.RECORD_SIZE] = first + c.RECORD_SIZE * np.arange(1, more + 1)
        self.m[heap - c.RECORD_SIZE + c.NEXT] = m[c.FREE]
        self.m[heap : heap + int(m[c.HEAP_N])] = m[m[c.HEAP] : m[c.HEAP] + m[c.HEAP_N]]
        self.m[c.FREE], self.m[c.HEAP] = first, heap
        self.m[c.FREE_N] += more
        self.m[c.RECORDS_N] += more

    def get(self, handle: int, column: int) -> int:
        """One number of the memory."""
        return int(self.m[handle + column])

    def settle(self, at_ns: int) -> c.Ints:
        """Books the part of services and stays that lies before a moment; how long each site was busy so far."""
        settle(self.m, self._sites, at_ns, self._busy)
        return self._busy

    def note_busy(self, at_ns: int) -> None:
        """Keeps how busy sites were up to a moment, for the picture over time."""
        self.measures.busy.append((at_ns, self.settle(at_ns).copy()))

    def forget(self, at_ns: int) -> None:
        """Ends the warm-up: counts begin anew, records and queues stay."""
        self.note_busy(at_ns)
        for s in self.layout.sites.values():
            self.m[s + c.BUSY] = self.m[s + c.AREA] = 0
            self.m[s + c.WAITING_MAX] = self.m[s + c.WAITING]
        for o in self.layout.operators.values():
            self.m[o + c.ARRIVED] = self.m[o + c.DROPPED] = 0
        self.measures.busy.append((at_ns, np.zeros_like(self._busy)))
        self.m[c.EVENTS] = 0
        self.measures.forget(at_ns, {name: self.get(k, c.BORN) for name, k in self.layout.sources.items()})

    def _shorten(self) -> None:
        """Notes for streams with one reader at another site how far that is, where nothing limits the way."""
        m, layout = self.m, self.layout
        for maker in (*layout.sources.values(), *layout.operators.values()):
            m[maker + c.QUICK_DELAY] = c.NOBODY
            reader = int(m[maker + c.QUICK_READER])
            if reader == c.NOBODY:
                continue
            here, there = int(m[maker + c.HOME]), int(m[(reader >> 1) + c.HOME])
            way = int(m[c.WAYS] + 2 * (m[here + c.INDEX] * m[c.SITES_N] + m[there + c.INDEX]))
            if here != there and m[way] >= 0 and m[way + 1] == c.NOBODY:
                m[maker + c.QUICK_DELAY], m[maker + c.QUICK_SITE] = m[way], there

    def work_off(self) -> None:
        """Lets those go on whose last hold was taken off."""
        self.advance(self.now_ns)

    def hold(self, operator: tuple[str, str], clean: bool) -> int:
        """An operator serves no more; when its record in service has ended, where that is waited for."""
        self._spare()
        return int(hands.hold(self.m, self.x, self.layout.operators[operator], self.now_ns, clean))

    def release(self, operator: tuple[str, str]) -> None:
        """An operator that was held serves again."""
        hands.unhold(self.m, self.layout.operators[operator])
        self.work_off()

    def rehome(self, operator: tuple[str, str], site: str) -> None:
        """An operator that is held goes to another site with all that waits for it, and sinks that stand beside it."""
        self._spare()
        there = self.layout.sites[site]
        hands.rehome(self.m, self.layout.operators[operator], there, self.now_ns)
        for sink in self.layout.followers.get(operator, ()):
            self.m[sink + c.HOME] = there
        self._shorten()

    def crash(self, site: str) -> None:
        """A site serves no more, and its sources keep their records back."""
        self._spare()
        hands.crash(self.m, self.layout.sites[site], self.now_ns)
        for k in self._sources_at(site):
            self.m[k + c.HELD] += 1

    def restart(self, site: str) -> None:
        """A site that was lost serves again."""
        hands.restart(self.m, self.x, self.layout.sites[site], self.now_ns)
        for k in self._sources_at(site):
            hands.unhold(self.m, k)
        self.work_off()

    def cut(self, one: str, other: str, until_ns: int) -> None:
        """What is sent between two sites waits until a moment."""
        for pair in ((one, other), (other, one)):
            if pair in self.layout.gates:
                self.m[self.layout.gates[pair] + c.CUT_UNTIL] = until_ns

    def set_capacity(self, site: str, capacity: float) -> None:
        """A site works faster or slower from now on."""
        self._spare()
        hands.set_speed(self.m, self.x, self.layout.sites[site], capacity, self.now_ns)

    def waiting(self, operator: tuple[str, str]) -> int:
        """How many records wait for an operator."""
        return self.get(self.layout.operators[operator], c.WAITS)

    def arrived(self, operator: tuple[str, str]) -> int:
        """How many records have come to an operator."""
        return self.get(self.layout.operators[operator], c.ARRIVED)

    def home(self, operator: tuple[str, str]) -> str:
        """Where an operator runs now."""
        at = self.get(self.layout.operators[operator], c.HOME)
        return next(name for name, s in self.layout.sites.items() if s == at)

    def _sources_at(self, site: str) -> list[int]:
        at = self.layout.sites[site]
        return [k for k in self.layout.sources.values() if self.get(k, c.HOME) == at]

    def _spare(self) -> None:
        if self.m[c.FREE_N] < self.m[c.SPARE]:
            self._grow()
