"""What was decided, by whom, and by which numbers? A log of all that rules wished and what became of it.

An entry is a plain dict: `{number, at_s, until_s, times, by, who, moves, reason, state, why, numbers}`. Its state is
asked, then done or refused; or advised; or declined. What is declined or advised again for the same moves is one entry,
which counts how often.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from weft.model.wishes import MoveTo, plain_wish
from weft.protocol.control.rules import Desire

ENTRIES_MAX = 500
ASKED, DONE, REFUSED, ADVISED = "asked", "done", "refused", "advised"


class Decisions:
    """The log of one controller; `note` is told every entry that is new or has come to its end."""

    def __init__(self) -> None:
        self.note: Callable[[dict[str, Any]], None] = lambda entry: None
        self._entries: deque[dict[str, Any]] = deque(maxlen=ENTRIES_MAX)

    def add(self, number: int, at_s: float, desire: Desire, state: str, why: str = "") -> None:
        """Something became of what a rule wished."""
        entry = {
            "number": number, "at_s": round(at_s, 3), "until_s": round(at_s, 3), "times": 1, "by": desire.by,
            "who": desire.who, "moves": moves_of(desire), "reason": desire.reason, "state": state, "why": why,
            "numbers": dict(desire.numbers),
        }  # fmt: skip
        last = next((one for one in reversed(self._entries) if one["by"] == desire.by), None)
        if last is not None and state != ASKED and _same(last, entry):
            last["until_s"], last["times"] = entry["until_s"], last["times"] + 1
            return
        self._entries.append(entry)
        self.note(entry)

    def over(self, number: int, why_not: str | None) -> None:
        """What was asked for is in force, or did not come about."""
        for entry in self._entries:
            if entry["number"] == number and entry["state"] == ASKED:
                entry["state"], entry["why"] = ("done", "") if why_not is None else ("refused", why_not)
                self.note(entry)

    def advised(self) -> list[dict[str, Any]]:
        """What was advised, as an entry of a list of changes."""
        return [
            {
                "at_s": one["at_s"], "by": one["by"], "wish": _wish(one), "reason": one["reason"], "state": "advised",
                "why": "", "pause_ms": None,
            }
            for one in self._entries
            if one["state"] == "advised"
        ]  # fmt: skip

    def entries(self) -> list[dict[str, Any]]:
        """All that is remembered, the oldest first."""
        return [dict(entry) for entry in self._entries]


def moves_of(desire: Desire) -> list[dict[str, str]]:
    """What a rule would move, as people and programs are shown it."""
    return [
        {"query": query, "operator": operator, "from": shift.before, "to": shift.after}
        for shift in desire.shifts
        for query, _, operator in (shift.of.partition("."),)
    ]


def _wish(entry: dict[str, Any]) -> dict[str, Any]:
    return plain_wish(MoveTo({f"{one['query']}.{one['operator']}": one["to"] for one in entry["moves"]}))


def _same(last: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Whether the same is said again, whatever the numbers in the reasons."""
    if last["state"] != entry["state"] or last["moves"] != entry["moves"]:
        return False
    return bool(entry["moves"]) or last["numbers"].get("query") == entry["numbers"].get("query")
