"""What the process of a site and the desk tell one another of themselves: who is there, and what runs there already.

An agent says every second that it is there; the desk answers how the run was asked for. Each may be lost, late, or come
from an earlier life: nothing is decided by them that the machines would not bear (see `Found`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.model import MachineState
from weft.protocol.words import Epoch, Message, Name, Parcel, Reason

STARTING, READY, FAILED, ENDED = "starting", "ready", "failed", "ended"


class RunsHere(msgspec.Struct, frozen=True, array_like=True):
    """A fragment that runs at a site, under an epoch; `cut` tells apart how it is cut and which checkpoint it has."""

    fragment: Name
    epoch: Epoch
    cut: str


class AgentHere(Message, frozen=True):
    """An agent is there: its process and machine, where Spark shows itself, what runs; `facts` where wanted.

    `knows` is the graph that it has, `refuses` one that its Spark does not take, for which `reason` says why.
    """

    life: Name
    pid: int
    phase: str = STARTING
    reason: Reason = ""
    ui: str = ""
    runs: tuple[RunsHere, ...] = ()
    facts: Parcel = Parcel()
    machine: MachineState | None = None
    knows: str = ""
    refuses: str = ""


class DeskHere(Message, frozen=True):
    """The desk is there, and a run was asked for so; `life` is that of the agent it answers.

    `graph` tells apart what queries there are, and what they share: all processes of a run must have it alike. `whole`
    is that graph, for an agent that has another. `copies` is there where the site has a folder of its own, and tells
    apart what its copies of the desk's files should hold.
    """

    life: Name
    graph: str = ""
    until_done: bool = False
    measured: bool = True
    wants_facts: bool = False
    copies: Annotated[str, msgspec.Meta(max_length=100)] = ""
    whole: Parcel = Parcel()


class CutOff(Message, frozen=True):
    """Let nothing pass between you and another site for so many seconds, as if the way were cut."""

    life: Name
    site: Name
    for_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)]


class Neighbour(Message, frozen=True):
    """A site is there: said to its neighbours so that there is a connection, whose round trips are measured."""


class EndAgent(Message, frozen=True):
    """The run is over: end in order."""

    life: Annotated[str, msgspec.Meta(max_length=500)] = ""


MESSAGES = AgentHere | DeskHere | CutOff | Neighbour | EndAgent
