"""The ordering unit of a stream (Order §4.1): late records wait for their place, without a number to guess.

`take` is given the event times of records as they arrive and tells which records leave, in order; the records
themselves stay with the caller, who knows them by the numbers they were taken under, 0 for the first. Whatever
comes, what leaves is a permutation of what was taken, and sorted but for what is flagged: late, or, where records leave
ahead of the hold (`speculate`), a revision. No clock is read: `rest`
says that the stream has been silent too long, `end` that nothing will follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from weft.model import Order
from weft.protocol.ordering import batch
from weft.protocol.ordering.delays import WINDOW
from weft.protocol.ordering.fields import (
    AHEAD,
    AHEAD_MAX,
    AHEAD_MIN,
    AHEAD_SINCE,
    AT,
    BUDGET,
    BURST,
    CLOCK,
    CLOCKED,
    FLOATS,
    HEARD,
    HELD,
    HOLD,
    INTS,
    KNOWN,
    LATE,
    MEASURED,
    NEWS,
    RELEASED,
    RELEASED_ANY,
    REVISION,
    STARTED,
    TAKEN,
    TIMES,
    TOLD,
    TOLD_AT,
    TOO_LATE,
    WORST,
    Bools,
    Flags,
    Floats,
    Ints,
    Times,
)

RISE = 1.1
"""A hold is announced again when it has risen by so much."""


@dataclass(frozen=True, slots=True)
class Left:
    """Which records leave, in order, and how; `announce` is a hold to tell downstream.

    `wait` is what each had waited, in stream time; `delays` and `holds` go by the records taken.
    """

    numbers: Ints
    flags: Flags
    wait: Floats
    delays: Floats
    holds: Floats
    announce: float | None

    @property
    def late(self) -> Bools:
        """Which of them could not be put in their place."""
        return np.equal(self.flags, TOO_LATE)

    @property
    def revision(self) -> Bools:
        """Which of them are late only because others left ahead of the hold."""
        return np.equal(self.flags, REVISION)


class _Snapshot(msgspec.Struct, array_like=True):
    kind: str
    by_share: bool
    ints: bytes
    floats: bytes
    marks: bytes
    ring: bytes
    ranked: bytes
    held_t: bytes
    held_n: bytes
    ahead_t: bytes
    ahead_n: bytes
    announced: float


class Ordering:
    """The ordering unit of one stream, or of one partition of it."""

    __slots__ = (
        "ahead_n", "ahead_t", "announced", "floats", "held_n", "held_t", "ints", "kind", "marks", "order", "ranked",
        "ring",
    )  # fmt: skip

    def __init__(self, order: Order, real: bool = False) -> None:
        self.order = order
        self.kind: Any = np.float64 if real else np.int64
        self.ints = np.zeros(INTS, np.int64)
        self.floats = np.zeros(FLOATS)
        self.marks = np.zeros(TIMES, self.kind)
        self.ring = np.zeros(WINDOW)
        self.ranked = np.zeros(WINDOW)
        self.held_t: Times = np.zeros(0, self.kind)
        self.held_n: Ints = np.zeros(0, np.int64)
        self.ahead_t: Times = np.zeros(AHEAD_MAX, self.kind)
        self.ahead_n = np.zeros(AHEAD_MAX, np.int64)
        self.announced = 0.0

    @property
    def hold(self) -> float:
        """How long records are held back now, in stream time."""
        return float(self.floats[HOLD])

    @property
    def held(self) -> int:
        """Records that wait now."""
        return int(self.ints[HELD] + self.ints[AHEAD])

    @property
    def taken(self) -> int:
        """Records taken so far."""
        return int(self.ints[TAKEN])

    @property
    def late(self) -> int:
        """Records so far that were older than one already released."""
        return int(self.ints[LATE])

    @property
    def clock(self) -> float | None:
        """The stream's own clock, None before its first record."""
        return self.marks[CLOCK].item() if self.ints[CLOCKED] else None

    def holding(self) -> Ints:
        """The numbers of the records that wait now, sorted."""
        held = [self.held_n[: self.ints[HELD]], self.ahead_n[: self.ints[AHEAD]]]
        return np.sort(np.concatenate(held))

    def told(self, hold: float) -> None:
        """Upstream holds records back so long: expect it here too, and start without looking first.

        It counts until a window of records has shown how late they really are.
        """
        self.floats[TOLD] = self.floats[HEARD] = hold
        self.floats[HOLD] = max(self.floats[HOLD], hold)
        self.ints[TOLD_AT], self.ints[STARTED] = NEWS, 1

    def hear(self, hold: float) -> None:
        """Take note of what upstream holds back now: only a rise of it means anything here."""
        if hold > self.floats[HEARD] * RISE:
            self.told(hold)
        elif hold < self.floats[HEARD] / RISE:
            self.floats[HEARD] = hold

    def take(self, times: Times, known: Bools | None = None, at_once: bool = False) -> Left:
        """Take records in their order of arrival, or `at_once` as one batch within which that order means nothing.

        Records whose time is not `known` cannot be put in order: they leave at once, flagged.
        """
        times = np.ascontiguousarray(times, self.kind)
        known = np.ones(len(times), np.bool_) if known is None else np.asarray(known, np.bool_)
        if self.kind is np.float64:
            known = known & np.isfinite(times)
        if at_once:
            numbers, flags, wait, delays = batch.take(self, times, known)
            return Left(numbers, flags, wait, delays, np.full(len(times), self.hold), self._announce())
        # Compiled code is only loaded by those who need it.
        from weft.protocol.ordering import steps

        self._make_room(len(times))
        room = len(times) + self.held
        out, flags, wait = np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room)
        delays, holds = np.empty(len(times)), np.empty(len(times))
        share = -1.0 if self.order.late_max is None else self.order.late_max
        count = steps.take(
            self.ints, self.floats, self.marks, self.ring, self.ranked, self.held_t, self.held_n, self.ahead_t,
            self.ahead_n, times, known, share, self.order.lambda_, 1 - self.order.speculate, self.order.held_max, out,
            flags, wait, delays, holds,
        )  # fmt: skip
        self._give_back_room()
        return Left(out[:count], flags[:count], wait[:count], delays, holds, self._announce())

    def rest(self) -> Left:
        """The stream is silent: let all that is held go; who comes later and is older is late."""
        few = self.ints[AHEAD] < AHEAD_MIN or 2 * self.ints[AHEAD] <= self.ints[AHEAD_SINCE]
        return self._let_go(flag_ahead=bool(few))

    def end(self) -> Left:
        """Nothing follows: let all go, also those whose leap ahead nobody could confirm."""
        return self._let_go(flag_ahead=False)

    def _let_go(self, flag_ahead: bool) -> Left:
        held, ahead = int(self.ints[HELD]), int(self.ints[AHEAD])
        times = np.concatenate([self.held_t[:held], self.ahead_t[:ahead]])
        numbers = np.concatenate([self.held_n[:held], self.ahead_n[:ahead]])
        late = np.arange(held + ahead) >= (held if flag_ahead else held + ahead)
        order = np.lexsort((numbers, times, late))
        trusted = times[~late]
        if len(trusted):
            self.marks[CLOCK] = max(self.marks[CLOCK], trusted.max())
            self.marks[RELEASED], self.ints[RELEASED_ANY] = trusted.max(), 1
        wait = np.where(late, 0.0, (self.marks[CLOCK] - times).astype(np.float64))
        self.ints[HELD] = self.ints[AHEAD] = self.ints[AHEAD_SINCE] = 0
        self.ints[STARTED] = 1
        self._give_back_room()
        none = np.empty(0)
        return Left(numbers[order], late[order].astype(np.int8), wait[order], none, none, self._announce())

    def _announce(self) -> float | None:
        if self.ints[STARTED] and self.hold > self.announced * RISE:
            self.announced = self.hold
            return self.hold
        if self.hold < self.announced / RISE:
            self.announced = self.hold
        return None

    def _make_room(self, more: int) -> None:
        needed = int(self.ints[HELD]) + more + AHEAD_MAX
        if needed > len(self.held_t):
            size = needed + needed // 2
            self.held_t = np.concatenate([self.held_t, np.empty(size - len(self.held_t), self.kind)])
            self.held_n = np.concatenate([self.held_n, np.empty(size - len(self.held_n), np.int64)])

    def _give_back_room(self) -> None:
        held = int(self.ints[HELD])
        if len(self.held_t) > 4096 and len(self.held_t) > 4 * held:
            self.held_t, self.held_n = self.held_t[: 2 * held].copy(), self.held_n[: 2 * held].copy()

    def snapshot(self) -> bytes:
        """All that is known and the times held, as bytes; the records lie with the caller."""
        held, ahead = int(self.ints[HELD]), int(self.ints[AHEAD])
        return msgspec.msgpack.encode(
            _Snapshot(
                "real" if self.kind is np.float64 else "whole",
                self.order.late_max is not None,
                self.ints.tobytes(),
                self.floats.tobytes(),
                self.marks.tobytes(),
                self.ring.tobytes(),
                self.ranked.tobytes(),
                self.held_t[:held].tobytes(),
                self.held_n[:held].tobytes(),
                self.ahead_t[:ahead].tobytes(),
                self.ahead_n[:ahead].tobytes(),
                self.announced,
            )
        )

    @classmethod
    def restored(cls, order: Order, snapshot: bytes) -> Ordering:
        """The machine that gave a snapshot; with another rule it keeps what both can use: records and clock."""
        read = msgspec.msgpack.decode(snapshot, type=_Snapshot)
        machine = cls(order, real=read.kind == "real")
        machine.ints[:] = np.frombuffer(read.ints, np.int64)
        floats = np.frombuffer(read.floats)  # fewer where an earlier version kept no budget
        machine.floats[: len(floats)] = floats
        machine.marks[:] = np.frombuffer(read.marks, machine.kind)
        if read.by_share == (order.late_max is not None):
            machine.ring[:] = np.frombuffer(read.ring)
            machine.ranked[:] = np.frombuffer(read.ranked)
        else:
            machine.forget_delays()
        machine.held_t = np.frombuffer(read.held_t, machine.kind).copy()
        machine.held_n = np.frombuffer(read.held_n, np.int64).copy()
        machine.ahead_t[: machine.ints[AHEAD]] = np.frombuffer(read.ahead_t, machine.kind)
        machine.ahead_n[: machine.ints[AHEAD]] = np.frombuffer(read.ahead_n, np.int64)
        machine.announced = read.announced
        return machine

    def forget_delays(self) -> None:
        """Learn the hold anew, keeping at least the present one until the window has filled."""
        self.floats[TOLD], self.ints[TOLD_AT] = self.floats[HOLD], NEWS
        self.ints[KNOWN] = self.ints[AT] = self.ints[MEASURED] = self.ints[LATE] = 0
        self.floats[BUDGET] = self.floats[BURST] = self.floats[WORST] = 0.0
