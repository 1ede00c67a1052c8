"""What do sites say to one another about streams? Requests, and the notes between bulk bytes; JSON, of bounded size."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from weft.bodies.live.wire.frames import BadFrame, Note
from weft.spark.channels.partitions import Partitioning

FOLLOW, FENCE, PACK = "follow", "fence", "pack"
"""What is asked for: a stream from a number on; that a fence be heard; a fragment's checkpoint with what goes along."""

StreamName = Annotated[str, msgspec.Meta(min_length=1, max_length=250)]
Places = Annotated[dict[str, tuple[int, bool]], msgspec.Meta(max_length=10_000)]


class Follow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Send me this stream from a segment on, for as long as I listen; these readers of it are here."""

    run: str
    stream: StreamName
    number: Annotated[int, msgspec.Meta(ge=0)]
    places: Places = {}


class Begins(msgspec.Struct, frozen=True, tag=True):
    """The first segment that will come: the one asked for, or a later one where those before it are gone."""

    number: int
    count: int = 1
    key: tuple[str, ...] = ()

    @property
    def partitioning(self) -> Partitioning:
        """How the stream is split."""
        return Partitioning(self.count, self.key)


class FenceNote(msgspec.Struct, frozen=True, tag=True):
    """From here on this epoch writes."""

    epoch: int


class SegmentNote(msgspec.Struct, frozen=True, tag=True):
    """A segment: its manifest as it lies on disk, checksum and all; the bytes of its files follow in order."""

    sealed: bytes
    bare: bool = False
    """No bytes follow: every reader has passed them."""


class StillHere(msgspec.Struct, frozen=True, tag=True):
    """Nothing new."""


class Passed(msgspec.Struct, frozen=True, tag=True):
    """What readers at the copy still need, all of them: one that is missing holds nothing any more."""

    places: Places = {}


Notes = Begins | FenceNote | SegmentNote | StillHere | Passed
_decode = msgspec.msgpack.Decoder(Notes).decode
encode = msgspec.msgpack.Encoder().encode


def note_of(frame: Note) -> Notes:
    """What a note says; BadFrame where it is none of ours."""
    try:
        found: Notes = _decode(frame.data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadFrame(f"a note of another form: {str(error)[:200]}") from error
    return found


class HearFence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Take a stream away from writers of lower epochs, and tell how far your copy has come."""

    run: str
    stream: StreamName
    epoch: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]


class Holds(msgspec.Struct, frozen=True):
    """The epoch that a site now knows for a stream, and the number of the segment that its copy lacks first."""

    epoch: int
    following: int


class AskPack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Give me the checkpoint of a fragment's generation and what goes along."""

    run: str
    fragment: StreamName
    generation: Annotated[int, msgspec.Meta(ge=0)]
    streams: tuple[StreamName, ...] = ()


class PackHead(msgspec.Struct, frozen=True):
    """What a pack holds: how many files, and for each stream its end and its readers' places."""

    files: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
    ends: dict[str, int] = {}
    places: dict[str, Places] = {}


class FileHead(msgspec.Struct, frozen=True):
    """A file of the fragment's room: its name, how long it is, and its checksum; its bytes follow."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    crc: int


Asked = TypeVar("Asked")


def request_of(data: bytes, kind: type[Asked]) -> Asked:
    """A request of some kind; BadFrame where it is none."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadFrame(f"a request of another form: {str(error)[:200]}") from error
