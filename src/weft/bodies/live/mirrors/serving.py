"""What does a stream's home do for its copies? Sends what was committed, in order, and keeps what they still need.

Epochs stand where they rose: a fence goes before the first segment of its epoch, and the present one after the last
segment. So a copy counts what the home has counted, wherever it begins.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from pathlib import Path
from typing import IO

from weft.bodies.live.mirrors.words import (
    Begins,
    FenceNote,
    Follow,
    HearFence,
    Holds,
    Passed,
    SegmentNote,
    StillHere,
    encode,
    note_of,
    request_of,
)
from weft.bodies.live.wire.connections import Connection
from weft.bodies.live.wire.frames import CHUNK_BYTES, Note
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import COMMAND
from weft.spark.channels.channel import fragment_of, reader_name
from weft.spark.channels.folders import Folders
from weft.spark.channels.keeping import AWAITED
from weft.spark.channels.mirror import Mirror, is_stream_name
from weft.spark.channels.segments import number_of

LOOK_S, LOOK_S_MAX = 0.004, 0.02
IDLE_S = 3.0


class Home:
    """Serves the streams of one site's state folder to the other sites of the run."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._told: dict[tuple[str, str], set[str]] = {}
        """The readers of a stream that a site which follows it has told of."""
        self._following: Counter[tuple[str, str]] = Counter()

    def mirror(self, one: Connection, run: str, stream: str) -> Mirror:
        """The log of a stream that another site asks for; NotBelieved where it may not."""
        if one.peer.kind == COMMAND:
            raise NotBelieved("streams go to sites of the deployment only")
        if run != self.folders.run:
            raise NotBelieved(f"{one.peer} is of another run ({run or 'unknown'}, not {self.folders.run})")
        if not is_stream_name(stream):
            raise NotBelieved(f"{one.peer} asked for a stream of an impossible name")
        found = self.folders.stream(stream)
        if not isinstance(found, Mirror):
            raise NotBelieved(f"stream {stream} lies in a channel that is not mirrored")
        return found

    async def fence(self, one: Connection, request: bytes) -> None:
        """Hear a fence, and say how far this site's log has come."""
        asked = request_of(request, HearFence)
        log = self.mirror(one, asked.run, asked.stream)
        held = await asyncio.get_running_loop().run_in_executor(None, log.hear_fence, asked.epoch)
        await one.note(encode(Holds(held.epoch, held.following)))
        await one.done()

    async def follow(self, one: Connection, request: bytes) -> None:
        """Send a stream from a number on until the other end hangs up."""
        asked = request_of(request, Follow)
        log = self.mirror(one, asked.run, asked.stream)
        self._following[log.name, one.peer.site] += 1
        self.pass_on(log, one.peer.site, asked.places)
        hearing = asyncio.get_running_loop().create_task(self._hear(one, log))
        try:
            await self._send(one, log, asked.number)
        finally:
            hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await hearing
            self._following[log.name, one.peer.site] -= 1
            if not self._following[log.name, one.peer.site]:
                self._told.pop((log.name, one.peer.site), None)

    async def _hear(self, one: Connection, log: Mirror) -> None:
        """What readers at the copy have passed comes back over the same connection."""
        try:
            while (frame := await one.take()) is not None:
                if isinstance(frame, Note) and isinstance(told := note_of(frame), Passed):
                    self.pass_on(log, one.peer.site, told.places)
        finally:
            one.close()

    def pass_on(self, log: Mirror, site: str, places: dict[str, tuple[int, bool]]) -> None:
        """Keep for a site's readers what they still need, and no longer for those that it has no more."""
        if not log.is_there():
            return
        now = {reader for reader in places if is_stream_name(reader)}
        for reader in now:
            number, has_read = places[reader]
            log.passed(reader, number, has_read)
            log.forget(reader_name(fragment_of(reader), AWAITED))
        gone = self._told.pop((log.name, site), set()) - now
        for reader in gone - self.told(log.name):  # one that has moved is another site's by now
            log.forget(reader)
        self._told[log.name, site] = now

    def told(self, stream: str) -> set[str]:
        """The readers of a stream that sites with copies tell of now."""
        return {reader for (name, _), readers in self._told.items() if name == stream for reader in readers}

    async def _send(self, one: Connection, log: Mirror, number: int) -> None:
        loop = asyncio.get_running_loop()
        while not log.manifests.is_dir():  # the writer has not begun yet
            await self._idle(one, LOOK_S_MAX)
        first = max(number, log.first_segment())
        split = log.partitioning()
        await one.note(encode(Begins(first, split.count, split.key)))
        at, epoch, wait_s, said_s = first, 0, LOOK_S, loop.time()
        while not one.closing:
            sent = at
            while (sealed := _read(log.manifests / number_of(at))) is not None:
                epoch = await self._segment(one, log, sealed, epoch)
                at += 1
            fence = log.epoch()
            if fence > epoch and _read(log.manifests / number_of(at)) is None:
                await one.note(encode(FenceNote(fence)))
                epoch = fence
            if at > sent:
                wait_s, said_s = LOOK_S, loop.time()
            elif at < log.first_segment():
                raise NotBelieved(f"segments from {at} on were removed before they were sent")
            elif loop.time() - said_s > IDLE_S:
                await one.note(encode(StillHere()))
                said_s = loop.time()
            await asyncio.sleep(wait_s)
            wait_s = min(LOOK_S_MAX, wait_s * 1.05)

    async def _idle(self, one: Connection, wait_s: float) -> None:
        if one.closing:
            raise ConnectionError("the other end is gone")
        await asyncio.sleep(wait_s)

    async def _segment(self, one: Connection, log: Mirror, sealed: bytes, epoch: int) -> int:
        found = log.room_for(sealed)
        if found.manifest.epoch > epoch:
            epoch = found.manifest.epoch
            await one.note(encode(FenceNote(epoch)))
        with contextlib.ExitStack() as held:
            try:
                # Opened before the first byte is promised: what is removed meanwhile can still be read.
                files = [held.enter_context(open(found.folder / name, "rb")) for name in found.manifest.files]
            except FileNotFoundError:
                if found.manifest.segment >= log.needed():
                    raise
                await one.note(encode(SegmentNote(sealed, bare=True)))
                return epoch
            await one.note(encode(SegmentNote(sealed)))
            for file, size in zip(files, found.manifest.sizes, strict=True):
                await send_file(one, file, size)
        return epoch


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


async def send_file(one: Connection, file: IO[bytes], size: int) -> None:
    """Send so many bytes of a file, chunk by chunk."""
    left = size
    while left:
        data = file.read(min(left, CHUNK_BYTES))
        if not data:
            raise OSError(f"{file.name} is shorter than it was")
        left -= len(data)
        await one.chunk(data)
