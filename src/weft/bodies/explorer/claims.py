"""Claims asked only where what they look at differs: each view notes its reads, and the answer is kept by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.bodies.explorer.alphabet import Alphabet
from weft.bodies.explorer.values import FAULTS, GROUND, TIMERS
from weft.bodies.explorer.world import View

Read = tuple[str, Any]


class Eyes:
    """How views see rows: what stands at a place, machines thawed once, marks."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.thawed: dict[int, Any] = {}
        self._blank: dict[str, list[Any]] = {name: [] for name in alphabet.names}
        self._marks: dict[Any, int] = {}
        self.marks: list[Any] = []
        self.mark_of = np.full(64, -1, np.int32)

    def thaw(self, value: int) -> Any:
        """A machine as a value has it."""
        machine = self.thawed.get(value)
        if machine is None:
            held = self.alphabet.values[value]
            if not self._blank[held.site]:
                for name, made in self.alphabet.world.machines().items():
                    self._blank[name].append(made)
            machine = self._blank[held.site].pop()
            machine.restore(held.snapshot)
            self.thawed[value] = machine
        return machine

    def look(self, row: Any, what: str, which: Any) -> Any:
        """What a view asks for."""
        alphabet = self.alphabet
        match what:
            case "machine":
                return self.thaw(row[alphabet.places[which]])
            case "mark":
                return self.marks[self.mark(row[alphabet.places[which]])]
            case "flight":
                queues = (alphabet.values[row[at]] for at in self.channels())
                return tuple(sorted(((q.pair, q.messages) for q in queues if q), key=lambda one: one[0]))
            case "busy":
                return bool(alphabet.busy[row].any())
            case "timers":
                held = alphabet.values[row[alphabet.places[TIMERS]]]
                return held.timers if held else ()
            case "ground":
                return alphabet.values[row[alphabet.places[GROUND]]][1]
            case "faults":
                return alphabet.values[row[alphabet.places[FAULTS]]]
            case "told":
                scripts = alphabet.world.scripts
                return all(
                    alphabet.values[row[alphabet.places[at]]].told == len(script) for at, script in enumerate(scripts)
                )
        raise AssertionError(what)

    def channels(self) -> list[int]:
        """Where channels stand."""
        return [at for what, at in self.alphabet.places.items() if isinstance(what, tuple)]

    def mark(self, value: int) -> int:
        """The number of a machine's mark."""
        if value >= self.mark_of.size:
            grown = np.full(2 * max(value, self.mark_of.size), -1, np.int32)
            grown[: self.mark_of.size] = self.mark_of
            self.mark_of = grown
        if self.mark_of[value] < 0:
            assert self.alphabet.world.mark is not None
            mark = self.alphabet.world.mark(self.thaw(value))
            number = self._marks.setdefault(mark, len(self.marks))
            if number == len(self.marks):
                self.marks.append(mark)
            self.mark_of[value] = number
        return int(self.mark_of[value])

    def project(self, rows: Any, reads: list[Read]) -> Any:
        """The columns that tell apart what some reads would see."""
        columns = [np.zeros(len(rows), np.int32)]
        places = self.alphabet.places
        for what, which in reads:
            match what:
                case "machine":
                    columns.append(rows[:, places[which]])
                case "mark":
                    values = rows[:, places[which]]
                    for value in np.unique(values):
                        self.mark(int(value))
                    columns.append(self.mark_of[values])
                case "flight":
                    columns += [rows[:, at] for at in self.channels()]
                case "busy":
                    columns.append(self.alphabet.busy[rows].any(axis=1))
                case "told":
                    columns += [rows[:, at] for what, at in places.items() if isinstance(what, int)]
                case _:
                    columns.append(rows[:, places[{"timers": TIMERS, "ground": GROUND, "faults": FAULTS}[what]]])
        return np.ascontiguousarray(np.stack(columns, axis=1).astype(np.int32))


class Answers:
    """One claim and the answers it has given, apart for states in which something is under way and for others."""

    def __init__(self, eyes: Eyes, claim: Callable[[View], bool]) -> None:
        self.eyes = eyes
        self.busy, self.still = _Half(eyes, claim), _Half(eyes, claim)

    def of(self, rows: Any) -> Any:
        """The answers for many rows."""
        busy = self.eyes.alphabet.busy[rows].any(axis=1)
        answers = np.empty(len(rows), np.uint8)
        for half, which in ((self.busy, busy), (self.still, ~busy)):
            if which.any():
                answers[which] = half.of(rows[which])
        return answers


class _Half:
    def __init__(self, eyes: Eyes, claim: Callable[[View], bool]) -> None:
        self.eyes, self.claim = eyes, claim
        self.reads: list[Read] = []
        self.known: dict[bytes, bool] = {}

    def ask(self, row: Any) -> bool:
        """The answer for one row, which may show that the claim reads more than was thought."""
        seen: dict[Read, None] = {}

        def look(what: str, which: Any) -> Any:
            seen[what, which] = None
            return self.eyes.look(row, what, which)

        answer = bool(self.claim(View(look)))
        new = [one for one in seen if one not in self.reads and one[0] != "busy"]
        if new:
            self.reads += new
            self.known.clear()
        return answer

    def of(self, rows: Any) -> Any:
        """The answers for many rows, all busy or all still."""
        answer = self.ask(rows[0])
        while True:
            count = len(self.reads)
            if not count:
                return np.full(len(rows), answer, np.uint8)
            keys = self.eyes.project(rows, self.reads)
            _, firsts, which = np.unique(_mixed(keys), return_index=True, return_inverse=True)
            answers = np.empty(len(firsts), np.uint8)
            for at, first in enumerate(firsts):
                key = keys[first].tobytes()
                known = self.known.get(key)
                if known is None:
                    known = self.ask(rows[first])
                    if len(self.reads) != count:
                        break
                    self.known[key] = known
                answers[at] = known
            else:
                return answers[which]


def _mixed(keys: Any) -> Any:
    """One word for each line; of the lines of a batch, two share theirs by chance with a probability below 10^-10."""
    mixed = keys[:, 0].astype(np.uint64)
    for column in range(1, keys.shape[1]):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + keys[:, column].astype(np.uint64)
    return (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
