"""What instances that scale by themselves are told, ask for, and say to one another.

What a body owes them besides the common contract:
- Control messages and records between two instances arrive, in the order sent, on one way.
- An active instance, and one that leaves or drains, sends each record to one instance of each downstream operator, of
  those in its `downs` at that moment. One that waits keeps the records that reach it until it is active.
- `Drain` is answered with `Drained` when all records that have arrived are worked off and sent on.
- The address of an instance that has ended is still answered for by its machine.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.words import Effect, Input, Message

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Number = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
Peers = tuple[tuple[Name, Name], ...]
"""Instances with their operators."""


class Grow(Input, frozen=True):
    """The instance shall be joined by so many more of its operator."""

    copies: int = 1


class Shrink(Input, frozen=True):
    """The instance shall end, unless it is its operator's keeper."""


class Drained(Input, frozen=True):
    """All records that had arrived are worked off."""


class Create(Effect, frozen=True):
    """Make an instance of the same operator, idle until it is started."""

    instance: str


class Activated(Effect, frozen=True):
    """From now on the instance works on records."""


class Drain(Effect, frozen=True):
    """No more records will come: work off what has arrived."""


class Ended(Effect, frozen=True):
    """The instance is done and may be taken away."""


class NewInstances(Message, frozen=True):
    """Instances of the sender's operator that will soon be active; `number` counts the sender's operations."""

    number: Number
    operator: Name
    instances: tuple[Name, ...]


class Leaving(Message, frozen=True):
    """The sender takes no more records once everyone upstream has heard this."""

    number: Number
    operator: Name


class Heard(Message, frozen=True):
    """An announcement was heard, and what was sent before this was sent without knowing of it."""

    number: Number


class StartInstance(Message, frozen=True):
    """Be active, with these neighbours and what was heard meanwhile."""

    ups: Peers
    downs: Peers


class Bye(Message, frozen=True):
    """The sender, upstream, has sent its last record."""

    operator: Name


class Retire(Message, frozen=True):
    """Who made an instance wants it to end."""


class Retired(Message, frozen=True):
    """An instance that was to end has ended."""


MESSAGES = NewInstances | Leaving | Heard | StartInstance | Bye | Retire | Retired
