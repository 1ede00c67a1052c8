"""Is the other end who it says? TLS with both certificates, then a hello each way that must agree with them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.bodies.live.wire import frames
from weft.bodies.live.wire.credentials import Credentials
from weft.bodies.live.wire.frames import WIRE_VERSION, Hello
from weft.bodies.live.wire.parties import COMMAND, SITE, Party, named_in
from weft.protocol.messages import VERSION

HANDSHAKE_S_MAX = 5.0
CALL_S_MAX = 5.0
READ_BYTES = 1 << 19


class Paused(asyncio.Protocol):
    """A connection of which nothing is read before TLS takes it."""

    def connection_made(self, transport: Any) -> None:
        transport.pause_reading()


class Accepting(Paused):
    """One that somebody has made to us."""

    def __init__(self, accepted: Callable[[asyncio.Transport], None]) -> None:
        self._accepted = accepted

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._accepted(transport)


class NotBelieved(Exception):
    """The other end is not who it says, or speaks another language."""


class Self(NamedTuple):
    """What this process says of itself."""

    credentials: Credentials
    deployment: str
    session: int

    def hello(self, stream: str) -> Hello:
        """What it says first."""
        me = self.credentials.party
        return Hello(WIRE_VERSION, VERSION, self.deployment, me.kind, me.site, self.session, stream)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def secured(raw: asyncio.Transport, context: ssl.SSLContext, called: bool) -> Streams:
    """TLS over a connection that was just made, whose reading is paused."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    tls = await loop.start_tls(raw, protocol, context, server_side=called, ssl_handshake_timeout=HANDSHAKE_S_MAX)
    if tls is None:
        raise ConnectionError("it was closed amid the handshake")
    protocol.connection_made(tls)
    return reader, asyncio.StreamWriter(tls, protocol, reader, loop)


async def called(where: tuple[str, int], me: Self, stream: str, party: Party) -> tuple[Streams, Hello]:
    """Call a party at an address; the connection, once it has shown that it is the one."""
    async with asyncio.timeout(CALL_S_MAX):
        raw = await _connected(*where)
    try:
        streams = await secured(raw, me.credentials.calls, called=False)
        return streams, await greet(streams, me, stream, party)
    except BaseException:
        raw.abort()
        raise


async def _connected(host: str, port: int) -> asyncio.Transport:
    """A connection to the first address of a host that takes one; where none does, refused if any refuses.

    Asked for all of them at once, asyncio would tell of several failures as of one of no known kind.
    """
    loop, failures = asyncio.get_running_loop(), list[OSError]()
    for family, *_, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            raw, _ = await loop.create_connection(Paused, *address[:2], family=family)
        except OSError as error:
            failures.append(error)
        else:
            return raw
    raise min(failures, key=lambda error: not isinstance(error, ConnectionRefusedError))


async def greet(streams: Streams, me: Self, stream: str, expected: Party) -> Hello:
    """As the one that calls: say who I am, and hear that it is the one I wanted."""
    reader, writer = streams
    _check_names(writer, expected)
    writer.write(frames.framed(me.hello(stream)))
    hello = await _hello(reader)
    return _believed(hello, expected, me)


async def greeted(streams: Streams, me: Self, admit: Callable[[Party], None]) -> Hello:
    """As the one that is called: hear who it is, whether its certificate bears that name, and answer.

    `admit` raises where a party, though it is who it says, is not to be answered now.
    """
    reader, writer = streams
    hello = await _hello(reader)
    says = Party(hello.kind, hello.site)
    _check_names(writer, says)
    _believed(hello, says, me)
    if hello.stream not in (frames.MESSAGES, frames.BULK):
        raise NotBelieved(f"{says} asks for a connection for `{hello.stream}`, which this version does not know")
    if says.kind == COMMAND and hello.stream != frames.BULK:
        raise NotBelieved("a command may only ask: it has no messages to say")
    admit(says)
    writer.write(frames.framed(me.hello(hello.stream)))
    return hello


async def _hello(reader: asyncio.StreamReader) -> Hello:
    async with asyncio.timeout(HANDSHAKE_S_MAX):
        frame = await frames.read_frame(reader)
    if isinstance(frame, frames.Refusal):
        raise NotBelieved(f"it refused: {frame.why}")
    if not isinstance(frame, Hello):
        raise frames.BadFrame(f"{type(frame).__name__} came before a hello")
    return frame


def _check_names(writer: asyncio.StreamWriter, says: Party) -> None:
    names = named_in(writer.get_extra_info("peercert"))
    if says.uri not in names:
        raise NotBelieved(f"its certificate is made out to {', '.join(sorted(names)) or 'nobody'}, not to {says.uri}")


def _believed(hello: Hello, expected: Party, me: Self) -> Hello:
    says = Party(hello.kind, hello.site)
    if says != expected:
        raise NotBelieved(f"it says that it is {says}, not {expected}")
    if hello.wire != WIRE_VERSION or hello.weft != VERSION:
        theirs, ours = f"{hello.wire}.{hello.weft}", f"{WIRE_VERSION}.{VERSION}"
        raise NotBelieved(f"{says} speaks version {theirs}, this process {ours}; install the same Weft on both")
    if says.site and says.kind != SITE:
        raise NotBelieved(f"{says}: only sites have names")
    # A command may hold a file that has changed since.
    if hello.deployment != me.deployment and COMMAND not in (says.kind, me.credentials.party.kind):
        raise NotBelieved(f"{says} runs another deployment; give both the same file")
    return hello
