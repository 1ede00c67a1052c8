"""What is spoken of on the ground under a change of placement: launches, checkpoints, and what must never be."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import msgspec

from weft.bodies.explorer.worlds.move_plan import MoveCase, Piece, Sites
from weft.protocol import Input
from weft.protocol.change_messages import After, EndedAt

DESK = "conductor"
LAUNCHING, ALIVE, TELLING, FINISHING, HALTING = "launching", "alive", "telling", "finishing", "halting"
REFUSED, ORPHAN = "refused", "orphan"
ENDABLE = (LAUNCHING, ALIVE, TELLING, FINISHING)
ENDING = (TELLING, FINISHING)

UNFENCED = "a piece is launched only behind its own fence"
CROWDED = "a site has at most one launch of a piece alive"
ELSEWHERE = "only what the plan in force has is launched, and only where it has it"
DOUBLED = "no record is written twice to a stream, none is skipped"
STATE = "state has seen every record before the one it sees, once"
BOUNDARY = "a plan is decided only when all it ends has ended, at a batch boundary"
HASTY = "a clean halt is asked for once; again would be force"
VERDICT = "a change is called changed or not changed once, and as the journal has it"
CARRIED = "a plan is decided only on what was carried over from where all it ends has ended"
KEPT = "what the journal rests on is neither written again nor dropped"
BUSY = "a site is asked for one thing at a time for each fragment to come"
GATE = "only what is ready is let in, and only for what it awaits"
FAULTS = (UNFENCED, CROWDED, ELSEWHERE, DOUBLED, STATE, BOUNDARY, HASTY, VERDICT, CARRIED, KEPT, BUSY, GATE)


class Batch(Input, frozen=True):
    """A step of a batch, of which no machine hears."""

    fragment: str
    epoch: int
    step: str


class Written(Input, frozen=True):
    """The journal is written, and nobody knows yet."""

    number: int


class Checkpoint(NamedTuple):
    """How far a piece has come: records taken, whether a batch is half written, and what the state has seen."""

    taken: int = 0
    half: bool = False
    state: int = 0


class Life(NamedTuple):
    """A launch."""

    site: str
    fragment: str
    epoch: int
    phase: str
    piece: Piece


class Ahead(NamedTuple):
    """Something that a site was asked for ahead of a start: to make ready, or to carry over after some ends."""

    site: str
    number: int
    fragment: str
    ended: tuple[EndedAt, ...] = ()
    ready: bool = False


class Held(msgspec.Struct, frozen=True):
    """What really is: what runs where, what streams, checkpoints, disks and the journal hold."""

    case: MoveCase
    sites: Sites
    checkpoints: tuple[tuple[str, Checkpoint], ...]
    deaths_left: int = 0
    undecided_left: int = 0
    silent_left: int = 0
    number: int = 0
    sinks: tuple[tuple[str, int], ...] = ()
    channel: tuple[int, ...] = ()
    fences: tuple[tuple[str, int], ...] = ()
    lives: tuple[Life, ...] = ()
    disks: tuple[tuple[str, str, int], ...] = ()
    resuming: bool = True
    found: tuple[tuple[str, int], ...] = ()
    """What ran as the plan has it, each under its epoch, when the desk was lost: by the time it is told it may not."""
    resumed: int = 0
    turn: int = 0
    warm: tuple[Ahead, ...] = ()
    carrying: tuple[Ahead, ...] = ()
    carried: tuple[tuple[str, int, After, Checkpoint], ...] = ()
    drains: tuple[tuple[str, int, str, str, After], ...] = ()
    deciding: int = 0
    said: tuple[tuple[int, bool], ...] = ()
    cold: bool = False
    refusals: bool = False
    missed: bool = False
    fault: str = ""

    @property
    def plan(self) -> dict[str, Piece]:
        """The pieces in force."""
        return self.case.cut(self.sites)

    def but(self, **changes: Any) -> Self:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)
