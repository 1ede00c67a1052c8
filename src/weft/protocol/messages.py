"""What sites say to one another: typed, versioned, of bounded size; JSON on the wire, so that a person can read it.

    {"weft": 7, "message": {"type": "StartFragment", "fragment": "f1", "epoch": 3, "task": ["..."]}}

A peer of a newer version is refused, never half understood: a change to a message raises VERSION.
"""

from __future__ import annotations

import msgspec

from weft.protocol.agents import MESSAGES as AGENTS
from weft.protocol.balancing.words import MESSAGES
from weft.protocol.change_messages import MESSAGES as CHANGES
from weft.protocol.directory.words import MESSAGES as DIRECTORY
from weft.protocol.exclusion.words import MESSAGES as EXCLUSION
from weft.protocol.feedback.words import MESSAGES as FEEDBACK
from weft.protocol.reporting.words import MESSAGES as REPORTING
from weft.protocol.scaling.words import MESSAGES as SCALING
from weft.protocol.words import REASON_CHARS_MAX, Epoch, Message, Name, Parcel, Reason

__all__ = [
    "MESSAGE_BYTES_MAX",
    "REASON_CHARS_MAX",
    "VERSION",
    "AnyMessage",
    "BadMessage",
    "FragmentDone",
    "FragmentFailed",
    "FragmentFinishing",
    "FragmentPending",
    "FragmentRefused",
    "FragmentRunning",
    "FragmentStopped",
    "Message",
    "StartFragment",
    "StopFragment",
    "decode",
    "encode",
]

VERSION = 8
MESSAGE_BYTES_MAX = 1 << 20


class BadMessage(Exception):
    """Bytes that are no message of this version."""


class StartFragment(Message, frozen=True):
    """Run a fragment under this epoch, as the task tells; said again, it asks how that epoch is doing."""

    fragment: Name
    epoch: Epoch
    task: Parcel = Parcel()


class StopFragment(Message, frozen=True):
    """End this epoch of a fragment, and never launch it; clean: let the batch under way be committed first.

    `tells`: say when the last batch has begun, for others wait to go on where it will end.
    """

    fragment: Name
    epoch: Epoch
    clean: bool = False
    tells: bool = False
    task: Parcel = Parcel()


class FragmentPending(Message, frozen=True):
    """The site is launching or halting; the outcome follows."""

    fragment: Name
    epoch: Epoch


class FragmentRunning(Message, frozen=True):
    """The epoch runs; `stands` tells others how they may go on from it."""

    fragment: Name
    epoch: Epoch
    stands: Parcel = Parcel()


class FragmentFinishing(Message, frozen=True):
    """The last batch of an epoch has begun, and ends where `stands` tells, unless it comes to nothing."""

    fragment: Name
    epoch: Epoch
    stands: Parcel = Parcel()


class FragmentStopped(Message, frozen=True):
    """The epoch does not run and never will again, because it was asked to stop; clean: at a batch boundary.

    Where it was clean, `stands` tells where it came to.
    """

    fragment: Name
    epoch: Epoch
    clean: bool = False
    stands: Parcel = Parcel()


class FragmentDone(Message, frozen=True):
    """The epoch's inputs have ended and everything is drained; `stands` tells where it came to."""

    fragment: Name
    epoch: Epoch
    stands: Parcel = Parcel()


class FragmentFailed(Message, frozen=True):
    """The epoch does not run and never will again; a permanent failure would come back with every start."""

    fragment: Name
    epoch: Epoch
    reason: Reason
    permanent: bool = False


class FragmentRefused(Message, frozen=True):
    """The epoch is too old to run; `greatest` is the one it must exceed."""

    fragment: Name
    epoch: Epoch
    greatest: Epoch


AnyMessage = (
    StartFragment
    | StopFragment
    | FragmentPending
    | FragmentRunning
    | FragmentFinishing
    | FragmentStopped
    | FragmentDone
    | FragmentFailed
    | FragmentRefused
    | CHANGES
    | MESSAGES
    | EXCLUSION
    | SCALING
    | REPORTING
    | AGENTS
    | DIRECTORY
    | FEEDBACK
)


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    weft: int
    message: msgspec.Raw


class _Version(msgspec.Struct):
    weft: int


_message = msgspec.json.Decoder(AnyMessage)
_envelope = msgspec.json.Decoder(_Envelope)
_version = msgspec.json.Decoder(_Version)


def encode(message: Message) -> bytes:
    """A message as bytes, its version in front; BadMessage where it would be too large to be taken."""
    data = msgspec.json.encode({"weft": VERSION, "message": message})
    if len(data) > MESSAGE_BYTES_MAX:
        raise BadMessage(f"{type(message).__name__} has {len(data)} bytes; {MESSAGE_BYTES_MAX} are allowed")
    return data


def decode(data: bytes) -> Message:
    """The message in some bytes; BadMessage where they are too many, of another version, or malformed."""
    if len(data) > MESSAGE_BYTES_MAX:
        raise BadMessage(f"a message of {len(data)} bytes; {MESSAGE_BYTES_MAX} are allowed")
    try:
        version = _version.decode(data).weft
        if version != VERSION:
            hint = "upgrade this site" if version > VERSION else "upgrade the sender"
            raise BadMessage(f"a message of version {version}, this site speaks {VERSION}: {hint}")
        message: Message = _message.decode(_envelope.decode(data).message)
        return message
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"malformed message: {error}") from error
