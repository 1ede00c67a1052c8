"""What is one connection, seen from here? A peer that has shown who it is, frames in, frames out over its line."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from weft.bodies.live.wire import frames
from weft.bodies.live.wire.line import Line
from weft.bodies.live.wire.parties import Party
from weft.bodies.live.wire.traffic import Traffic, full_kbps

WRITE_BUFFER_BYTES = 1 << 20
BULK_S_MAX = 60.0
"""The longest that the other end of a bulk connection may be silent."""


class Ended(ConnectionError):
    """The other end has closed the connection, with a word or without."""


class Connection:
    """A greeted connection; `session` is the peer's."""

    def __init__(
        self,
        link: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: Party,
        session: int,
        line: Line,
        traffic: Traffic,
    ) -> None:
        self.link = link
        self.peer = peer
        self.session = session
        self.heard_s = asyncio.get_running_loop().time()
        self.reader = reader
        self._writer = writer
        self._line = line
        self._traffic = traffic
        self._full_kbps: float | None = None
        writer.transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)

    @property
    def closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._writer.is_closing()

    async def read(self) -> Any:
        """The next frame of a connection for messages."""
        frame = await frames.read_frame(self.reader)
        self.heard_s = asyncio.get_running_loop().time()
        if isinstance(frame, frames.Refusal):
            raise Ended(f"{self.peer} ended the connection: {frame.why}")
        return frame

    def write(self, frame: frames.Frame) -> None:
        """Pass a frame on; where the line is slow, when it would be through."""
        self._pass(frames.framed(frame))

    def _pass(self, *parts: bytes | memoryview) -> None:
        if self.closing:
            return
        if self._line.slow:
            loop = asyncio.get_running_loop()
            at_s = self._line.arrival_s(sum(map(len, parts)), loop.time())
            loop.call_at(at_s, self._write_now, parts)
        else:
            self._write_now(parts)

    def _write_now(self, parts: tuple[bytes | memoryview, ...]) -> None:
        if not self.closing:
            for part in parts:
                self._writer.write(part)
                self._traffic.sent_bytes += len(part)

    # ---- bulk bytes

    async def note(self, data: bytes) -> None:
        """Pass a small value on."""
        self.write(frames.Note(data))
        await self._writer.drain()

    async def chunk(self, data: bytes | memoryview) -> None:
        """Pass bulk bytes on, as fast as they are taken."""
        for at in range(0, len(data), frames.CHUNK_BYTES):
            piece = data[at : at + frames.CHUNK_BYTES]
            self._pass(frames.chunk_head(len(piece)), piece)
            ahead_s = self._line.free_s - asyncio.get_running_loop().time()
            if self._line.slow and ahead_s > 0:
                await asyncio.sleep(ahead_s)
            async with asyncio.timeout(BULK_S_MAX):
                await self._writer.drain()
        found = full_kbps(self._writer.get_extra_info("socket"))
        if found is not None and found != self._full_kbps:  # else it is what was seen before
            self._full_kbps = found
            self._traffic.full(found, time.monotonic())

    async def done(self) -> None:
        """Say that nothing more comes."""
        self.write(frames.Done())
        await self._writer.drain()

    async def take(self, wait_s: float = BULK_S_MAX) -> bytes | frames.Note | None:
        """The next chunk or note, None at the end; Ended where the other end gave up, with its reason."""
        async with asyncio.timeout(wait_s):
            frame = await frames.read_frame(self.reader, chunks=True)
        if isinstance(frame, bytes | frames.Note):
            return frame
        if isinstance(frame, frames.Done):
            return None
        if isinstance(frame, frames.Refusal):
            raise Ended(f"{self.peer}: {frame.why}")
        raise frames.BadFrame(f"{type(frame).__name__} amid bulk bytes")

    # ---- its end

    def refuse(self, why: str) -> None:
        """Say why it ends, and end it."""
        if not self.closing:
            self._writer.write(frames.framed(frames.Refusal(why[:1000])))
        self.close()

    def close(self) -> None:
        """End it; what was written before may still arrive."""
        self._writer.close()

    def abort(self) -> None:
        """End it at once."""
        self._writer.transport.abort()

    async def gone(self) -> None:
        """Wait until it is closed, but not for ever."""
        try:
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self.abort()
