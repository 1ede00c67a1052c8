"""The record plane: runs events up to a moment, and lets steering act in between."""

from __future__ import annotations

from weft.bodies.twin import columns as c
from weft.bodies.twin.kernel import advance, start_sources
from weft.bodies.twin.layout import Layout
from weft.bodies.twin.measures import Measures
from weft.bodies.twin.stations import count_busy, stay


class Overflow(Exception):
    """More records in flight than a run may hold."""


class Plane:
    """Sites, queues and links of one run, in virtual nanoseconds."""

    def __init__(self, layout: Layout, measures: Measures) -> None:
        self.layout = layout
        self.measures = measures
        self.m, self.x = layout.m, layout.x
        self.now_ns = 0
        start_sources(self.m, self.x)

    def advance(self, until_ns: int) -> None:
        """Runs every event before a moment; Overflow where too many records are in flight."""
        while True:
            self.m, status = advance(self.m, self.x, until_ns)
            n = int(self.m[c.LOG_N])
            if n:
                log = self.m[self.m[c.LOG] : self.m[c.LOG] + 3 * n].reshape(n, 3)
                self.measures.take(log[:, 0], log[:, 1], log[:, 2])
                self.m[c.LOG_N] = 0
            if status == c.POOL_FULL:
                self.now_ns = max(int(self.m[s + c.SINCE]) for s in self.layout.sites.values())
                raise Overflow
            if status == c.DONE:
                self.now_ns = until_ns
                return

    def get(self, handle: int, column: int) -> int:
        """One number of the memory."""
        return int(self.m[handle + column])

    def settle(self, at_ns: int) -> None:
        """Books the part of services and stays that lies before a moment."""
        for s in self.layout.sites.values():
            stay(self.m, s, at_ns)
            if self.m[s + c.SERVING] != c.NOBODY:
                count_busy(self.m, s, at_ns)
                self.m[s + c.STARTED] = at_ns

    def forget(self, at_ns: int) -> None:
        """Ends the warm-up: counts begin anew, records and queues stay."""
        self.settle(at_ns)
        for s in self.layout.sites.values():
            self.m[s + c.BUSY] = self.m[s + c.AREA] = 0
            self.m[s + c.WAITING_MAX] = self.m[s + c.WAITING]
        for o in self.layout.operators.values():
            self.m[o + c.ARRIVED] = self.m[o + c.DROPPED] = 0
        self.m[c.EVENTS] = 0
        self.measures.forget(at_ns, {name: self.get(k, c.BORN) for name, k in self.layout.sources.items()})
