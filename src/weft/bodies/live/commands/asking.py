"""How does a command ask a desk on another machine? One request to a connection, over a port that nobody can call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from weft.bodies.live.commands.words import (
    ASK,
    Answer,
    Asked,
    Change,
    Look,
    Part,
    Seen,
    StillWaiting,
    Stop,
    Stopping,
    Take,
    Told,
    encode,
    told_by,
)
from weft.bodies.live.wanted import Wanted
from weft.bodies.live.wire.connections import Connection
from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.frames import BadFrame, text_of
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import A_COMMAND, THE_DESK
from weft.bodies.live.wire.port import Port, Where

SOON_S_MAX = 30.0
"""The longest that the next word of a desk is waited for."""


class NoDesk(Exception):
    """Nobody listens where the desk should."""


class NoAnswer(Exception):
    """Somebody is there and does not answer, or refuses; the text says why."""


class TooLong(Exception):
    """The answer to a change is not there in time; the change may still come."""


class DeskElsewhere:
    """The desk of a run, asked from anywhere; NoKey where the key that this takes is not to be had."""

    def __init__(self, where: Where, keys: Path) -> None:
        self.where = where
        self._port = Port(credentials(keys, A_COMMAND), "", listen=None, peers={THE_DESK: where})
        self._port.start()

    def look(self) -> Seen:
        """Who is there."""
        found: Seen = self._do(self._one(Look(), Seen))
        return found

    def take(self, places: Mapping[str, int]) -> dict[str, tuple[Part, bytes]]:
        """Files from their places on, as far as they are there."""
        found: dict[str, tuple[Part, bytes]] = self._do(self._taken(dict(places)))
        return found

    def change(self, wanted: Wanted, timeout_s: float) -> Any:
        """What became of a change, as JSON; TooLong where nobody knows yet."""
        found: Answer = self._do(self._one(Change(wanted), Answer, timeout_s))
        try:
            return msgspec.json.decode(found.json)
        except msgspec.DecodeError as error:
            raise NoAnswer("the answer cannot be read") from error

    def stop(self) -> None:
        """Ask for the end of the run."""
        self._do(self._one(Stop(), Stopping))

    def _do(self, work: Any) -> Any:
        try:
            return self._port.do(work).result()
        except ConnectionRefusedError as error:
            raise NoDesk(text_of(error)) from error
        except asyncio.IncompleteReadError as error:
            raise NoAnswer("it closed the connection") from error
        except TimeoutError as error:
            raise NoAnswer("it is silent") from error
        except (OSError, BadFrame, NotBelieved) as error:
            raise NoAnswer(text_of(error)) from error

    @asynccontextmanager
    async def _asked(self, asked: Asked) -> AsyncIterator[Connection]:
        one = await self._port.ask(THE_DESK, ASK, encode(asked))
        try:
            yield one
        finally:
            self._port.hang_up(one)

    async def _one(self, asked: Asked, kind: type[Told], timeout_s: float | None = None) -> Told:
        async with self._asked(asked) as one:
            try:
                async with asyncio.timeout(timeout_s) as limit:
                    while isinstance(found := told_by(await one.take(SOON_S_MAX)), StillWaiting):
                        pass
            except TimeoutError as error:
                raise (TooLong() if limit.expired() else error) from error
            if not isinstance(found, kind):
                raise BadFrame(f"{type(found).__name__} is no answer to that")
            return found

    async def _taken(self, places: dict[str, int]) -> dict[str, tuple[Part, bytes]]:
        found = {}
        async with self._asked(Take(places)) as one:
            for _ in places:
                part = told_by(await one.take(SOON_S_MAX))
                if not isinstance(part, Part) or part.name not in places:
                    raise BadFrame(f"{type(part).__name__} where a file was asked for")
                data = bytearray()
                while len(data) < part.bytes:
                    piece = await one.take(SOON_S_MAX)
                    if not isinstance(piece, bytes):
                        raise BadFrame("a file that ends before its end")
                    data += piece
                if part.size is not None:
                    found[part.name] = (part, bytes(data))
        return found
