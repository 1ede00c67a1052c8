"""What do a command and a desk say to one another? Requests of known form and bounded size, and what comes back.

A command may look, take copies of what a run tells of itself, ask for a change, and ask for the end; nothing else.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from weft.bodies.live.wanted import Wanted
from weft.bodies.live.wire.frames import BadFrame, Note

ASK = "command"
"""What a command asks for over a connection of its own."""
PART_BYTES_MAX = 64 << 20
PARTS_MAX = 1_000
STILL_S = 2.0
"""How often a desk says that an answer is still to come."""

_TOLD = ("status.json", "run.json", "plan.json", "decisions.jsonl", "decisions.jsonl.1", "story.log")
_LOG = re.compile(r"logs/(?:console|spark|errors)\.log|logs/sites/[^/\0]+/[^/\0]+\.log")
_PLAN = re.compile(r"(?:sites/[^/\0]+/)?fragments/[^/\0]+/plan\.txt")

FileName = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Place = Annotated[int, msgspec.Meta(ge=-PART_BYTES_MAX, le=1 << 62)]


def may_be_taken(name: str) -> bool:
    """True for what a run tells people of itself: status, plans, decisions and logs. Not for keys, records, state."""
    known = name in _TOLD or _LOG.fullmatch(name) or _PLAN.fullmatch(name)
    return bool(known) and not {".", ".."} & set(name.split("/"))


class Look(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Who is there?"""


class Take(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Give me these files from a place on; a place below zero counts from the end."""

    places: Annotated[dict[FileName, Place], msgspec.Meta(min_length=1, max_length=PARTS_MAX)]


class Change(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Change the run, and tell me what became of it."""

    wanted: Wanted


class Stop(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """End the run in order."""


class Seen(msgspec.Struct, frozen=True, tag=True):
    """A desk, its state, the processes of its sites, and which logs there are."""

    pid: int
    folder: str
    agents: dict[str, int] = {}
    logs: tuple[str, ...] = ()


class Part(msgspec.Struct, frozen=True, tag=True):
    """So much of a file from a place on; its bytes follow. `size` is None where there is no such file."""

    name: str
    at: int = 0
    bytes: Annotated[int, msgspec.Meta(ge=0, le=PART_BYTES_MAX)] = 0
    size: int | None = None


class StillWaiting(msgspec.Struct, frozen=True, tag=True):
    """The answer is still to come."""


class Answer(msgspec.Struct, frozen=True, tag=True):
    """What became of a change, as JSON."""

    json: bytes


class Stopping(msgspec.Struct, frozen=True, tag=True):
    """The run has been asked to end."""


Asked = Look | Take | Change | Stop
Told = Seen | Part | StillWaiting | Answer | Stopping
_asked = msgspec.msgpack.Decoder(Asked)
_told = msgspec.msgpack.Decoder(Told)
encode = msgspec.msgpack.Encoder().encode


def asked_of(data: bytes) -> Asked:
    """What a command asks; BadFrame where it is nothing that may be asked."""
    try:
        found: Asked = _asked.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadFrame(f"a request of another form: {str(error)[:200]}") from error
    for name in found.places if isinstance(found, Take) else ():
        if not may_be_taken(name):
            raise BadFrame(f"{name[:100]!r} is nothing that a command is given")
    return found


def told_by(frame: Any) -> Told:
    """What a desk says; BadFrame where it is none of ours."""
    try:
        assert isinstance(frame, Note)
        found: Told = _told.decode(frame.data)
    except (AssertionError, msgspec.MsgspecError, ValueError) as error:
        raise BadFrame(f"an answer of another form: {str(error)[:200]}") from error
    return found
