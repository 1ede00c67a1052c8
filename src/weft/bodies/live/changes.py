"""How does a placement change live? The body's part: what to change, warm starts, drained channels, the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from weft.bodies.live.resuming import JOURNAL
from weft.bodies.live.state import State
from weft.model import Deployment, Placement
from weft.plan.changing.difference import Recut, recut, why_impossible
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Passes, Stateful
from weft.plan.dataflow.ordering import guards_of
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
from weft.spark.engine import SparkEngine
from weft.spark.fragments.operators import BadOperator
from weft.spark.fragments.outputs import Commit

DRAIN_LOOK_S = 0.05
# What a pause goes by with: ending the old at a batch boundary, deciding, starting the new, and its first batch.
SPENT = ("ending", "deciding", "starting", "first_batch")
DRAIN_S_MAX = 600.0


@dataclass(slots=True)
class Move:
    """One move that was asked for, and what became of it."""

    number: int
    query: str
    operator: str
    to: str
    reason: str
    at_s: float
    start: str = ""
    state: str = "asked"
    why: str = ""
    last_before_ms: float | None = None
    pause_ms: float | None = None
    ended_ms: float = 0.0
    decided_ms: float = 0.0
    up_ms: float = 0.0
    spent_ms: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As the commands print it; what was refused says why."""
        told = {
            "query": self.query,
            "operator": self.operator,
            "from": self.start,
            "to": self.to,
            "at_s": round(self.at_s, 3),
            "pause_ms": self.pause_ms,
            "reason": self.reason,
        }
        if self.state != "done":
            return {**told, "state": self.state, "why": self.why}
        return {**told, "spent_ms": self.spent_ms} if self.spent_ms else told

    def resumed(self, moment_ms: float) -> None:
        """The first commit after: how long the pause was, and what it went by with."""
        assert self.last_before_ms is not None
        self.pause_ms = round(moment_ms - self.last_before_ms, 1)
        up_ms = min(self.up_ms or moment_ms, moment_ms)
        moments = (self.last_before_ms, self.ended_ms, self.decided_ms, up_ms, moment_ms)
        spent = (max(0.0, after - before) for before, after in pairwise(moments))
        self.spent_ms = dict(zip(SPENT, (round(each, 1) for each in spent), strict=True))


class Changes:
    """Works changes of the placement out, performs them, and remembers which plan is in force."""

    def __init__(
        self, deployment: Deployment, state: State, engine: SparkEngine, rules: tuple[Stateful, Passes]
    ) -> None:
        self.deployment = deployment
        self.state = state
        self.engine = engine
        self.rules = rules
        self.number = 0
        self.placement = Placement()
        self.fragments: tuple[Fragment, ...] = ()
        self.moves: dict[int, Move] = {}
        self.feed: Callable[[Input], None] = lambda fact: None
        self.clock_s: Callable[[], float] = time.monotonic
        self._recuts: dict[int, tuple[Recut, Placement]] = {}
        self._last_commit_ms: dict[str, float] = {}
        self._work = ThreadPoolExecutor(max_workers=4, thread_name_prefix="change")
        self._lock = threading.Lock()
        self._gone = threading.Event()

    def begin(self, placement: Placement, fragments: tuple[Fragment, ...]) -> None:
        """Take up the journal, or start one with the plan given."""
        held = self.state.read(JOURNAL)
        if held is None:
            self.placement, self.fragments = placement, fragments
            self._write(0, placement, fragments, {})
        else:
            self.number = held["number"]
            self.placement = _placement(held["placement"], placement)
            self.fragments = tuple(msgspec.convert(value, Fragment) for value in held["fragments"])
            self.engine.adopt_plan(self.fragments, held["generations"], held["gates"])

    def starts(self) -> tuple[Start, ...]:
        """What the plan in force wants to run."""
        return tuple(Start(fragment.id, fragment.site) for fragment in self.fragments)

    def ask(self, query: str, operator: str, to: str, reason: str) -> Move:
        """Ask for a move; one that is impossible is refused at once."""
        with self._lock:
            number = max([self.number, *self.moves]) + 1
            move = Move(number, query, operator, to, reason, self.clock_s())
            self.moves[number] = move
        move.why = self._why_not(move) or ""
        if move.why:
            move.state = "refused"
        else:
            move.start = self.placement.home(f"{query}.{operator}")
            self.feed(Ask(number))
        return move

    def _why_not(self, move: Move) -> str | None:
        queries = {query.name: query for query in self.deployment.queries}
        if move.query not in queries:
            return f"there is no query {move.query}; there are: {', '.join(queries)}"
        names = [operator.name for operator in queries[move.query].operators]
        if move.operator not in names:
            return f"query {move.query} has no operator {move.operator}; it has: {', '.join(names)}"
        if self.placement.home(f"{move.query}.{move.operator}") == move.to:
            return f"{move.query}.{move.operator} runs at {move.to} already"
        moved = self._moved(move)
        reasons = (
            why_impossible(self.deployment, moved, move.query, name, move.to)
            for name in (move.operator, *guards_of(queries[move.query], move.operator))
        )
        return next((reason for reason in reasons if reason), None)

    def _moved(self, move: Move) -> Placement:
        """The placement once an operator has moved, and with it what puts its records in order."""
        start = self.placement.home(f"{move.query}.{move.operator}")
        moved = self.placement.put(f"{move.query}.{move.operator}", move.to, f"moved from {start}: {move.reason}")
        for guard in guards_of(self.deployment.query(move.query), move.operator):
            moved = moved.put(f"{move.query}.{guard}", move.to, f"goes with {move.operator}")
        return moved

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
                self._end(number, "done", reason)
            case NotChanged(number=number, reason=reason):
                self.engine.note_homes(self.fragments)
                self._end(number, "refused", reason)
            case _:
                return False
        return True

    def _turn(self, number: int) -> None:
        move = self.moves[number]
        why_not = self._why_not(move)
        if why_not:
            self.feed(Moot(number, why_not))
            return
        move.start = self.placement.home(f"{move.query}.{move.operator}")
        placement = self._moved(move)
        change = recut(self.deployment, self.fragments, placement, *self.rules)
        self._recuts[number] = (change, placement)
        self.engine.note_homes(change.fragments)
        ends = tuple(End(old.id, old.site, drains) for old, drains in change.ends)
        starts = tuple(Start(new.id, new.site) for new in change.starts)
        self.feed(Change(number, ends, starts))

    def _warm(self, number: int, fragment: str) -> None:
        change, _ = self._recuts[number]
        new = next(one for one in change.starts if one.id == fragment)
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
            if self.number == number:
                self.feed(Decided(number))
                return
            change, placement = self._recuts[number]
            ends = [old for old, _ in change.ends]
            last_ms = max((self._last_commit_ms.get(old.id, 0.0) for old in ends), default=0.0)
            move = self.moves[number]
            move.last_before_ms, move.ended_ms = last_ms or None, time.time() * 1000
            try:
                generations = self.engine.carry_over(ends, change.starts)
                self._write(number, placement, change.fragments, {**self.engine.generations, **generations})
            except Exception as error:
                self.feed(Undecided(number, f"{type(error).__name__}: {error}"))
                return
            self.engine.changed(change.fragments, generations)
            self.number, self.placement, self.fragments = number, placement, change.fragments
            move.decided_ms = time.time() * 1000
            self.feed(Decided(number))

    def _write(
        self, number: int, placement: Placement, fragments: tuple[Fragment, ...], generations: dict[str, int]
    ) -> None:
        self.state.write(
            JOURNAL,
            {
                "number": number,
                "placement": placement.as_json(),
                "fragments": [asdict(fragment) for fragment in fragments],
                "generations": generations,
                "gates": self.engine.gates,
            },
        )

    def _end(self, number: int, state: str, why: str) -> None:
        move = self.moves[number]
        move.state, move.why, move.up_ms = state, why, time.time() * 1000

    def committed(self, commit: Commit) -> None:
        """A commit tells when a fragment last wrote and, after a move, how long the pause was."""
        moment = commit.manifest.committed_ms
        self._last_commit_ms[commit.fragment] = moment
        for move in list(self.moves.values()):
            if move.last_before_ms is None or move.pause_ms is not None or move.number > self.number:
                continue
            fragment = self.engine.fragments.get(commit.fragment)
            if fragment is not None and fragment.query == move.query and move.operator in fragment.operators:
                move.resumed(moment)

    def close(self) -> None:
        """No more is done."""
        self._gone.set()
        self._work.shutdown(wait=False, cancel_futures=True)
        self.engine.close()


def _placement(homes: dict[str, dict[str, list[str]]], planned: Placement) -> Placement:
    """The placement of a journal; reasons are the planner's where nothing was moved since."""
    placement = Placement()
    for query, operators in homes.items():
        for operator, sites in operators.items():
            stream = f"{query}.{operator}"
            as_planned = stream in planned.homes and list(planned.sites_of(stream)) == sites
            reason = planned.reasons.get(stream, "") if as_planned else "moved in an earlier run"
            placement = placement.put(stream, sites[0], reason)
    return placement
