"""How do micro-batches of fragments that share one machine fall? A small simulation, batch by batch.

A fragment takes up, as soon as its last batch has ended, all that has come since: records of sources, commits of
channels. One that finds nothing waits, and sees the next commit a look later. All batches under way are slowed alike by
one another. What a batch gives is committed shortly before its end, with the births of the records in it; results of
windows come with the batch after, once the watermark has moved, and count from the records that moved it. So latencies
arise as they are measured live: a span from the youngest to the oldest birth for every commit at a sink.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from weft.plan.judging.batch_costs import BatchCosts
from weft.plan.judging.batch_pieces import BatchPiece

BATCHES_EACH = 120  # of the slowest piece, about: quantiles are then known within some percent
WARM_EACH = 12
BATCHES_MAX = 40_000

Span = tuple[float, float, float]
"""The least and the greatest latency of a commit's results in ms, and how many there were."""

Births = tuple[float, float] | None


@dataclass(slots=True)
class _State:
    """Where a piece stands."""

    busy: bool = False
    committed: bool = False  # what comes after is left of the batch
    asleep: bool = True
    taken_ms: float = 0.0  # up to when sources were read
    # When it is seen, rows and births of every commit not yet taken.
    waiting: list[tuple[float, float, Births]] = field(default_factory=list)
    rows: float = 0.0
    births: Births = None
    before: tuple[float, Births] = (0.0, None)  # rows and births whose windows the next batch closes
    closing: bool = False
    began_ms: float = 0.0
    batches: int = 0
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of it: spans of latencies by query, mean durations of batches by piece, batches under way at once."""

    spans: Mapping[str, list[Span]]
    batch_ms: Mapping[str, float]
    under_way: float


def simulate(pieces: tuple[BatchPiece, ...], costs: BatchCosts, rng: Random, start: bool = False) -> Simulated:
    """Lets batches fall for a while and measures, after the start or from it on."""
    return _Machine(pieces, costs, rng, start).run()


class _Machine:
    """All pieces at a moment; `_v` is how much work each batch under way has had done since the beginning."""

    def __init__(self, pieces: tuple[BatchPiece, ...], costs: BatchCosts, rng: Random, start: bool) -> None:
        self.pieces, self.costs, self.rng, self.start = pieces, costs, rng, start
        self.states = [_State() for _ in pieces]
        self.readers: dict[str, list[tuple[int, float]]] = {}
        for at, piece in enumerate(pieces):
            for stream, delay_ms in piece.channels:
                self.readers.setdefault(stream, []).append((at, delay_ms))
        self.now_ms = self._v = 0.0
        self.ends: list[tuple[float, int]] = []  # (work done when it ends, piece)
        self.wakes: list[tuple[float, int]] = []  # (moment, piece)
        self.spans: dict[str, list[Span]] = {}
        self.measuring = start
        self.busy_area_ms = self.measured_ms = 0.0
        # Commits of one batch and lognormal durations whose mean is what was asked for.
        self.sigma = math.sqrt(math.log(1.0 + costs.spread**2))

    def run(self) -> Simulated:
        for at in range(len(self.pieces)):
            heapq.heappush(self.wakes, (0.0, at))
        warm, wanted = WARM_EACH * len(self.pieces), BATCHES_EACH * len(self.pieces)
        total = min(BATCHES_MAX, warm + wanted)
        done = 0
        while done < total and (self.ends or self.wakes):
            done += self._step()
            if not self.measuring and done >= min(warm, total // 2):
                self._begin_measuring()
        states = zip(self.pieces, self.states, strict=True)
        took = {piece.id: held.took_ms / held.batches for piece, held in states if held.batches}
        return Simulated(self.spans, took, self.busy_area_ms / self.measured_ms if self.measured_ms else 0.0)

    def _begin_measuring(self) -> None:
        self.measuring = True
        for held in self.states:
            held.batches, held.took_ms = 0, 0.0

    def _step(self) -> int:
        """The next moment at which something happens; 1 where a batch ended."""
        slower = self.costs.slower(len(self.ends))
        ends_ms = self.now_ms + (self.ends[0][0] - self._v) * slower if self.ends else math.inf
        wakes_ms = self.wakes[0][0] if self.wakes else math.inf
        at_ms = max(self.now_ms, min(ends_ms, wakes_ms))
        if self.measuring:
            self.busy_area_ms += len(self.ends) * (at_ms - self.now_ms)
            self.measured_ms += at_ms - self.now_ms
        self._v += (at_ms - self.now_ms) / slower
        self.now_ms = at_ms
        if ends_ms <= wakes_ms:
            at = heapq.heappop(self.ends)[1]
            if not self.states[at].committed:
                self._commit(at)
                heapq.heappush(self.ends, (self._v + self.pieces[at].after_ms, at))
                return 0
            self._end(at)
            return 1
        _, at = heapq.heappop(self.wakes)
        if not self.states[at].busy:
            self._begin(at)
        return 0

    def _begin(self, at: int) -> None:
        """Takes up what has come; where nothing has, sleeps until something does."""
        piece, held, now_ms = self.pieces[at], self.states[at], self.now_ms
        rows, births = 0.0, None
        waited_ms = now_ms - held.taken_ms
        for intake in piece.intakes:
            came = intake.per_s * waited_ms / 1000
            if came >= 1.0:
                rows += came
                births = _both(births, (held.taken_ms, now_ms) if intake.timed else (now_ms, now_ms))
        seen = [one for one in held.waiting if one[0] <= now_ms]
        for _, count, born in seen:
            rows += count
            births = _both(births, born)
        if not rows and not seen and not held.closing:
            self._sleep(at)
            return
        if rows and piece.intakes:
            held.taken_ms = now_ms
        held.closing = piece.closes_windows and bool(rows or seen)
        if seen:
            held.waiting = [one for one in held.waiting if one[0] > now_ms]
        held.rows, held.births = rows, births
        held.busy, held.asleep, held.committed, held.began_ms = True, False, False, now_ms
        work_ms = (piece.fixed_ms + self._warming_ms(piece, held)) * self.rng.lognormvariate(
            -(self.sigma**2) / 2, self.sigma
        )
        until_commit_ms = max(0.0, work_ms - piece.after_ms) + rows * piece.record_ms
        heapq.heappush(self.ends, (self._v + until_commit_ms, at))

    def _warming_ms(self, piece: BatchPiece, held: _State) -> float:
        """What a batch takes more because it is one of the first."""
        if not self.start:
            return 0.0
        return self.costs.first_ms * self.costs.cooling ** (held.batches + piece.rehearsed)

    def _sleep(self, at: int) -> None:
        """Waits for a commit, or for the next record of a source that gives few."""
        piece, held = self.pieces[at], self.states[at]
        held.asleep = not held.waiting
        if held.waiting:
            heapq.heappush(self.wakes, (min(moment for moment, _, _ in held.waiting) + self.costs.look_ms, at))
        rates = [intake.per_s for intake in piece.intakes if intake.per_s > 0]
        if rates:
            heapq.heappush(self.wakes, (max(self.now_ms + self.costs.look_ms, held.taken_ms + 1001.0 / max(rates)), at))

    def _end(self, at: int) -> None:
        """Goes on to the next batch."""
        held = self.states[at]
        held.busy = False
        held.batches += 1
        held.took_ms += self.now_ms - held.began_ms
        self._begin(at)

    def _commit(self, at: int) -> None:
        """Commits what a batch gives, and lets readers see it."""
        piece, held = self.pieces[at], self.states[at]
        held.committed = True
        rows, births = held.rows, held.births
        if piece.closes_windows:
            # A batch without records closes windows as well, and leaves none to close.
            taken = (rows, births) if births is not None else (0.0, held.before[1])
            (rows, births), held.before = held.before, taken
        for out in piece.outgoing:
            given = rows * out.share
            if out.stream is not None:
                for reader, delay_ms in self.readers.get(out.stream, ()):
                    self._tell(reader, self.now_ms + delay_ms, given, births if given else None)
            elif self.measuring and given and births is not None and out.query is not None:
                span = (self.now_ms - births[1], self.now_ms - births[0], given)
                self.spans.setdefault(out.query, []).append(span)

    def _tell(self, reader: int, seen_ms: float, rows: float, births: Births) -> None:
        held = self.states[reader]
        held.waiting.append((seen_ms, rows, births))
        if not held.busy and held.asleep:
            held.asleep = False
            heapq.heappush(self.wakes, (seen_ms + self.costs.look_ms, reader))


def _both(one: Births, other: Births) -> Births:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def mean_of(spans: list[Span]) -> float:
    """The mean latency over results."""
    rows = sum(count for _, _, count in spans)
    return sum((low + high) / 2 * count for low, high, count in spans) / rows


def quantile_of(spans: list[Span], share: float) -> float:
    """The latency that this share of the results does not exceed, each span taken as even."""
    wanted = share * sum(count for _, _, count in spans)
    least, greatest = min(low for low, _, _ in spans), max(high for _, high, _ in spans)
    for _ in range(40):
        middle = (least + greatest) / 2
        below = sum(count * min(1.0, max(0.0, (middle - low) / max(1e-9, high - low))) for low, high, count in spans)
        least, greatest = (middle, greatest) if below < wanted else (least, middle)
    return greatest
