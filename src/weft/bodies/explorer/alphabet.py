"""What the numbers of an exploration stand for: snapshots, messages under way, timers, grounds, and what follows.

Everything that can stand at a place of a state, and everything that can be done to it, gets a number when it is first
met. Machines are asked once for each pair of snapshot and input; the compiled part remembers what came of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np

from weft.bodies.explorer import kernel
from weft.bodies.explorer.symmetry import Names
from weft.bodies.explorer.tables import Columns, Table
from weft.bodies.explorer.values import (
    FAULTS,
    GROUND,
    TIMERS,
    Crashed,
    Faults,
    Lost,
    Place,
    Queue,
    Snapshot,
    Timers,
)
from weft.bodies.explorer.world import Taken, World
from weft.protocol import (
    CancelTimer,
    Effect,
    IllegalStep,
    Input,
    Machine,
    Received,
    Send,
    SetTimer,
    TimerFired,
)


class Offer(NamedTuple):
    """A step that a value allows: how, the value after it, and what a machine is told or which further changes come."""

    kind: int
    after: Hashable
    site: str = ""
    input: Input | None = None
    changes: tuple[tuple[Hashable, Hashable], ...] = ()
    unheard: Input | None = None
    """What the story tells where no machine is told anything."""


BUDGETS = {
    kernel.EARLY: "early", kernel.LOSE: "lost", kernel.OVERTAKE: "overtaken", kernel.CRASH: "crashed",
    kernel.DOUBLE: "doubled",
}  # fmt: skip


class Alphabet:
    """The values and operations of one world, and the tables of what follows from them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.scratch = world.machines()
        self.before = world.machines() if world.steps else {}
        self.names = tuple(sorted(self.scratch))
        self.start = {name: machine.snapshot() for name, machine in self.scratch.items()}
        self.places: dict[Hashable, int] = {}
        self.names_again = Names(world)
        self.values: list[Any] = [None]
        self._values: dict[Hashable, int] = {}
        self.ops: list[Any] = [None] * kernel.FIRST_OP
        self._ops: dict[Hashable, int] = {}
        self.told: dict[tuple[int, int], tuple[Effect, ...]] = {}
        self.illegal: dict[tuple[int, int], str] = {}
        self.offers_of: dict[int, list[Offer]] = {}
        self.memo = Table()
        self.programs = Columns(5)
        self.steps = Columns(2)
        self.cuts = Columns(3)
        self._programs: dict[tuple[Any, ...], int] = {}
        self.known = Columns(2, -1)
        self.known.append(0, 0)
        self.offers = Columns(5)
        self.busy = np.zeros(64, np.int8)
        self.program(())
        for name in self.names:
            self.place(name)
        for script in range(len(world.scripts)):
            self.place(script)
        for name in (TIMERS, GROUND, FAULTS):
            self.place(name)

    def place(self, what: Hashable) -> int:
        """Where something stands in a row: a machine by its name, a script by its number, a channel by its pair."""
        if what not in self.places:
            self.places[what] = len(self.places)
            for turn in self.names_again.turns:
                self.place(self.names_again.place(what, turn))
        return self.places[what]

    def first(self) -> np.ndarray:
        """The row of the first state."""
        row = np.zeros(len(self.places), np.int32)
        for name in self.names:
            row[self.place(name)] = self.value(Snapshot(name, self.start[name]))
        for script in range(len(self.world.scripts)):
            row[self.place(script)] = self.value(Place(script, 0))
        row[self.place(GROUND)] = self.value((GROUND, self.world.ground))
        row[self.place(FAULTS)] = self.value(Faults())
        return row

    def value(self, content: Hashable) -> int:
        """The number of a value; 0 for a channel without messages and for no timers."""
        if isinstance(content, Queue | Timers) and not content[-1]:
            return 0
        number = self._values.get(content)
        if number is None:
            number = self._values[content] = len(self.values)
            self.values.append(content)
            self.known.append(-1, -1)
            if number >= self.busy.size:
                self.busy = np.concatenate([self.busy, np.zeros(self.busy.size, np.int8)])
        return number

    def op(self, content: Hashable) -> int:
        """The number of an operation."""
        number = self._ops.get(content)
        if number is None:
            number = self._ops[content] = len(self.ops)
            self.ops.append(content)
        return number

    def program(
        self, steps: tuple[tuple[Hashable, Hashable], ...], sent: int = 0, site: str = "", cuts: tuple[int, ...] = ()
    ) -> int:
        """The number of a list of changes, each an operation at a place; a machine may crash after some of them."""
        number = self._programs.get((steps, sent, site, cuts))
        if number is None:
            parts = [self.program(steps[:cut]) for cut in cuts]
            first, first_cut = self.steps.size, self.cuts.size
            for place, op in steps:
                self.steps.append(self.place(place), self.op(op))
            for part in parts:
                self.cuts.append(part, self.place(GROUND), self.op(("crash", site)))
            number = self.programs.append(first, self.steps.size, sent, first_cut, self.cuts.size)
            self._programs[steps, sent, site, cuts] = number
        return number

    def resolve(self, value: int, op: int) -> None:
        """Finds out what an operation makes of a value, or what a value offers, and notes it."""
        if op == kernel.OFFERS:
            self.note_offers(value)
            return
        if op <= kernel.RENAME:
            turn = kernel.RENAME - op
            self.names_again.note(turn, value, self.value(self.names_again.value(self.values[value], turn)))
            return
        after, program = self.follow(value, op)
        self.memo.put(value, op, after, program)

    def follow(self, value: int, op: int) -> tuple[int, int]:
        """The value after an operation, and the program that goes with it."""
        held = self.values[value]
        if op == kernel.TEAR:
            may = held.torn < self.world.torn and held.crashed < self.world.crash
            after = held._replace(torn=held.torn + 1, crashed=held.crashed + 1)
            return (self.value(after) if may else kernel.FORBIDDEN), 0
        if op in BUDGETS:
            name = BUDGETS[op]
            most = {"early": self.world.early, "lost": self.world.lose, "overtaken": self.world.overtake,
                    "crashed": self.world.crash, "doubled": self.world.double}[name]  # fmt: skip
            spent = getattr(held, name)
            return (self.value(held._replace(**{name: spent + 1})) if spent < most else kernel.FORBIDDEN), 0
        what, *rest = self.ops[op]
        match what:
            case "tell":
                return self.step(value, op, held, rest[0])
            case "push":
                return self.value(Queue(rest[0], ((*held.messages,) if held else ()) + (rest[1],))), 0
            case "set":
                return self.value(Timers(tuple(sorted({*(held.timers if held else ()), rest[0]})))), 0
            case "cancel":
                return self.value(Timers(tuple(one for one in (held.timers if held else ()) if one != rest[0]))), 0
            case "clear":
                return self.value(Timers(tuple(one for one in (held.timers if held else ()) if one[0] != rest[0]))), 0
            case "do":
                return self.value((GROUND, held[1].perform(*rest))), 0
            case "become":
                return self.value(rest[0]), 0
            case "crash":
                ground, changes = self.reborn(held[1], rest[0])
                return self.value((GROUND, ground)), self.program(changes)
        raise AssertionError(what)

    def step(self, value: int, op: int, held: Snapshot | None, input: Input) -> tuple[int, int]:
        """What a machine makes of an input; a message to one that there is not is no legal step."""
        if held is None:
            self.illegal[value, op] = f"there is nobody to hear {input}"
            return kernel.ILLEGAL, 0
        machine = self.scratch[held.site]
        machine.restore(held.snapshot)
        try:
            effects = tuple(machine.handle(input))
        except (IllegalStep, AssertionError) as error:
            self.illegal[value, op] = (str(error).splitlines() or [type(error).__name__])[0]
            return kernel.ILLEGAL, 0
        self.told[value, op] = effects
        if self.world.steps:
            before = self.before[held.site]
            before.restore(held.snapshot)
            taken = Taken(before, input, effects, machine)
            for claim, holds in self.world.steps.items():
                if not holds(taken):
                    self.illegal[value, op] = claim
                    return kernel.ILLEGAL, 0
        steps = tuple(self.change(held.site, effect) for effect in effects)
        sent = sum(isinstance(effect, Send) for effect in effects)
        cuts = self.cuts_of(held.site, effects)
        return self.value(Snapshot(held.site, machine.snapshot())), self.program(steps, sent, held.site, cuts)

    def cuts_of(self, site: str, effects: tuple[Effect, ...]) -> tuple[int, ...]:
        """After how many effects of a step its machine may crash: timers, which a crash clears, make no difference."""
        if not (self.world.torn and self.world.crash and self.world.reborn and site in self.world.mortal):
            return ()
        lasting = [not isinstance(effect, SetTimer | CancelTimer) for effect in effects]
        return tuple(cut for cut in range(1, len(effects)) if lasting[cut - 1] and any(lasting[cut:]))

    def change(self, site: str, effect: Effect) -> tuple[Hashable, Hashable]:
        """What an effect changes: an operation, and where."""
        if isinstance(effect, Send):
            pair = (site, effect.to)
            return pair, ("push", pair, effect.message)
        if isinstance(effect, SetTimer):
            return TIMERS, ("set", (site, effect.name))
        if isinstance(effect, CancelTimer):
            return TIMERS, ("cancel", (site, effect.name))
        return GROUND, ("do", site, effect)

    def note_offers(self, value: int) -> None:
        """Finds out which steps a value allows."""
        first = self.offers.size
        held = self.values[value]
        offered = self.offers_of[value] = list(self.offered(held))
        for one in offered:
            site = self.place(one.site) if one.input is not None else -1
            op = self.op(("tell", one.input)) if one.input is not None else 0
            program = self.program(one.changes) if one.changes else -1
            self.offers.append(one.kind, self.value(one.after), site, op, program)
        # Whether messages, or facts that are due, are under way: timers wait for them.
        self.busy[value] = isinstance(held, Queue) or (
            held[0] == GROUND and any(one.kind == kernel.FREE for one in offered)
        )
        self.known.arrays[0][value], self.known.arrays[1][value] = first, self.offers.size

    def offered(self, held: Any) -> Iterator[Offer]:
        """The steps that a value allows."""
        world = self.world
        if isinstance(held, Queue):
            yield from self.arrivals(held)
        elif isinstance(held, Timers):
            for site, name in held.timers:
                rest = Timers(tuple(one for one in held.timers if one != (site, name)))
                yield Offer(kernel.IDLE_ONLY, rest, site, TimerFired(name))
        elif isinstance(held, Place):
            script = world.scripts[held.script]
            if held.told < len(script):
                site, input = script[held.told]
                yield Offer(kernel.FREE, held._replace(told=held.told + 1), site, input)
        elif held[0] == GROUND:
            for choice in held[1].choices():
                kind = kernel.FREE if choice.due else kernel.OPTIONAL
                if choice.heard:
                    yield Offer(kind, (GROUND, choice.after), choice.site, choice.fact)
                else:
                    yield Offer(kind, (GROUND, choice.after), choice.site, unheard=choice.fact)
            if world.crash and world.reborn:
                yield from (self.crash(held[1], site) for site in world.mortal)

    def arrivals(self, held: Queue) -> Iterator[Offer]:
        """Messages that arrive, overtake or are lost."""
        (sender, to), messages = held
        for at, message in enumerate(messages):
            rest = Queue(held.pair, messages[:at] + messages[at + 1 :])
            if at == 0 and self.world.lose:
                yield Offer(kernel.LOSE, rest, to, unheard=Lost(sender, message))
            if at and not self.world.overtake:
                break
            if at == 0 and self.world.double:
                yield Offer(kernel.DOUBLE, held, to, Received(sender, message))
            yield Offer(kernel.OVERTAKE if at else kernel.FREE, rest, to, Received(sender, message))

    def crash(self, ground: Any, site: str) -> Offer:
        """A machine crashes and comes back with what it had remembered."""
        after, changes = self.reborn(ground, site)
        return Offer(kernel.CRASH, (GROUND, after), site, None, changes, Crashed())

    def reborn(self, ground: Any, site: str) -> tuple[Any, tuple[tuple[Hashable, Hashable], ...]]:
        """The ground after a crash, and what else the crash changes."""
        assert self.world.reborn is not None
        after = ground.crash(site)
        reborn: Machine = self.world.reborn(site, after)
        changes: list[tuple[Hashable, Hashable]] = [
            (site, ("become", Snapshot(site, reborn.snapshot()))), (TIMERS, ("clear", site)),
        ]  # fmt: skip
        for which, script in enumerate(self.world.scripts):
            if script and script[0][0] == site:
                changes.append((which, ("become", Place(which, 0))))
        return after, tuple(changes)

    def offers_for(self, rows: Any) -> None:
        """Finds out what all values of some rows offer."""
        for value in np.unique(rows[self.known.arrays[0][rows] < 0]):
            self.note_offers(int(value))

    def widened(self, rows: Any) -> Any:
        """Rows with a place for every channel that has come into use since they were made."""
        lack = len(self.places) - rows.shape[1]
        return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, lack)))) if lack else rows

    def mark(self, row: Any) -> Any:
        """The mark of a row."""
        mark = np.zeros(2, np.uint64)
        empty = np.zeros_like(row)
        for place in range(row.size):
            kernel.change(empty, mark, place, row[place])
        return mark

    def least_mark(self, row: Any) -> Any:
        """The mark that a row is known by: the least of all that differ only in who is who."""
        miss = np.zeros(4, np.int64)
        while True:
            mark = self.mark(row)
            if kernel.least(row.copy(), mark, self.tables()[4], miss) >= 0:
                return mark
            self.resolve(int(miss[0]), int(miss[1]))

    def take(self, row: Any, place: int, at: int, busy: bool, cut: int = kernel.WHOLE) -> tuple[int, Any, int]:
        """Takes the offer `at` of what stands at a place as the compiled part would, whole or up to a cut.

        Gives how it went, the row after, and how many cuts the whole step has.
        """
        offer = int(self.known.arrays[0][row[place]]) + at
        miss = np.zeros(4, np.int64)
        while True:
            after = self.widened(row.reshape(1, -1))[0].copy()
            offers, _, programs, memo, _ = self.tables()
            mark = np.zeros(2, np.uint64)
            told = kernel.take(after, mark, place, offer, cut, busy, self.places[FAULTS], offers, programs, memo, miss)
            if told != kernel.MISSING:
                return told, after, int(miss[3])
            self.resolve(int(miss[0]), int(miss[1]))

    def tables(self) -> tuple[Any, Any, Any, Any, Any]:
        """Offers, what is busy, programs, the memo and other names, as the compiled part wants them."""
        offers = (self.known.arrays[0], self.known.arrays[1], *self.offers.arrays)
        programs = (*self.programs.arrays[:2], *self.steps.arrays, *self.programs.arrays[2:], *self.cuts.arrays)
        return offers, self.busy, programs, self.memo.arrays, self.names_again.tables(self.places, len(self.values))
