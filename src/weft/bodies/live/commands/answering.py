"""How does a desk answer commands from elsewhere? From its state folder, as if they stood beside it.

A change goes the way of those asked for on this machine: a file among the requests, and its answer beside it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from weft.bodies.live.commands.words import (
    ASK,
    PART_BYTES_MAX,
    PARTS_MAX,
    STILL_S,
    Answer,
    Change,
    Look,
    Part,
    Seen,
    StillWaiting,
    Stop,
    Stopping,
    Take,
    asked_of,
    encode,
)
from weft.bodies.live.processes.roll import living
from weft.bodies.live.state import REQUESTS, STOP, State
from weft.bodies.live.wanted import Wanted
from weft.bodies.live.wire.connections import Connection
from weft.bodies.live.wire.frames import CHUNK_BYTES
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import COMMAND
from weft.bodies.live.wire.port import Port

LOOK_S = 0.05
ANSWER_S_MAX = 3_600.0
"""The longest that a change is waited for on behalf of a command that does not hang up."""


class Answering:
    """Answers what commands ask over a port."""

    def __init__(self, state: State, story: Callable[[str], None]) -> None:
        self.state = state
        self._story = story
        self._numbers = itertools.count()

    def at(self, port: Port) -> None:
        """Answer whoever asks there."""
        port.serve(ASK, self.answer)

    async def answer(self, one: Connection, request: bytes) -> None:
        """Answer one request; NotBelieved for a peer that is no command, BadFrame for what may not be asked."""
        if one.peer.kind != COMMAND:
            raise NotBelieved(f"{one.peer} is no command: its key does not ask for that")
        match asked_of(request):
            case Look():
                await one.note(encode(await self._beside(self._seen)))
            case Take(places=places):
                for name, at in places.items():
                    await self._give(one, name, at)
            case Change(wanted=wanted):
                self._story(f"# a command from elsewhere: {wanted}")
                await self._change(one, wanted)
            case Stop():
                self._story("# a command from elsewhere: stop")
                (self.state.path / STOP).touch()
                await one.note(encode(Stopping()))
        await one.done()

    async def _beside(self, what: Callable[[], msgspec.Struct]) -> msgspec.Struct:
        """Do what asks the disk beside the port's own thread."""
        return await asyncio.get_running_loop().run_in_executor(None, what)

    def _seen(self) -> Seen:
        logs = [*self.state.path.glob("logs/*.log"), *self.state.path.glob("logs/sites/*/*.log")]
        names = tuple(sorted(path.relative_to(self.state.path).as_posix() for path in logs)[:PARTS_MAX])
        return Seen(os.getpid(), str(self.state.path), living(self.state.path), names)

    async def _give(self, one: Connection, name: str, at: int) -> None:
        """Send a file, or that it is not there; one that lies elsewhere by a link is not there."""
        path = (self.state.path / name).resolve()
        try:
            if not path.is_relative_to(self.state.path):
                raise FileNotFoundError(name)
            with open(path, "rb") as file:
                await self._send(one, file, name, at)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError):
            await one.note(encode(Part(name)))

    async def _send(self, one: Connection, file: IO[bytes], name: str, at: int) -> None:
        size = os.fstat(file.fileno()).st_size
        first = min(size, at) if at >= 0 else max(0, size + at)
        left = min(size - first, PART_BYTES_MAX)
        await one.note(encode(Part(name, first, left, size)))
        file.seek(first)
        while left:
            data = file.read(min(left, CHUNK_BYTES))
            if not data:
                raise OSError(f"{name} is shorter than it was")
            left -= len(data)
            await one.chunk(data)

    async def _change(self, one: Connection, wanted: Wanted) -> None:
        key = f"{time.time_ns()}-{next(self._numbers)}"
        folder = self.state.path / REQUESTS
        folder.mkdir(exist_ok=True)
        self.state.tell(f"{REQUESTS}/{key}.json", msgspec.to_builtins(wanted))
        answer = folder / f"{key}.answer.json"
        end_s, said_s = time.monotonic() + ANSWER_S_MAX, time.monotonic()
        while (found := _read(answer)) is None:
            if one.closing or time.monotonic() > end_s:
                raise TimeoutError("nobody waits for the answer any more")
            if time.monotonic() > said_s + STILL_S:
                said_s = time.monotonic()
                await one.note(encode(StillWaiting()))
            await asyncio.sleep(LOOK_S)
        answer.unlink(missing_ok=True)
        await one.note(encode(Answer(found)))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
