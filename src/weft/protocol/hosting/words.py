"""What hosting machines ask of their bodies, and what bodies tell them.

What a body owes them besides the common contract:
- `Fence` is durable, shared by all sites, and only rises: from then on no writer of a lower epoch commits anything.
- `Launch` of an epoch below the fence launches nothing: the body tells `Refused`. Else it tells `Launched` or `Died`.
- A launch that finds itself fenced ends by itself: `Died`. After `Died`, `Halted` or `Drained` nothing of it is alive.
- `Remember` is on disk before the next effect is performed.
- A clean `Halt` begins no batch and lets the one under way be committed, one left over from an earlier epoch included.
  `Halted` is clean only where every batch begun is committed whole: to all outputs, and in the checkpoint.
- `Fence` covers what the fragment of the task writes, and nothing else. No body knows a fragment but by its tasks.
"""

from __future__ import annotations

from weft.protocol.words import Effect, Input, Parcel


class Remember(Effect, frozen=True):
    """Keep the greatest epoch of a fragment through a crash of this machine."""

    fragment: str
    epoch: int


class Fence(Effect, frozen=True):
    """From now on, no writer of this fragment with a lower epoch may commit anything, at any site."""

    fragment: str
    epoch: int
    task: Parcel = Parcel()


class Launch(Effect, frozen=True):
    """Start the fragment of a task from its checkpoint and the next segment."""

    fragment: str
    epoch: int
    task: Parcel = Parcel()


class Halt(Effect, frozen=True):
    """End a launch; clean: at a batch boundary, however long the batch takes; asked again, use force.

    `tells`: let the next batch to begin be the last, and tell `LastBatchBegun`, where that can be told.
    """

    fragment: str
    epoch: int
    clean: bool = False
    tells: bool = False


class Launched(Input, frozen=True):
    """The launch runs; `stands` tells others how they may go on from it."""

    fragment: str
    epoch: int
    stands: Parcel = Parcel()


class LastBatchBegun(Input, frozen=True):
    """The last batch of a launch that is to end cleanly has begun, and will end where `stands` tells."""

    fragment: str
    epoch: int
    stands: Parcel = Parcel()


class Halted(Input, frozen=True):
    """The launch has ended as asked; clean: at a batch boundary, and where `stands` tells."""

    fragment: str
    epoch: int
    clean: bool = False
    stands: Parcel = Parcel()


class Died(Input, frozen=True):
    """The launch has ended unasked, or never began; permanent where a restart cannot help."""

    fragment: str
    epoch: int
    reason: str
    permanent: bool = False


class Drained(Input, frozen=True):
    """The inputs have ended, all is committed, and the launch has ended, where `stands` tells."""

    fragment: str
    epoch: int
    stands: Parcel = Parcel()


class Refused(Input, frozen=True):
    """The fence stands above the epoch: nothing was launched."""

    fragment: str
    epoch: int
    fence: int


class Want(Input, frozen=True):
    """Run a fragment at a site, under an epoch above `least`; where it runs elsewhere, it moves.

    Where it is part of a change, `FragmentUp` tells when it runs. Where it was lost with its site, nothing there is
    waited for. Without a task it runs as it was last told to.
    """

    fragment: str
    site: str
    least: int = 0
    change: int = 0
    lost: bool = False
    task: Parcel | None = None


class Found(Input, frozen=True):
    """As `Want`, of a fragment whose site says that it runs there under an epoch, as wanted: it need not start anew."""

    fragment: str
    site: str
    epoch: int
    least: int = 0
    task: Parcel | None = None


class Unwant(Input, frozen=True):
    """Run a fragment no more."""

    fragment: str


class EndCleanly(Input, frozen=True):
    """End a fragment at a batch boundary for a change; it rests, still wanted, until `Want` or `Unwant` says more.

    `tells`: `FragmentFinishes` tells when its last batch has begun.
    """

    fragment: str
    change: int
    tells: bool = False


class FragmentUp(Effect, frozen=True):
    """A fragment that a change wanted runs, or is done."""

    fragment: str
    change: int


class FragmentFinishes(Effect, frozen=True):
    """A fragment that is to end for a change has begun its last batch."""

    fragment: str
    change: int
    epoch: int
    stands: Parcel = Parcel()


class FragmentEnded(Effect, frozen=True):
    """A fragment that was to end for a change does not run; clean: it ended at a batch boundary, as `stands` tells."""

    fragment: str
    change: int
    clean: bool
    epoch: int = 0
    stands: Parcel = Parcel()


class AllRunning(Effect, frozen=True):
    """Every wanted fragment runs or is done."""


class AllDone(Effect, frozen=True):
    """Every wanted fragment has drained its inputs."""


class AllStopped(Effect, frozen=True):
    """Nothing is wanted, and nothing more is waited for."""


class FragmentIsDown(Effect, frozen=True):
    """A wanted fragment does not run at the moment; it is tried again."""

    fragment: str
    reason: str


class GaveUp(Effect, frozen=True):
    """A fragment is not tried any more, or could not be seen to stop; `silent`: its site did not answer, or not yet."""

    fragment: str
    reason: str
    silent: bool = False
