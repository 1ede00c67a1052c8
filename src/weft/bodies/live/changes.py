"""How does the plan in force change live? What the desk's machines ask for: plans, preparation, the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from weft.bodies.live import journal
from weft.bodies.live.journal import Held
from weft.bodies.live.moves import Asked, Move
from weft.bodies.live.state import State
from weft.model import Placement
from weft.model.wishes import MoveTo, TakeOver, Wish
from weft.plan.changing.difference import Recut, difference
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.next_plan import next_plan
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan
from weft.protocol.machine import Effect, Input
from weft.protocol.moving import (
    Ask,
    Change,
    Changed,
    ChannelDrained,
    Cool,
    Decide,
    Decided,
    Drain,
    End,
    Moot,
    NotChanged,
    NotWarmed,
    Start,
    Turn,
    Undecided,
    Warm,
    Warmed,
    least_epoch,
)
from weft.spark.fragments.operators import BadOperator

DRAIN_LOOK_S = 0.05
DRAIN_S_MAX = 600.0


class Fragments(Protocol):
    """What a change needs of whatever runs the fragments."""

    @property
    def generations(self) -> Mapping[str, int]:
        """How often each fragment was cut anew."""

    @property
    def gates(self) -> Mapping[str, Any]:
        """Where those that were started early went on."""

    def warm(self, fragment: Fragment, tick: int, ends: Sequence[Fragment]) -> None:
        """Make a fragment ready before its turn; BadOperator where it never can run."""

    def discard_prepared(self, fragment: str) -> None:
        """Forget what was made ready."""

    def channel_drained(self, stream: str, fragment: str) -> bool:
        """True if a fragment has written the results of all that a channel holds."""

    def carry_over(self, ends: Sequence[Fragment], starts: Sequence[Fragment]) -> dict[str, int]:
        """Write the checkpoints of what starts, from what has ended; the generation of each that starts."""

    def changed(self, fragments: tuple[Fragment, ...], generations: dict[str, int]) -> None:
        """Another cut is in force."""

    def adopt_plan(self, fragments: Sequence[Fragment], generations: dict[str, int], gates: dict[str, Any]) -> None:
        """A cut is in force since before this process."""

    def note_homes(self, fragments: Sequence[Fragment]) -> None:
        """Know at which site each stream is written."""

    def close(self) -> None:
        """Leave nothing behind that was made ready."""


class Changes:
    """Holds the plan in force, works out what follows from a wish, performs it, and writes it down."""

    def __init__(self, state: State, engine: Fragments, rules: Rules) -> None:
        self.state = state
        self.engine = engine
        self.rules = rules
        self.plan: RunningPlan | None = None
        self.asked: dict[int, Asked] = {}
        self.feed: Callable[[Input], None] = lambda fact: None
        self.hand_on: Callable[[Asked], None] = lambda asked: self.feed(Ask(asked.number))
        self.clock_s: Callable[[], float] = time.monotonic
        self._next: dict[int, tuple[Recut, RunningPlan]] = {}
        self._last_commit_ms: dict[str, float] = {}
        self._work = ThreadPoolExecutor(max_workers=4, thread_name_prefix="change")
        self._lock = threading.Lock()
        self._gone = threading.Event()

    def begin(self, plan: RunningPlan, held: Held | None) -> None:
        """Let a plan be in force: the first, the one held, or one made of that while nothing ran."""
        self.plan = plan
        if held is None:
            journal.write(self.state, plan, {}, self.engine.gates)
            return
        self.engine.adopt_plan(plan.fragments, held.generations, held.gates)
        if plan.number != held.number:
            journal.write(self.state, plan, self.engine.generations, self.engine.gates)

    @property
    def in_force(self) -> RunningPlan:
        """The plan in force."""
        assert self.plan is not None, "a run has a plan once it has begun"
        return self.plan

    @property
    def placement(self) -> Placement:
        """Where everything runs."""
        return self.in_force.placement

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What runs."""
        return () if self.plan is None else self.plan.fragments

    @property
    def moves(self) -> list[Move]:
        """Every operator that was asked to move, and what became of it."""
        return [move for asked in list(self.asked.values()) for move in asked.moves]

    def starts(self) -> tuple[Start, ...]:
        """What the plan in force wants to run."""
        return tuple(Start(fragment.id, fragment.site) for fragment in self.fragments)

    def ask(self, wish: Wish) -> Asked:
        """Ask for a change; one that is impossible is refused at once."""
        with self._lock:
            number = max([self.in_force.number, *self.asked]) + 1
            asked = Asked(number, wish, self.clock_s(), [])
            asked.moves = self._moves(asked)
            self.asked[number] = asked
        then = next_plan(self.in_force, wish, self.rules, number)
        if isinstance(then, Impossible):
            asked.end("refused", then.why, 0.0)
        else:
            self._note_starts(asked, then)
            self.hand_on(asked)
        return asked

    def _moves(self, asked: Asked) -> list[Move]:
        """An entry for each operator that a wish names."""
        homes = asked.wish.homes if isinstance(asked.wish, MoveTo | TakeOver) else {}
        return [
            Move(asked.number, *stream.partition(".")[::2], to, asked.wish.reason, asked.at_s)
            for stream, to in homes.items()
        ]

    def _note_starts(self, asked: Asked, then: RunningPlan) -> None:
        """Where operators are that will move; those that a wish does not name have an entry all the same."""
        known = {f"{move.query}.{move.operator}": move for move in asked.moves}
        for stream, home in self.placement.homes.items():
            to = then.placement.homes.get(stream, home)
            if stream in known:
                known[stream].start = home
            elif to != home and not isinstance(asked.wish, MoveTo | TakeOver):
                query, _, name = stream.partition(".")
                asked.moves.append(Move(asked.number, query, name, to, asked.wish.reason, asked.at_s, home))

    def perform(self, effect: Effect) -> bool:
        """Do what the mover asks; False where the effect is not about changes."""
        match effect:
            case Turn(number=number):
                self._turn(number)
            case Warm(number=number, fragment=fragment):
                self._work.submit(self._warm, number, fragment)
            case Cool(fragment=fragment):
                self.engine.discard_prepared(fragment)
            case Drain(number=number, channel=channel, fragment=fragment):
                self._work.submit(self._drain, number, channel, fragment)
            case Decide(number=number):
                self._work.submit(self._decide, number)
            case Changed(number=number, reason=reason):
                self.asked[number].end("done", reason, time.time() * 1000)
            case NotChanged(number=number, reason=reason):
                self.engine.note_homes(self.fragments)
                self.asked[number].end("refused", reason, time.time() * 1000)
            case _:
                return False
        return True

    def _turn(self, number: int) -> None:
        asked = self.asked[number]
        then = next_plan(self.in_force, asked.wish, self.rules, number)
        if isinstance(then, Impossible):
            self.feed(Moot(number, then.why))
            return
        self._note_starts(asked, then)
        gone = asked.wish.site if isinstance(asked.wish, TakeOver) else None
        change = difference(self.in_force, then, gone)
        self._next[number] = (change, then)
        self.engine.note_homes(then.fragments)
        ends = tuple(End(old.id, old.site, drains) for old, drains in change.ends)
        starts = tuple(Start(new.id, new.site) for new in change.starts)
        self.feed(Change(number, ends, starts, tuple(old.id for old in change.lost) or None))

    def _warm(self, number: int, fragment: str) -> None:
        change, _ = self._next[number]
        new = next(one for one in change.starts if one.id == fragment)
        if new.id in [old.id for old in change.lost]:
            self.feed(Warmed(number, fragment))  # it may be alive: nothing of it is touched before it is fenced
            return
        try:
            self.engine.warm(new, least_epoch(number), [old for old, _ in change.ends])
        except BadOperator as error:
            self.feed(NotWarmed(number, fragment, str(error), impossible=True))
        except Exception as error:
            self.feed(NotWarmed(number, fragment, str(error)))
        else:
            self.feed(Warmed(number, fragment))

    def _drain(self, number: int, channel: str, fragment: str) -> None:
        deadline = time.monotonic() + DRAIN_S_MAX
        while not self._gone.wait(DRAIN_LOOK_S) and time.monotonic() < deadline:
            if self.engine.channel_drained(channel, fragment):
                self.feed(ChannelDrained(number, channel, fragment))
                return

    def _decide(self, number: int) -> None:
        with self._lock:
            if self.in_force.number == number:
                self.feed(Decided(number))
                return
            change, then = self._next[number]
            lost = [old.id for old in change.lost]
            last_ms = max((self._last_commit_ms.get(old.id, 0.0) for old in change.olds), default=0.0)
            for move in self.asked[number].moves:
                move.last_before_ms, move.ended_ms = last_ms or None, time.time() * 1000
            try:
                ends = [old for old, _ in change.ends]
                # What was lost goes on from its own checkpoint, behind the fence of the epoch that takes over.
                generations = self.engine.carry_over(ends, [new for new in change.starts if new.id not in lost])
                journal.write(self.state, then, {**self.engine.generations, **generations}, self.engine.gates)
            except Exception as error:
                self.feed(Undecided(number, f"{type(error).__name__}: {error}"))
                return
            self.engine.changed(then.fragments, generations)
            self.plan = then
            for move in self.asked[number].moves:
                move.decided_ms = time.time() * 1000
            self.feed(Decided(number))

    def committed(self, fragment: str, moment_ms: float) -> None:
        """A commit tells when a fragment last wrote and, after a move, how long the pause was."""
        self._last_commit_ms[fragment] = moment_ms
        for move in self.moves:
            if move.last_before_ms is None or move.pause_ms is not None or move.number > self.in_force.number:
                continue
            one = next((found for found in self.fragments if found.id == fragment), None)
            if one is not None and one.query == move.query and move.operator in one.operators:
                move.resumed(moment_ms)

    def close(self) -> None:
        """No more is done."""
        self._gone.set()
        self._work.shutdown(wait=False, cancel_futures=True)
        self.engine.close()
