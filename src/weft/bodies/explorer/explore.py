"""Breadth first over every order; the first broken claim gives the shortest story that breaks it.

Python finds out what each step means (`alphabet`) and asks the claims (`claims`); the rest is compiled (`kernel`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from weft.bodies.explorer import kernel, state_graph
from weft.bodies.explorer.alphabet import Alphabet
from weft.bodies.explorer.claims import Answers, Eyes
from weft.bodies.explorer.story import Path, told
from weft.bodies.explorer.values import FAULTS
from weft.bodies.explorer.world import World

ENDS = "every wait ends: from here no quiet state can be reached"
CIRCLE = "every run ends: these steps can go on in a circle"
SENT = "no run sends too many messages"
STEPS_LEGAL = "every step is legal"
BOUNDED = "the world is explored whole"
BATCH = 1 << 14


class Violation(NamedTuple):
    """A broken claim and the shortest story that breaks it."""

    world: str
    claim: str
    story: tuple[str, ...]


class Result(NamedTuple):
    """What an exploration found; `sent_max` is the most messages that any run sends, where every run ends."""

    world: str
    states: int
    steps: int
    violations: tuple[Violation, ...]
    sent_max: int | None = None


class _Stop(Exception):
    """Enough was found."""


class _Seen:
    """The states known: their marks, which state each was first reached from, and what is quiet."""

    def __init__(self) -> None:
        self.count = 0
        self.table = np.full(1 << 12, -1, np.int32)
        self.marks = np.zeros((1 << 11, 2), np.uint64)
        self.parents: list[Any] = []
        self.quiet: list[Any] = []

    def intern(self, marks: Any, count: int) -> tuple[Any, Any]:
        """The numbers of states, and which of them are new."""
        targets = np.empty(count, np.uint32)
        fresh = np.empty(count, np.int64)
        done = new = 0
        while True:
            done, more = kernel.intern(self.table, self.marks, marks, done, count, self.count, targets, fresh[new:])
            new += more
            self.count += more
            if done == count:
                return targets, fresh[:new]
            self.table = np.full(4 * self.table.size, -1, np.int32)
            larger = np.zeros((self.table.size // 2 + 1, 2), np.uint64)
            larger[: self.count] = self.marks[: self.count]
            self.marks = larger
            kernel.retable(self.table, self.marks, self.count)


class _Steps:
    """The steps without faults between states, in the order of where they start."""

    def __init__(self) -> None:
        self.counts: list[Any] = []
        self.targets: list[Any] = []
        self.sent: list[Any] = []

    def add(self, size: int, sources: Any, targets: Any, sent: Any, sound: Any) -> None:
        """Adds the steps of the next states, `sources` counted from the first of them."""
        sources, targets, sent = sources[sound], targets[sound], sent[sound]
        order = np.argsort(sources, kind="stable")
        self.counts.append(np.bincount(sources, minlength=size).astype(np.uint32))
        self.targets.append(targets[order])
        self.sent.append(sent[order])

    def arrays(self) -> tuple[Any, Any, Any]:
        """Where the steps of each state start, where they lead, and how many messages they send."""
        counts = np.concatenate(self.counts)
        starts = np.zeros(counts.size + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        targets, sent = np.concatenate(self.targets), np.concatenate(self.sent)
        self.counts, self.targets, self.sent = [], [], []
        return starts, targets, sent


class Exploration:
    """One exploration of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alphabet = Alphabet(world)
        self.eyes = Eyes(self.alphabet)
        self.claims = {claim: Answers(self.eyes, holds) for claim, holds in world.invariants.items()}
        self.quiet = Answers(self.eyes, lambda view: view.told and world.quiet(view))
        self.seen = _Seen()
        self.edges = _Steps()
        self.steps = 0
        self.broken: dict[str, int] = {}
        self.missing = np.empty((BATCH * 8, 2), np.int64)

    def run(self) -> Result:
        """Explores all, or up to the first violation where the world does not ask for more."""
        sent_max = None
        with suppress(_Stop):
            self.explore()
            sent_max = self.conclude()
        path = Path(self.alphabet, self.seen.marks, np.concatenate(self.seen.parents))
        found = sorted(self.broken.items(), key=lambda one: one[1])
        violations = tuple(Violation(self.world.name, claim, told(path.to(at))) for claim, at in found)
        return Result(self.world.name, self.seen.count, self.steps, violations, sent_max)

    def found(self, claim: str, at: int) -> None:
        """A claim is broken in a state; the first time counts."""
        self.broken.setdefault(claim, at)
        if not self.world.collect:
            raise _Stop

    def explore(self) -> None:
        """Every state, level by level."""
        row = self.alphabet.first()
        rows, marks = row.reshape(1, -1), self.alphabet.least_mark(row).reshape(1, 2)
        self.seen.intern(marks, 1)
        self.seen.parents.append(np.zeros(1, np.uint32))
        todo: list[Any] = [(rows, marks)]
        self.judge(rows, 0)
        first = at = 0
        while at < len(todo):
            rows, marks = todo[at]
            todo[at] = None
            at += 1
            for start in range(0, len(rows), BATCH):
                some = slice(start, start + BATCH)
                new = self.expand(rows[some], marks[some], first)
                first += len(rows[some])
                if len(new[0]):
                    todo.append(new)
                if self.seen.count > self.world.states_max:
                    self.broken[f"{BOUNDED}: it has more than {self.world.states_max} states"] = first - 1
                    raise _Stop

    def expand(self, rows: Any, marks: Any, first: int) -> tuple[Any, Any]:
        """All steps from some states; the rows and marks of the new ones."""
        alphabet = self.alphabet
        again = np.arange(len(rows))
        new_rows, new_marks = [], []
        sources: list[Any] = []
        targets: list[Any] = []
        sent: list[Any] = []
        sound: list[Any] = []
        illegal = -1
        capacity = 4096 + 8 * len(rows)
        while len(again):
            rows = alphabet.widened(rows)
            out = (
                np.empty((capacity, rows.shape[1]), np.int32), np.empty((capacity, 2), np.uint64),
                np.empty(capacity, np.int64), np.empty(capacity, np.bool_), np.empty(capacity, np.uint8),
            )  # fmt: skip
            left = np.empty(len(again), np.int64)
            count, lacks, redo, bad, value, op = kernel.expand(
                rows, marks, again, *alphabet.tables(), alphabet.places[FAULTS], out, self.missing, left
            )
            if bad >= 0 and (illegal < 0 or bad < illegal):
                illegal, why = bad, alphabet.illegal[int(value), int(op)]
            found, fresh = self.seen.intern(out[1], count)
            self.seen.parents.append((first + out[2][fresh]).astype(np.uint32))
            for held, one in ((sources, out[2]), (sent, out[4]), (sound, out[3])):
                held.append(one[:count].copy())
            targets.append(found)
            if len(fresh):
                new_rows.append(out[0][fresh])
                new_marks.append(out[1][fresh])
            for lacking, wanted in np.unique(self.missing[:lacks], axis=0):
                alphabet.resolve(int(lacking), int(wanted))
            again = left[:redo]
        self.steps += sum(len(one) for one in targets)
        self.edges.add(len(rows), *(np.concatenate(one) for one in (sources, targets, sent, sound)))
        if illegal >= 0:
            self.found(f"{STEPS_LEGAL}: {why}", first + int(illegal))
        if not new_rows:
            return rows[:0], marks[:0]
        fresh_rows = np.concatenate([alphabet.widened(one) for one in new_rows])
        self.judge(fresh_rows, self.seen.count - len(fresh_rows))
        return fresh_rows, np.concatenate(new_marks)

    def judge(self, rows: Any, first: int) -> None:
        """Asks all claims about new states."""
        self.alphabet.offers_for(rows)
        broken = {}
        for claim, answers in self.claims.items():
            wrong = np.flatnonzero(answers.of(rows) == 0)
            if len(wrong):
                broken[claim] = first + int(wrong[0])
        for claim in sorted(broken, key=lambda one: broken[one]):
            self.found(claim, broken[claim])
        self.seen.quiet.append(self.quiet.of(rows))

    def conclude(self) -> int | None:
        """Whether every wait ends, and what the longest run sends."""
        starts, targets, sent = self.edges.arrays()
        quiet = np.concatenate(self.seen.quiet).astype(np.uint8)
        lonely = np.flatnonzero(state_graph.settle(quiet, starts, targets) == 0)
        if len(lonely):
            # A state where nothing more happens tells more than one that cannot help but lead there.
            dead = lonely[starts[lonely] == starts[lonely + 1]]
            self.found(ENDS, int(dead[0] if len(dead) else lonely[0]))
        if not self.world.ends:
            return None
        order, before = state_graph.in_order(starts, targets)
        if len(order) < self.seen.count:
            self.found(CIRCLE, int(np.flatnonzero(before)[0]))
            return None
        most = int(state_graph.most(order, starts, targets, sent))
        if self.world.sent_max is not None and most > self.world.sent_max:
            self.found(f"{SENT}: {most} messages, {self.world.sent_max} are allowed", 0)
        return most


def run(world: World) -> Result:
    """Explores one world, whole or up to its first violation."""
    return Exploration(world).run()
