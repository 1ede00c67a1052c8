"""What happens to a deployment while it runs, in the twin and live alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from weft.model.queries import Query


@dataclass(frozen=True, slots=True)
class MoveAt:
    """An operator (`query.operator`) goes to another site."""

    at_s: float
    move: str
    to: str


@dataclass(frozen=True, slots=True)
class RateAt:
    """Sources run at so many times their normal rate from here on."""

    at_s: float
    rate: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CrashAt:
    """A site is lost."""

    at_s: float
    crash: str


@dataclass(frozen=True, slots=True)
class RestartAt:
    """A lost site comes back."""

    at_s: float
    restart: str


@dataclass(frozen=True, slots=True)
class PartitionAt:
    """Two sites cannot speak for a while."""

    at_s: float
    partition: tuple[str, str]
    for_s: float


@dataclass(frozen=True, slots=True)
class AddAt:
    """Queries come: those of a file, which it is read with."""

    at_s: float
    add: str
    queries: tuple[Query, ...] = ()
    anyway: bool = False
    """Whether they come though a promise would break."""


@dataclass(frozen=True, slots=True)
class RemoveAt:
    """A query goes."""

    at_s: float
    remove: str


Happening = MoveAt | RateAt | CrashAt | RestartAt | PartitionAt | AddAt | RemoveAt


def rate_changes(scenario: Iterable[Happening]) -> dict[str, list[tuple[float, float]]]:
    """From which moments on each source runs at so many times its normal rate, in the order of time."""
    changes: dict[str, list[tuple[float, float]]] = {}
    for what in sorted(scenario, key=lambda one: one.at_s):
        if isinstance(what, RateAt):
            for source, factor in what.rate.items():
                changes.setdefault(source, []).append((what.at_s, factor))
    return changes
