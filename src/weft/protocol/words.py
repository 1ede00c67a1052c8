"""The words every machine shares: what it is told (inputs) and what it asks for (effects).

What a body owes a machine:
- inputs one at a time, and the effects of one input performed in order before the next input;
- a timer that was cancelled or set anew does not fire for its former setting; timers belong to one machine;
- messages from one sender arrive in the order sent, or not at all.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

REASON_CHARS_MAX = 10_000

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Epoch = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
Reason = Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)]


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """What bodies tell one another through machines, which hand it on and never look into it; stories leave it out."""

    text: str = ""


# What is frozen is not held by what it holds: Python need not look for cycles there, a fifth of what composing takes.
class Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True, gc=False):
    """What one machine says to another; the kinds stand in `messages`."""


class Input(msgspec.Struct, frozen=True, gc=False):
    """Something that happened, told to a machine; facts of a body are inputs too."""


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Something a machine asks its body to do."""


class Received(Input, frozen=True):
    """A message came in."""

    sender: str
    message: Message


class TimerFired(Input, frozen=True):
    """The time asked for has passed."""

    name: str


class Send(Effect, frozen=True):
    """Pass a message to another machine; it may be lost."""

    to: str
    message: Message


class SetTimer(Effect, frozen=True):
    """Feed `TimerFired(name)` after so long; a timer of that name set before is replaced."""

    name: str
    after_ms: int


class CancelTimer(Effect, frozen=True):
    """Forget a timer; no harm where none is set."""

    name: str
