"""How is a copy kept? By following the stream's home: bytes first, then manifests, and what readers passed goes back.

A segment's files are written as they come; segments that have come meanwhile are synced and counted together. When the
connection breaks it begins anew with the first segment that the copy lacks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from weft.bodies.live.mirrors.words import (
    FENCE,
    FOLLOW,
    Begins,
    FenceNote,
    Follow,
    HearFence,
    Holds,
    Passed,
    SegmentNote,
    encode,
    note_of,
)
from weft.bodies.live.wire.connections import Connection, Ended
from weft.bodies.live.wire.frames import BadFrame, Note, text_of
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import Party
from weft.bodies.live.wire.port import Port
from weft.protocol.connection import pause_ms
from weft.spark.channels.mirror import Mirror, Refused, TakenIn
from weft.spark.channels.segments import number_of
from weft.spark.storage.disk import Damaged

PLACES_S, PLACES_AGAIN_S = 0.25, 2.0
SILENT_S_MAX = 15.0
WAITING_MAX = 64
"""Segments that have come and are not counted yet; beyond that the home waits."""
TOGETHER_BYTES = 32 << 20
_FAILS = (OSError, asyncio.IncompleteReadError, TimeoutError, BadFrame, NotBelieved, Refused, Damaged, Ended)


class Follower:
    """Keeps this site's copy of one stream; it lives on the port's own thread."""

    def __init__(self, port: Port, log: Mirror, home: Party, tell: Callable[[str], None] = lambda line: None) -> None:
        self.log = log.create()
        self.home = home
        self.failures = 0
        self.taken = 0
        self._port = port
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self._counting: asyncio.Future[None] | None = None
        self._ended = False

    async def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def stop(self) -> None:
        """Follow no more; what was counted stays."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep(self) -> None:
        while not self._ended:
            try:
                await self._follow()
            except _FAILS as error:
                self.failures += 1
                if self.failures & (self.failures - 1) == 0:
                    self._tell(f"# stream {self.log.name} does not come from {self.home}: {text_of(error)}")
            await asyncio.sleep(pause_ms(self.failures, 50, 2_000) / 1000)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        number = await loop.run_in_executor(None, self.log.wanted)
        asked = Follow(self.log.run, self.log.name, number, self.log.places())
        one = await self._port.ask(self.home, FOLLOW, msgspec.msgpack.encode(asked))
        waiting: asyncio.Queue[TakenIn | FenceNote] = asyncio.Queue(WAITING_MAX)
        helpers = [loop.create_task(self._count(waiting)), loop.create_task(self._places(one))]
        hearing = loop.create_task(self._hear(one, waiting))
        try:
            await asyncio.wait([hearing, *helpers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (hearing, *helpers):
                task.cancel()
            one.abort()
            results = await asyncio.gather(hearing, *helpers, return_exceptions=True)
            if self._counting is not None:
                # It goes on when nobody waits for it: only what it leaves tells what is lacking, and may be removed.
                await asyncio.wait([self._counting])
            self._port.hang_up(one)
        failed = [each for each in results if isinstance(each, Exception)]
        if failed:
            raise failed[0]

    async def _hear(self, one: Connection, waiting: asyncio.Queue[Any]) -> None:
        """Write files as they come; what is whole waits to be counted."""
        while True:
            frame = await one.take(SILENT_S_MAX)
            if frame is None:
                return
            if not isinstance(frame, Note):
                raise BadFrame("bytes of no file")
            match note_of(frame):
                case SegmentNote(sealed, bare):
                    await waiting.put(await self._segment(one, sealed, bare))
                case FenceNote() as fence:
                    await waiting.put(fence)
                case Begins() as begins:
                    if begins.number != self.log.wanted() or not self.log.numbers():
                        self.log.begin_at(begins.number, begins.partitioning)
                    self.failures = 0

    async def _segment(self, one: Connection, sealed: bytes, bare: bool) -> TakenIn:
        found = self.log.room_for(sealed)
        if bare:
            return found._replace(bare=True)
        known = (self.log.manifests / number_of(found.manifest.segment)).exists()
        if not known:
            self.log.disk.remove_tree(found.folder)
        for name, size in zip(found.manifest.files, found.manifest.sizes, strict=True):
            # What is known already is read past: its files lie there, and readers may be at them.
            await receive_file(one, None if known else found.folder / name, size)
        return found

    async def _count(self, waiting: asyncio.Queue[Any]) -> None:
        """Count what waits, in order, as much at once as there is."""
        loop = asyncio.get_running_loop()
        while True:
            held = [await waiting.get()]
            size = 0
            while not waiting.empty() and size < TOGETHER_BYTES:
                held.append(waiting.get_nowait())
                size += held[-1].manifest.bytes if isinstance(held[-1], TakenIn) else 0
            self._counting = loop.run_in_executor(None, self._take_in, held)
            await asyncio.shield(self._counting)

    def _take_in(self, held: list[Any]) -> None:
        run: list[TakenIn] = []
        for each in held:
            if isinstance(each, FenceNote):
                self.taken += self.log.take_in(run)
                run = []
                self.log.hear_fence(each.epoch)
            else:
                run.append(each)
        self.taken += self.log.take_in(run)

    async def _places(self, one: Connection) -> None:
        """Say what readers here still need, when that has changed."""
        loop = asyncio.get_running_loop()
        said: Any = None
        due_s = 0.0
        while True:
            await asyncio.sleep(PLACES_S)
            places = await loop.run_in_executor(None, self.log.places)
            # Said again now and then: a home that had no log yet could not keep them.
            if places != said or loop.time() > due_s:
                said, due_s = places, loop.time() + PLACES_AGAIN_S
                await one.note(encode(Passed(places)))


async def receive_file(one: Connection, path: Path | None, size: int) -> None:
    """Write so many bytes that come as chunks; None: let them pass."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") if path is not None else contextlib.nullcontext() as file:
        left = size
        while left:
            data = await one.take()
            if not isinstance(data, bytes) or not data or len(data) > left:
                raise BadFrame("a file ends before its bytes have come, or after")
            left -= len(data)
            if file is not None:
                file.write(data)


async def tell_fence(port: Port, site: Party, run: str, stream: str, epoch: int) -> Holds:
    """Tell one site that a stream is taken away; how far its copy has come. On the port's own thread."""
    one = await port.ask(site, FENCE, msgspec.msgpack.encode(HearFence(run, stream, epoch)))
    try:
        frame = await one.take()
        if not isinstance(frame, Note):
            raise BadFrame("no answer to a fence")
        return msgspec.msgpack.decode(frame.data, type=Holds)
    finally:
        port.hang_up(one)
