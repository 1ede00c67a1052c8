"""What is wrong, and where? Problems are collected, so that one look shows all of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weft.model import Deployment

PROBLEMS_MAX = 100
"""Beyond so many problems a reader learns nothing more; noise must not fill memory."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, at a field (`queries[0].operators[1].sql`) and a line where there is a file."""

    line: int | None
    field: str
    message: str

    def at(self, file: str) -> str:
        """The problem as `file:line: field: message`."""
        place = file if self.line is None else f"{file}:{self.line}"
        return f"{place}: {self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found; `deployment` is None where there are errors."""

    file: str
    deployment: Deployment | None = None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing stands against running it."""
        return not self.errors


class SpecError(ValueError):
    """A deployment that cannot be used; `errors` holds every problem, and the text shows them all."""

    def __init__(self, file: str, errors: Iterable[Problem]) -> None:
        self.file = file
        self.errors = tuple(errors)
        super().__init__("\n".join(problem.at(file) for problem in self.errors))


@dataclass(slots=True)
class Problems:
    """Collects problems and finds their lines."""

    lines: Mapping[str, int] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    settled: frozenset[str] = frozenset()

    def error(self, path: str, message: str, line: int | None = None) -> None:
        """Adds an error, unless the same place was already found wrong by an earlier stage."""
        if not self._covered(path):
            self._add(self.errors, Problem(line if line is not None else self.line(path), path, message))

    def warn(self, path: str, message: str) -> None:
        """Adds a warning."""
        if not self._covered(path):
            self._add(self.warnings, Problem(self.line(path), path, message))

    def settle(self) -> None:
        """Ends a stage: what later stages find at the places already reported would only repeat it."""
        self.settled = frozenset(problem.field for problem in self.errors)

    def has(self, path: str) -> bool:
        """Whether there is an error at a place or within it."""
        return any(inside(problem.field, path) for problem in self.errors)

    def line(self, path: str) -> int | None:
        """The line of a field, else of the nearest thing around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = around(path)
        return self.lines.get("")

    def _covered(self, path: str) -> bool:
        return any(inside(path, other) or inside(other, path) for other in self.settled)

    @staticmethod
    def _add(problems: list[Problem], problem: Problem) -> None:
        if len(problems) < PROBLEMS_MAX and problem not in problems:
            problems.append(problem)


def around(path: str) -> str:
    """The path of what holds a field: `a[0].b` gives `a[0]`, that gives `a`, that gives nothing."""
    return re.sub(r"(\.[^.\[\]]*|\[[^\]]*\]|^[^.\[\]]+)$", "", path)


def inside(path: str, other: str) -> bool:
    """Whether a path is another one or lies within it."""
    return path == other or (path.startswith(other) and path[len(other)] in ".[")


def join(path: str, key: str) -> str:
    """The path of a key within a path."""
    return f"{path}.{key}" if path else key


def listed(names: Iterable[str]) -> str:
    """Names as a reader wants them: `a, b, c`, cut where there are very many."""
    every = list(names)
    shown = ", ".join(every[:20])
    return shown + (f", and {len(every) - 20} more" if len(every) > 20 else "") if every else "none"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean x?` where something known is close, else nothing."""
    by_lower = {name.lower(): name for name in known}
    cutoff = 0.5 if len(word) < 4 else 0.6
    close = difflib.get_close_matches(word.lower()[:200], list(by_lower), n=1, cutoff=cutoff)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else ""


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """The message for a name that stands for nothing."""
    names = list(known)
    return f"no {kind} is called `{brief(word)}`; there are: {listed(names)}{did_you_mean(word, names)}"


def brief(value: object) -> str:
    """A value's text on one line, cut to what fits in a message."""
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
