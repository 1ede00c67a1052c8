"""What a desk and a site say to one another about a change of the plan: getting ready, draining, carrying over.

What a message is about may have been asked before, by an earlier life of the desk under the same number. So whatever
rests on fragments having ended names them with the epochs that ended, in the question and in its answer: an epoch ends
once.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.words import Epoch, Message, Name, Parcel, Reason

Number = Annotated[int, msgspec.Meta(ge=1, le=1 << 32)]
After = tuple[tuple[Name, Epoch], ...]
"""The fragments that had ended, each with the epoch that did."""


class EndedAt(msgspec.Struct, frozen=True, array_like=True):
    """A fragment that has ended, or is at its last batch, under an epoch, and where it came to."""

    fragment: Name
    epoch: Epoch
    stands: Parcel = Parcel()


def after_of(ended: tuple[EndedAt, ...]) -> After:
    """What ended, and nothing of where it came to."""
    return tuple((one.fragment, one.epoch) for one in ended)


class PrepareFragment(Message, frozen=True):
    """Make a fragment ready that a change will start here; `ends` tells how those stand that end for it."""

    number: Number
    fragment: Name
    task: Parcel = Parcel()
    ends: tuple[Parcel, ...] = ()


class FragmentPrepared(Message, frozen=True):
    """A fragment to come is ready; it goes on where the last batches of those that it awaits will end."""

    number: Number
    fragment: Name
    awaits: tuple[Name, ...] = ()


class FragmentNotPrepared(Message, frozen=True):
    """A fragment to come could not be made ready; impossible where it could not run either."""

    number: Number
    fragment: Name
    reason: Reason
    impossible: bool = False


class DiscardFragment(Message, frozen=True):
    """A change is off: drop what was made ready or carried over for it."""

    number: Number
    fragment: Name


class FragmentDiscarded(Message, frozen=True):
    """Nothing is left of what was made ready."""

    number: Number
    fragment: Name


class OpenGate(Message, frozen=True):
    """One that a fragment made ready goes on from has begun its last batch: who waits for that may read on."""

    number: Number
    fragment: Name
    ended: EndedAt


class DrainChannel(Message, frozen=True):
    """Tell when a fragment has committed all that a channel holds, now that those before it have ended."""

    number: Number
    channel: Name
    fragment: Name
    after: After = ()


class ChannelIsDrained(Message, frozen=True):
    """A fragment has committed all that a channel holds."""

    number: Number
    channel: Name
    fragment: Name
    after: After = ()


class CarryOver(Message, frozen=True):
    """All that ends has ended: write down, for good, where a fragment that will start here goes on."""

    number: Number
    fragment: Name
    task: Parcel = Parcel()
    ended: tuple[EndedAt, ...] = ()


class Carried(Message, frozen=True):
    """It is on disk where a fragment goes on after these ends; `carried` is what its start must be told of it."""

    number: Number
    fragment: Name
    after: After = ()
    carried: Parcel = Parcel()


class NotCarried(Message, frozen=True):
    """A fragment cannot go on here after these ends."""

    number: Number
    fragment: Name
    after: After = ()
    reason: Reason = ""


TO_SITES = PrepareFragment | DiscardFragment | OpenGate | DrainChannel | CarryOver
TO_DESK = FragmentPrepared | FragmentNotPrepared | FragmentDiscarded | ChannelIsDrained | Carried | NotCarried
MESSAGES = TO_SITES | TO_DESK
