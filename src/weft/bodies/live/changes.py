"""How does the plan in force change live? What the desk's machines ask for: the next plan, its tasks, the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from weft.bodies.live import journal
from weft.bodies.live.beside import Beside
from weft.bodies.live.journal import Held
from weft.bodies.live.moves import Asked, Move
from weft.bodies.live.parcels import pack, unpack
from weft.bodies.live.returning_queries import is_of_query
from weft.bodies.live.state import State
from weft.model import Placement
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery, TakeOver, Wish
from weft.plan.changing.difference import Recut, difference
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.next_plan import as_made, next_plan
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan
from weft.plan.changing.task import GoesOn, Task, homes_of
from weft.protocol.machine import Effect, Input
from weft.protocol.moving import (
    Ask,
    Change,
    Changed,
    Decide,
    Decided,
    End,
    Moot,
    NotChanged,
    Start,
    Turn,
    Undecided,
)
from weft.protocol.words import Parcel
from weft.spark.channels.keeping import await_readers, keep_for_readers


class Changes:
    """Holds the plan in force, works out what follows from a wish, performs it, and writes it down."""

    def __init__(self, state: State, rules: Rules) -> None:
        self.state = state
        self.rules = rules
        self.generations: dict[str, int] = {}
        self.gates: dict[str, Any] = {}
        self.plan: RunningPlan | None = None
        self.beside = Beside()
        self.asked: dict[int, Asked] = {}
        self.feed: Callable[[Input], None] = lambda fact: None
        self.hand_on: Callable[[Asked], None] = self.tell_desk
        self.clock_s: Callable[[], float] = time.monotonic
        self._next: dict[int, tuple[Recut, RunningPlan]] = {}
        self._told_last = 0
        self._last_commit_ms: dict[str, float] = {}
        self._work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="change")
        self._lock = threading.Lock()

    def begin(self, plan: RunningPlan, held: Held | None) -> None:
        """Let a plan be in force: the first, the one held, or one made of that while nothing ran."""
        self.plan = plan
        if held is not None:
            self.generations, self.gates = dict(held.generations), dict(held.gates)
            for note in self.state.path.glob("fragments/*/carried-*.json"):
                note.unlink()  # of a change that is decided, or never will be
            keep_for_readers(self.state.folders, self.fragments)
        await_readers(self.state.folders, self.fragments)
        if held is None or plan.number != held.number:
            journal.write(self.state, plan, self.generations, self.gates, self.beside)

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
        plan = self.in_force
        return tuple(Start(one.id, one.site, self._task(one, plan.fragments, plan.number)) for one in plan.fragments)

    def _task(self, fragment: Fragment, fragments: Sequence[Fragment], number: int) -> Parcel:
        """What a site must know to run a fragment of a plan, by what is known of it now."""
        generation = self.generations.get(fragment.id, 0)
        opened, positions = self.gates.get(fragment.id, (None, None))
        gate = positions if opened == generation else None
        return pack(Task(fragment, generation, gate, homes_of(fragment, fragments), number))

    def expect(self, wish: Wish) -> Asked:
        """A wish that is being worked out: it is asked for later, or ends before that."""
        return Asked(0, wish, self.clock_s(), [])

    def refuse(self, asked: Asked, why: str) -> None:
        """End a wish that is not asked for."""
        with self._lock:
            self._take_number(asked)
        asked.end("refused", why, 0.0)

    def ask(
        self, wish: Wish, weighed: Callable[[str | None], None] | None = None, expected: Asked | None = None
    ) -> Asked:
        """Ask for a change, maybe one that was expected; one that is impossible is refused at once.

        What the controller has weighed already goes on to the desk, and `weighed` is told how it ends.
        """
        wish = as_made(self.in_force.deployment, wish)
        with self._lock:
            asked = Asked(0, wish, self.clock_s(), []) if expected is None else expected
            asked.wish = wish
            if weighed is not None:
                asked.told = weighed
            number = self._take_number(asked)
            asked.moves = self._moves(asked)
        then = next_plan(self.in_force, wish, self.rules, number)
        if isinstance(then, Impossible):
            asked.end("refused", then.why, 0.0)
        else:
            self._note_starts(asked, then)
            if weighed is None:
                self.hand_on(asked)
            else:
                self.tell_desk(asked)
        return asked

    def tell_desk(self, asked: Asked) -> None:
        """The desk hears of a wish; epochs follow the numbers of changes, so one that others passed gets another."""
        with self._lock:
            if asked.number < self._told_last:
                del self.asked[asked.number]
                self._take_number(asked)
                for move in asked.moves:
                    move.number = asked.number
            self._told_last = asked.number
        self.feed(Ask(asked.number))

    def _take_number(self, asked: Asked) -> int:
        """Changes are numbered as they are asked for."""
        asked.number = max([self.in_force.number, *self.asked]) + 1
        self.asked[asked.number] = asked
        return asked.number

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
            case Decide(number=number, carried=carried):
                self._work.submit(self._decide, number, carried)
            case Changed(number=number, reason=reason):
                # Before the next change gets its turn, and readers of its own.
                keep_for_readers(self.state.folders, self.fragments)
                self.asked[number].end("done", reason, time.time() * 1000)
            case NotChanged(number=number, reason=reason):
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
        if isinstance(asked.wish, AddQuery | RemoveQuery):
            asked.interrupted = _interrupted(asked, change)
        ends = tuple(End(old.id, old.site, drains) for old, drains in change.ends)
        starts = tuple(Start(new.id, new.site, self._task(new, then.fragments, number)) for new in change.starts)
        self.feed(Change(number, ends, starts, tuple(old.id for old in change.lost) or None))

    def _decide(self, number: int, carried: tuple[tuple[str, Parcel], ...]) -> None:
        with self._lock:
            change, then = self._next[number]
            if self.in_force.number != number:
                for move in self.asked[number].watched:
                    last_ms = max((self._last_commit_ms.get(old.id, 0.0) for old in change.olds), default=0.0)
                    move.last_before_ms, move.ended_ms = last_ms or None, time.time() * 1000
                    move.olds = tuple(old.id for old in change.olds)
                try:
                    beside = self.beside.after(self.asked[number].wish)
                    self._write(change, then, beside, {name: unpack(held, GoesOn) for name, held in carried})
                except Exception as error:
                    self.feed(Undecided(number, f"{type(error).__name__}: {error}"))
                    return
                for move in self.asked[number].watched:
                    move.decided_ms = time.time() * 1000
            tasks = tuple((new.id, self._task(new, then.fragments, number)) for new in change.starts)
            self.feed(Decided(number, tasks))

    def _write(self, change: Recut, then: RunningPlan, beside: Beside, carried: dict[str, GoesOn]) -> None:
        """Let a plan be in force, with where all that it starts goes on; what was lost goes on as it was."""
        lost = [old.id for old in change.lost]
        for new in change.starts:
            if new.id not in lost and (new.id not in carried or carried[new.id].fragment != new):
                raise ValueError(f"{new.id} was not carried over as the plan has it")
        generations = {**self.generations, **{name: one.generation for name, one in carried.items()}}
        early = {name: (one.generation, one.gate) for name, one in carried.items() if one.gate is not None}
        kept = {name: held for name, held in self.gates.items() if held[0] == generations.get(name, 0)}
        gates = {**kept, **early}
        journal.write(self.state, then, generations, gates, beside)
        self.plan, self.generations, self.gates, self.beside = then, generations, gates, beside

    def forget_query(self, names: Sequence[str]) -> None:
        """Nothing is remembered of fragments that queries had before they were removed: they come again."""
        with self._lock:
            self.generations = {one: many for one, many in self.generations.items() if not _is_of_any(one, names)}
            self.gates = {one: gate for one, gate in self.gates.items() if not _is_of_any(one, names)}
            journal.write(self.state, self.in_force, self.generations, self.gates, self.beside)

    def committed(self, fragment: str, moment_ms: float) -> None:
        """A commit tells when a fragment last wrote and, after a move, how long the pause was.

        Sites tell of commits later than they make them, and not in the order of one another: what was committed before
        a move's fragments had ended came before its pause, whenever it is heard of.
        """
        self._last_commit_ms[fragment] = max(moment_ms, self._last_commit_ms.get(fragment, 0.0))
        for move in [move for asked in list(self.asked.values()) for move in asked.watched]:
            if not move.ended_ms or move.number > self.in_force.number:
                continue
            if moment_ms <= move.ended_ms and fragment in move.olds:
                move.paused(moment_ms)
            elif moment_ms > move.ended_ms and move.last_before_ms is not None and move.pause_ms is None:
                one = next((found for found in self.fragments if found.id == fragment), None)
                if one is not None and f"{move.query}.{move.operator}" in one.streams:
                    move.resumed(moment_ms)

    def close(self) -> None:
        """No more is done."""
        self._work.shutdown(wait=False, cancel_futures=True)


def _interrupted(asked: Asked, change: Recut) -> list[Move]:
    """An entry for each fragment of a query that stays and that a change ends and starts again, for its pause."""
    found = []
    for old, _ in change.ends:
        for new in change.starts:
            same = next((stream for stream in old.streams if stream in new.streams), None)
            if same is not None:
                query, _, name = same.partition(".")
                found.append(Move(asked.number, query, name, new.site, asked.wish.reason, asked.at_s, old.site))
    return found


def _is_of_any(name: str, queries: Sequence[str]) -> bool:
    return any(is_of_query(name, query) for query in queries)
