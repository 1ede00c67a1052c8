"""The record plane: runs events up to a moment, and lets steering act in between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.bodies.twin.loop import columns as c
from weft.bodies.twin.loop import interventions as hands
from weft.bodies.twin.loop.kernel import advance, settle, start_sources
from weft.bodies.twin.loop.measures import Measures
from weft.bodies.twin.loop.one_event_visits import cut_off
from weft.bodies.twin.loop.sending import shorten
from weft.bodies.twin.setup.layout import NS_PER_MS, Layout
from weft.bodies.twin.setup.memory_builder import LINE, aligned
from weft.bodies.twin.setup.options import Recut


class Overflow(Exception):
    """More records in flight than a run may hold."""


class Plane:
    """Sites, queues and links of one run, in virtual nanoseconds."""

    def __init__(self, layout: Layout, measures: Measures) -> None:
        self.layout = layout
        self.measures = measures
        self.m, self.x = layout.m, layout.x
        self.now_ns = 0
        self.paused: Callable[[], None] = lambda: None
        self._sites = np.array(list(layout.sites.values()), np.int64)
        self._busy = np.zeros(len(self._sites), np.int64)
        self._operators = np.array(list(layout.operators.values()), np.int64)
        self._makers = np.array([*layout.sources.values(), *layout.operators.values()], np.int64)
        shorten(self.m, self._makers)
        start_sources(self.m, self.x)

    def advance(self, until_ns: int) -> None:
        """Runs every event before a moment; Overflow where too many records are in flight."""
        while True:
            self.now_ns, status = advance(self.m, self.x, self.now_ns, until_ns)
            self.paused()
            if status == c.LOG_FULL:
                self.flush()
            if status == c.GROW:
                # Ahead, a record that waits is kept twice.
                if self.m[c.RECORDS_N] + self.m[c.NEED] > self.m[c.RECORDS_MAX] * (1 + self.m[c.AHEAD]):
                    raise Overflow
                self._grow()
            if status == c.DONE:
                return

    def flush(self) -> None:
        """Hands over what has reached sinks by now; what will reach them later, and is known already, stays."""
        n = int(self.m[c.LOG_N])
        log = self.m[self.m[c.LOG] : self.m[c.LOG] + 3 * n].reshape(n, 3)
        later = log[:, 1] >= self.now_ns + 1
        kept = log[later]
        if len(kept):
            log = log[~later]
        if len(log):
            self.measures.take(log[:, 0], log[:, 1], log[:, 2])
        self.m[self.m[c.LOG] : self.m[c.LOG] + 3 * len(kept)] = kept.ravel()
        self.m[c.LOG_N] = len(kept)

    def close(self) -> None:
        """Ends the run where it is: what lies beyond is uncounted."""
        self.flush()
        if self.m[c.AHEAD]:
            cut_off(self.m, self.x, self._sites, self.now_ns, True)
            self.m[c.EVENTS] -= self.m[c.LOG_N]
            self.m[c.LOG_N] = 0
        self.note_busy(self.now_ns)

    def _grow(self) -> None:
        """Makes room for as many records again, and for those that one event needs."""
        m = self.m
        room = int(m[c.RECORDS_MAX]) * (1 + int(m[c.AHEAD])) + 1 - int(m[c.RECORDS_N])
        more = int(min(m[c.RECORDS_N], max(1, room)) + m[c.NEED] + m[c.SPARE])
        first = -(-len(m) // LINE) * LINE
        heap = first + more * c.RECORD_SIZE
        self.m = aligned(heap + int(m[c.RECORDS_N]) + more)
        self.m[: len(m)] = m
        self.m[first + c.NEXT : heap : c.RECORD_SIZE] = first + c.RECORD_SIZE * np.arange(1, more + 1)
        self.m[heap - c.RECORD_SIZE + c.NEXT] = m[c.FREE]
        self.m[heap : heap + int(m[c.HEAP_N])] = m[m[c.HEAP] : m[c.HEAP] + m[c.HEAP_N]]
        self.m[c.FREE], self.m[c.HEAP] = first, heap
        self.m[c.FREE_N] += more
        self.m[c.RECORDS_N] += more

    def area(self, site: int) -> float:
        """Records times nanoseconds that a site has seen."""
        return float(self.x[self.m[site + c.SPEED] + c.AREA])

    def get(self, handle: int, column: int) -> int:
        """One number of the memory."""
        return int(self.m[handle + column])

    def counts(self, column: int) -> dict[tuple[str, str], int]:
        """One number of every operator's first row."""
        return dict(zip(self.layout.operators, self.m[self._operators + column].tolist(), strict=True))

    def totals(self, column: int) -> dict[tuple[str, str], int]:
        """A count of every operator over all instances it has had."""
        return {**self.counts(column), **{name: self.total(name, column) for name in self.layout.instances}}

    def settle(self, at_ns: int) -> c.Ints:
        """Books the part of services and stays that lies before a moment; how long each site was busy so far."""
        settle(self.m, self.x, self._sites, at_ns, self._busy)
        return self._busy

    def note_busy(self, at_ns: int) -> None:
        """Keeps how busy sites were up to a moment, for the picture over time."""
        self.measures.busy.append((at_ns, self.settle(at_ns).copy()))

    def note_start(self, at_ns: int, batches: int) -> None:
        """The start is over once every site that serves in batches, and has begun one, has begun more than so many."""
        if self.measures.started_ns is not None:
            return
        begun = [self.get(s, c.BATCHES_N) for s in self.layout.sites.values()]
        if any(begun) and min(count for count in begun if count) > batches:
            self.measures.started_ns = at_ns

    def forget(self, at_ns: int) -> None:
        """Ends the warm-up: counts begin anew, records and queues stay."""
        self.note_busy(at_ns)
        self.flush()
        self.m[c.EVENTS] = 0
        if self.m[c.AHEAD]:
            cut_off(self.m, self.x, self._sites, at_ns, False)
        for s in self.layout.sites.values():
            if not self.m[c.AHEAD]:
                self.m[s + c.BUSY] = 0
                self.x[self.m[s + c.SPEED] + c.AREA] = 0.0
            self.m[s + c.WAITING_MAX] = self.m[s + c.WAITING]
        further = [row for rows in self.layout.instances.values() for row in rows[1:]]
        for o in (*self.layout.operators.values(), *further):
            self.m[o + c.ARRIVED] = self.m[o + c.DROPPED] = 0
        self.measures.busy.append((at_ns, np.zeros_like(self._busy)))
        self.measures.forget(at_ns, {name: self.get(k, c.BORN) for name, k in self.layout.sources.items()})

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
        hands.rehome(self.m, self.x, self.layout.operators[operator], there, self.now_ns)
        for sink in self.layout.followers.get(operator, ()):
            self.m[sink + c.HOME] = there
        for name, recut in self.layout.recut.get((operator, site), {}).items():
            self._recut(self.layout.sites[name], recut)
        shorten(self.m, self._makers)

    def _recut(self, s: int, recut: Recut) -> None:
        """Batches of a site cost something else from now on; where they close windows no more, nothing is kept back."""
        m = self.m
        after_ns = min(round(recut.fixed_ms * NS_PER_MS), round(recut.after_ms * NS_PER_MS))
        m[s + c.BASE], m[s + c.AFTER] = round(recut.fixed_ms * NS_PER_MS) - after_ns, after_ns
        if not recut.closes_windows and m[s + c.KEPT] != c.NOBODY:
            m[m[s + c.KEPT_END] + c.NEXT] = m[s + c.OUT]
            if m[s + c.OUT] == c.NOBODY:
                m[s + c.OUT_END] = m[s + c.KEPT_END]
            m[s + c.OUT], m[s + c.KEPT] = m[s + c.KEPT], c.NOBODY
        m[s + c.CLOSES] = int(recut.closes_windows)

    def start_instance(self, operator: tuple[str, str], site: str) -> None:
        """One more instance of an operator takes its share of the records, at a site."""
        if self.m[c.AHEAD]:
            raise ValueError("this run was laid out for nothing to change in it")
        first = self.layout.operators[operator]
        rows = self.layout.instances.setdefault(operator, [first])
        row = self._append(c.OPERATOR_SIZE)
        self.m[row : row + c.OPERATOR_SIZE] = self.m[first : first + c.OPERATOR_SIZE]
        for column in (c.WAITS, c.ARRIVED, c.DROPPED, c.HELD):
            self.m[row + column] = 0
        self.m[row + c.PARKED] = self.m[row + c.OUTSIDE] = c.NOBODY
        self.m[row + c.HOME] = self.layout.sites[site]
        rows.append(row)
        self._share(first, [*(self._sharing(first) or [first]), row])

    def stop_instance(self, operator: tuple[str, str], site: str) -> None:
        """The last instance that was started at a site gets no more records and hands on what waits for it.

        An operator's first instance stays; ValueError where there is no other at the site.
        """
        first = self.layout.operators[operator]
        sharing = self._sharing(first)
        there = [row for row in sharing[1:] if self.m[row + c.HOME] == self.layout.sites[site]]
        if not there:
            raise ValueError(f"no further instance of {'.'.join(operator)} runs at {site}")
        self._share(first, [row for row in sharing if row != there[-1]])
        self._spare()
        hands.disband(self.m, self.x, there[-1], self.now_ns)
        self.work_off()

    def instances(self, operator: tuple[str, str]) -> tuple[str, ...]:
        """The sites that share an operator's records, its first instance first."""
        first = self.layout.operators[operator]
        names = {handle: name for name, handle in self.layout.sites.items()}
        return tuple(names[self.get(row, c.HOME)] for row in self._sharing(first) or [first])

    def total(self, operator: tuple[str, str], column: int) -> int:
        """A count of an operator over all instances it has had."""
        rows = self.layout.instances.get(operator) or [self.layout.operators[operator]]
        return sum(self.get(row, column) for row in rows)

    def _sharing(self, first: int) -> list[int]:
        at = self.get(first, c.INSTANCES)
        return [int(row) for row in self.m[at : at + self.get(first, c.INSTANCES_N)]]

    def _share(self, first: int, rows: list[int]) -> None:
        at = self._append(len(rows))
        self.m[at : at + len(rows)] = rows
        self.m[first + c.INSTANCES], self.m[first + c.INSTANCES_N] = at, len(rows)
        shorten(self.m, self._makers)

    def _append(self, size: int) -> int:
        """So many numbers more."""
        at = -(-len(self.m) // LINE) * LINE
        grown = aligned(at + -(-size // LINE) * LINE)
        grown[: len(self.m)] = self.m
        grown[len(self.m) :] = 0
        self.m = grown
        return at

    def crash(self, site: str) -> None:
        """A site serves no more, and its sources keep their records back."""
        self._spare()
        hands.crash(self.m, self.x, self.layout.sites[site], self.now_ns)
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
        """How many records wait for an operator, at its first instance."""
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
