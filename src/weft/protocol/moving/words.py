"""What a change of placement asks of its bodies, at the desk and at the sites, and what they tell.

What a body owes besides the contract of hosting, at the desk:
- `InForce` is told once, first, at every start: the plan that the journal holds, and the number of the change that
  made it. Changes are numbered upwards, above that number; `Ask` is told in that order.
- `Turn` is answered with `Change`, worked out against the plan then in force, or `Moot`. `ends` are the fragments of
  that plan which are not in the new one, upstream first; each drains the channels whose records its operators
  will get inside a fragment of the new plan. `starts` are those of the new plan which are not in the old one. `lost`
  are fragments at a site that is gone, or is taken to be: they are not ended, and are cut alike in the new plan, so
  that each goes on elsewhere under its own name, from its own checkpoint.
- `Decide`: the new plan and its number, with what was carried over for all that starts, are written in one atomic
  write, the journal; then `Decided`, with the tasks of what starts. Where that cannot be, the journal is unchanged:
  `Undecided`. Asked again, it is answered again. Never both: what `Undecided` was said of is never written.

And at a site:
- `Warm` is answered with `Warmed` or `NotWarmed`, `Carry` with `CarriedOver` or `NotCarriedOver`, once each.
- `Carry`: positions and state are taken from what has ended, and are on disk before `CarriedOver` is told. It touches
  nothing that runs or that the plan in force rests on.
- `ChannelDrained`: the reader has committed every segment that the channel holds at that moment.
- What was warmed or carried is dropped at `Cool`; what was warmed also at a launch of its fragment, and when the body
  starts anew.
"""

from __future__ import annotations

import msgspec

from weft.protocol.change_messages import After, EndedAt
from weft.protocol.words import Effect, Input, Parcel

ERA_BITS = 20


def least_epoch(number: int) -> int:
    """Below every epoch of what change `number` starts, and above every epoch of what was started before it."""
    return number << ERA_BITS


def era_of(epoch: int) -> int:
    """The change under which an epoch was started."""
    return (epoch - 1) >> ERA_BITS if epoch else 0


class End(msgspec.Struct, frozen=True, array_like=True):
    """A fragment that the new plan does not have, the channels it must drain before it may end, and how it stands."""

    fragment: str
    site: str
    drains: tuple[str, ...] = ()
    stands: Parcel = Parcel()


class Start(msgspec.Struct, frozen=True, array_like=True):
    """A fragment that the old plan does not have."""

    fragment: str
    site: str
    task: Parcel = Parcel()


class InForce(Input, frozen=True):
    """The plan to run from the start, and the number of the change that made it; 0 for the first.

    `found` are those of its fragments whose sites say that they run there, cut as in this plan, each with its epoch.
    """

    number: int
    starts: tuple[Start, ...]
    found: tuple[tuple[str, int], ...] | None = None


class Ask(Input, frozen=True):
    """Someone wants another placement; its turn comes."""

    number: int


class Change(Input, frozen=True):
    """What a change whose turn has come ends and starts, and which of those that start were lost with their site."""

    number: int
    ends: tuple[End, ...]
    starts: tuple[Start, ...]
    lost: tuple[str, ...] | None = None


class Moot(Input, frozen=True):
    """A change whose turn has come cannot be made, or need not be."""

    number: int
    reason: str


class Cancel(Input, frozen=True):
    """A change is no longer wanted; once it is being decided, that is too late."""

    number: int


class Decided(Input, frozen=True):
    """The journal holds the new plan; what starts runs by these tasks."""

    number: int
    tasks: tuple[tuple[str, Parcel], ...] = ()


class Undecided(Input, frozen=True):
    """The journal holds the old plan, and will not come to hold this one."""

    number: int
    reason: str


class Finishing(Input, frozen=True):
    """The conductor has heard that a fragment which ends for a change has begun its last batch."""

    number: int
    ended: EndedAt


class Ended(Input, frozen=True):
    """The conductor has ended a fragment for a change."""

    fragment: str
    number: int
    clean: bool
    epoch: int = 1
    stands: Parcel = Parcel()


class Up(Input, frozen=True):
    """The conductor sees a fragment run that a change wanted."""

    fragment: str
    number: int


class Leave(Input, frozen=True):
    """The run ends: no more changes, and every fragment is stopped."""


class Tell(Effect, frozen=True):
    """Pass an input on to the conductor beside."""

    input: Input


class Turn(Effect, frozen=True):
    """Work out what a change ends and starts now."""

    number: int


class Decide(Effect, frozen=True):
    """Write the new plan, with what was carried over for each fragment that starts, into the journal."""

    number: int
    carried: tuple[tuple[str, Parcel], ...] = ()


class Changed(Effect, frozen=True):
    """The new plan is in force; with a reason where not all of it was seen to run."""

    number: int
    reason: str = ""


class NotChanged(Effect, frozen=True):
    """The old plan is in force, as if nothing had been asked."""

    number: int
    reason: str


class Warm(Effect, frozen=True):
    """Make a fragment to come ready to start; `ends` tells how those stand that end for it."""

    number: int
    fragment: str
    task: Parcel = Parcel()
    ends: tuple[Parcel, ...] = ()


class Warmed(Input, frozen=True):
    """A fragment to come is planned and ready; it goes on where the last batches of those it awaits will end."""

    number: int
    fragment: str
    awaits: tuple[str, ...] = ()


class NotWarmed(Input, frozen=True):
    """A fragment to come could not be made ready; impossible where it could not run either."""

    number: int
    fragment: str
    reason: str
    impossible: bool = False


class Cool(Effect, frozen=True):
    """Drop what was made ready or carried over for a change that is off."""

    number: int
    fragment: str
    task: Parcel = Parcel()


class LetIn(Effect, frozen=True):
    """One that a fragment made ready goes on from has begun its last batch: let it read on, where that suffices."""

    number: int
    fragment: str
    ended: EndedAt


class Carry(Effect, frozen=True):
    """Write down where a fragment to come goes on, after these have ended."""

    number: int
    fragment: str
    task: Parcel = Parcel()
    ended: tuple[EndedAt, ...] = ()


class CarriedOver(Input, frozen=True):
    """It is on disk where a fragment to come goes on; `carried` is what its start must be told of it."""

    number: int
    fragment: str
    after: After = ()
    carried: Parcel = Parcel()


class NotCarriedOver(Input, frozen=True):
    """Where a fragment to come goes on could not be written down."""

    number: int
    fragment: str
    after: After = ()
    reason: str = ""


class Drain(Effect, frozen=True):
    """Tell when a reader has committed all that a channel, which nobody writes any more, holds."""

    number: int
    channel: str
    fragment: str
    after: After = ()


class ChannelDrained(Input, frozen=True):
    """A reader has committed all that a channel holds."""

    number: int
    channel: str
    fragment: str
    after: After = ()
