"""What became of what was asked? One entry for each operator that a wish moves, with its pause and where that went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from weft.model.wishes import SPOKEN, Wish, plain_wish

# What a pause goes by with: ending the old at a batch boundary, deciding, starting the new, and its first batch.
SPENT = ("ending", "deciding", "starting", "first_batch")


ADVISED = "it is only advised"
"""How the reason of a wish begins that was told, and not carried out."""


@dataclass(slots=True)
class Move:
    """One operator of a wish, and what became of it."""

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
    olds: tuple[str, ...] = ()  # the fragments that ended for it
    resumed_ms: float = 0.0
    spent_ms: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As the commands print it; what was refused says why."""
        told = {
            "query": self.query, "operator": self.operator, "from": self.start, "to": self.to,
            "at_s": round(self.at_s, 3), "pause_ms": self.pause_ms, "reason": self.reason,
        }  # fmt: skip
        if self.state != "done":
            return {**told, "state": self.state, "why": self.why}
        return {**told, "spent_ms": self.spent_ms} if self.spent_ms else told

    def resumed(self, moment_ms: float) -> None:
        """The first commit after: how long the pause was, and what it went by with."""
        assert self.last_before_ms is not None
        self.resumed_ms = moment_ms
        self.pause_ms = round(moment_ms - self.last_before_ms, 1)
        up_ms = min(self.up_ms or moment_ms, moment_ms)
        moments = (self.last_before_ms, self.ended_ms, self.decided_ms, up_ms, moment_ms)
        spent = (max(0.0, after - before) for before, after in pairwise(moments))
        self.spent_ms = dict(zip(SPENT, (round(each, 1) for each in spent), strict=True))

    def paused(self, moment_ms: float) -> None:
        """A commit before the end is heard of: the pause began no sooner."""
        self.last_before_ms = max(moment_ms, self.last_before_ms or 0.0)
        if self.pause_ms is not None:
            self.resumed(self.resumed_ms)


@dataclass(slots=True)
class Asked:
    """One wish, and what became of it."""

    number: int
    wish: Wish
    at_s: float
    moves: list[Move]
    state: str = "asked"
    why: str = ""
    told: Callable[[str | None], None] = lambda why_not: None
    """Told when it is over: why it was refused, or None."""
    interrupted: list[Move] = field(default_factory=list)
    """What others' operators had to end and start again for it."""
    numbers: Mapping[str, Any] | None = None
    """By which sites have agreed upon it, for the log of decisions."""

    @property
    def watched(self) -> list[Move]:
        """All whose pauses are measured."""
        return [*self.moves, *self.interrupted]

    @property
    def pause_ms(self) -> float | None:
        """The longest pause that it made; None where one is not known yet, 0 where nobody had to wait."""
        known = [move.pause_ms for move in self.watched]
        if self.state != "done" or None in known:
            return None
        return max((pause for pause in known if pause is not None), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """As an entry of `changes`."""
        return {
            "at_s": round(self.at_s, 3),
            "by": SPOKEN.get(self.wish.by, self.wish.by),
            "wish": plain_wish(self.wish),
            "reason": self.wish.reason,
            "state": "advised" if self.why.startswith(ADVISED) else self.state,
            "why": self.why,
            "pause_ms": self.pause_ms,
        }

    def end(self, state: str, why: str, up_ms: float) -> None:
        """It is over, done or refused; all its operators with it."""
        self.state, self.why = state, why
        for move in self.moves:
            move.state, move.why, move.up_ms = state, why, up_ms
        self.told(None if state == "done" else why)
