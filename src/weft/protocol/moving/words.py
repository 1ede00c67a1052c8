"""What a change of placement asks of its body, and what the body tells it.

What a body owes besides the contract of hosting:
- `InForce` is told once, first, at every start: the plan that the journal holds, and the number of the change that
  made it. Changes are numbered upwards, above that number; `Ask` is told in that order.
- `Turn` is answered with `Change`, worked out against the plan then in force, or `Moot`. `ends` are the fragments of
  that plan which are not in the new one, upstream first; each drains the channels whose records its operators
  will get inside a fragment of the new plan. `starts` are those of the new plan which are not in the old one. `lost`
  are fragments at a site that is gone, or is taken to be: they are not ended, and are cut alike in the new plan, so
  that each goes on elsewhere under its own name, from its own checkpoint.
- `Decide`: positions and state for all that starts are taken from what has ended, and written together with the new
  plan and its number in one atomic write, the journal; then `Decided`. Where that cannot be, the journal is unchanged:
  `Undecided`. Asked again, it is answered again. Never both: what `Undecided` was said of is never written.
- `ChannelDrained`: the reader has committed every segment that the channel holds at that moment.
- From `Decided` on, `Fence` and `Launch` of a fragment mean the fragment of the new plan.
- What was warmed for a change is dropped at `Cool`, at its launch, and when the body starts anew.
"""

from __future__ import annotations

import msgspec

from weft.protocol.words import Effect, Input

ERA_BITS = 20


def least_epoch(number: int) -> int:
    """Below every epoch of what change `number` starts, and above every epoch of what was started before it."""
    return number << ERA_BITS


class End(msgspec.Struct, frozen=True, array_like=True):
    """A fragment that the new plan does not have, and the channels it must drain before it may end."""

    fragment: str
    site: str
    drains: tuple[str, ...] = ()


class Start(msgspec.Struct, frozen=True, array_like=True):
    """A fragment that the old plan does not have."""

    fragment: str
    site: str


class InForce(Input, frozen=True):
    """The plan to run from the start, and the number of the change that made it; 0 for the first."""

    number: int
    starts: tuple[Start, ...]


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


class Warmed(Input, frozen=True):
    """A fragment to come is planned and ready."""

    number: int
    fragment: str


class NotWarmed(Input, frozen=True):
    """A fragment to come could not be made ready; impossible where it could not run either."""

    number: int
    fragment: str
    reason: str
    impossible: bool = False


class ChannelDrained(Input, frozen=True):
    """A reader has committed all that a channel holds."""

    number: int
    channel: str
    fragment: str


class Decided(Input, frozen=True):
    """The journal holds the new plan."""

    number: int


class Undecided(Input, frozen=True):
    """The journal holds the old plan, and will not come to hold this one."""

    number: int
    reason: str


class Ended(Input, frozen=True):
    """The conductor has ended a fragment for a change."""

    fragment: str
    number: int
    clean: bool


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


class Warm(Effect, frozen=True):
    """Make a fragment to come ready to start."""

    number: int
    fragment: str
    site: str


class Cool(Effect, frozen=True):
    """Drop what was made ready."""

    number: int
    fragment: str
    site: str


class Drain(Effect, frozen=True):
    """Tell when a reader has committed all that a channel, which nobody writes any more, holds."""

    number: int
    channel: str
    fragment: str


class Decide(Effect, frozen=True):
    """Write the new plan, with all positions, into the journal."""

    number: int


class Changed(Effect, frozen=True):
    """The new plan is in force; with a reason where not all of it was seen to run."""

    number: int
    reason: str = ""


class NotChanged(Effect, frozen=True):
    """The old plan is in force, as if nothing had been asked."""

    number: int
    reason: str
