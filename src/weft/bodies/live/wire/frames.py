"""What travels over a connection? Frames: four bytes of length, one of kind, and the rest, which is never a pickle.

The first frame each way is a hello. On a connection for messages follow numbered messages, acknowledgements and pings;
on one for bulk bytes, notes (small values) and chunks. Whoever breaks a rule is told why, and the connection ends.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Annotated, Any

import msgspec

from weft.bodies.live.transport import Address
from weft.protocol.messages import MESSAGE_BYTES_MAX

WIRE_VERSION = 1
FRAME_BYTES_MAX = MESSAGE_BYTES_MAX + 4096
CHUNK_BYTES, CHUNK_BYTES_MAX = 1 << 17, 1 << 20
"""What is sent at once, and what is taken: of larger chunks every copy that TLS and asyncio make misses the cache."""
MESSAGES, BULK = "messages", "bulk"
VALUE, CHUNK = 1, 2
_HEAD = struct.Struct("<IB")
HEAD_BYTES = _HEAD.size

Short = Annotated[str, msgspec.Meta(max_length=200)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class BadFrame(Exception):
    """Bytes that are no frame, or one that may not stand here."""


class Frame(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """One value that one end says to the other."""


class Hello(Frame, frozen=True):
    """Who I am, which version I speak, which deployment I run, in which session, and what this connection is for."""

    wire: int
    weft: int
    deployment: Short
    kind: Short
    site: Short
    session: Number
    stream: Short = MESSAGES


class Carry(Frame, frozen=True):
    """A message with its number."""

    number: Number
    data: bytes


class Ack(Frame, frozen=True):
    """All messages of your session up to this number are taken."""

    session: Number
    number: Number


class Ping(Frame, frozen=True):
    """Are you there?"""

    number: Number


class Pong(Frame, frozen=True):
    """I am, and this is my clock."""

    number: Number
    clock_ms: float


class Refusal(Frame, frozen=True):
    """The connection ends here, and why."""

    why: Annotated[str, msgspec.Meta(max_length=1000)]


class Ask(Frame, frozen=True):
    """What is wanted over a connection for bulk bytes."""

    what: Short
    request: bytes


class Note(Frame, frozen=True):
    """A small value amid bulk bytes, encoded by those who use it."""

    data: bytes


class Done(Frame, frozen=True):
    """Nothing more comes."""


AnyFrame = Hello | Carry | Ack | Ping | Pong | Refusal | Ask | Note | Done
_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyFrame)
_envelope = msgspec.msgpack.Decoder(tuple[Short, Short, Short, Short, bytes])


def framed(frame: Frame) -> bytes:
    """A frame as bytes; BadFrame where it is too long to be taken."""
    body = _encode(frame)
    if len(body) > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame has {len(body)} bytes; at most {FRAME_BYTES_MAX} are taken")
    return _HEAD.pack(len(body), VALUE) + body


def chunk_head(size: int) -> bytes:
    """What stands before a chunk of bulk bytes."""
    return _HEAD.pack(size, CHUNK)


async def read_frame(reader: asyncio.StreamReader, chunks: bool = False) -> AnyFrame | bytes:
    """The next frame, or the bytes of a chunk where those may come; BadFrame where it is neither."""
    size, kind = _HEAD.unpack(await reader.readexactly(HEAD_BYTES))
    if kind == CHUNK and chunks:
        if size > CHUNK_BYTES_MAX:
            raise BadFrame(f"a chunk of {size} bytes; at most {CHUNK_BYTES_MAX} are taken")
        return await reader.readexactly(size)
    if kind != VALUE:
        raise BadFrame(f"a frame of kind {kind}")
    if size > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame of {size} bytes; at most {FRAME_BYTES_MAX} are taken")
    body = await reader.readexactly(size)
    try:
        frame: AnyFrame = _decoder.decode(body)
        return frame
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadFrame(f"a frame of another form: {str(error)[:200]}") from error


def enveloped(sender: Address, to: Address, data: bytes) -> bytes:
    """A message with those it passes between."""
    return _encode((*sender, *to, data))


def opened(data: bytes) -> tuple[Address, Address, bytes]:
    """Sender, addressee and message; BadFrame where it is none."""
    try:
        role, site, to_role, to_site, body = _envelope.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadFrame(f"a message of another form: {str(error)[:200]}") from error
    return Address(role, site), Address(to_role, to_site), body


def text_of(error: BaseException) -> Any:
    """An error of a connection in a few words."""
    return str(error)[:300] or type(error).__name__
