"""What a controller is told, and what it asks for.

What a body owes it:
- Wishes and observations are numbered upwards from 1, each by themselves; a number is used once.
- `Consider` is answered with a `Wished` for each thing that a rule wishes on that observation, then `Considered`.
- `AskFor` is answered with `ChangeMade` or `ChangeFailed`, and the change is over when that is told.
- What touches what is worked out by the body: two wishes are neighbours where their `touches` share a name.
"""

from __future__ import annotations

import msgspec

from weft.protocol.words import Effect, Input

PERSON, FAILOVER, PROMISE, BALANCE, SCALE = "person", "failover", "promise", "balance", "scale"
PRECEDENCE = (PERSON, FAILOVER, PROMISE, BALANCE, SCALE)
"""Who may wish, those first that come first."""
RANKS = {"scenario": PERSON, "file": PERSON, "relief": PROMISE, "place": BALANCE}
"""For whom else a wish may be asked (`model/wishes.py`), and as whose it counts."""


class Shift(msgspec.Struct, frozen=True, array_like=True):
    """One thing that a wish changes: of what (`query.operator`), from what (a site) to what."""

    of: str
    before: str
    after: str


class Observation(Input, frozen=True):
    """A period has been measured."""

    number: int
    complete: bool
    missing: tuple[str, ...] = ()


class Wished(Input, frozen=True):
    """A person or a rule wants a change; `seen` is the observation that a rule looked at, 0 where it needs none.

    Persons and failover need none, nor does what sites have agreed upon by measurements of their own.
    """

    number: int
    who: str
    shifts: tuple[Shift, ...]
    touches: tuple[str, ...]
    reason: str = ""
    seen: int = 0


class Considered(Input, frozen=True):
    """All rules have said what they wish on an observation."""

    number: int


class ChangeMade(Input, frozen=True):
    """What was asked for is in force."""

    number: int


class ChangeFailed(Input, frozen=True):
    """What was asked for did not come about."""

    number: int
    reason: str = ""


class Noticed(Input, frozen=True):
    """A change was made that nobody asked for here."""

    number: int
    shifts: tuple[Shift, ...]
    touches: tuple[str, ...]


class Consider(Effect, frozen=True):
    """Let all rules look at an observation."""

    number: int


class AskFor(Effect, frozen=True):
    """Have a wish carried out."""

    number: int


class Advise(Effect, frozen=True):
    """Say that a wish would be carried out, and do nothing."""

    number: int
    who: str
    shifts: tuple[Shift, ...]
    reason: str = ""


class Decline(Effect, frozen=True):
    """A wish is not carried out, and why."""

    number: int
    why: str


class NoWord(Effect, frozen=True):
    """No word came of a change that was asked for; it is waited for no longer."""

    number: int


class Rested(Effect, frozen=True):
    """What a change touched may be changed by rules again."""

    number: int


class Forgotten(Effect, frozen=True):
    """What a change did may be undone by rules."""

    number: int
