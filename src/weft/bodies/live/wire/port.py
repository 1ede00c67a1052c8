"""How does a process reach the others? One port, in a thread of its own: a `Transport` over TLS, and bulk bytes beside.

Messages to a peer go over the connection that this process has made to it; to a peer whose address is not known, over
the last one that it has made to us. What a connection that breaks takes along is said again over the
next one (`messages.py`). Bulk bytes have connections of their own, so that no message waits behind them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from weft.bodies.live.transport import Address, Deliver
from weft.bodies.live.wire import frames
from weft.bodies.live.wire.connections import Connection, Ended
from weft.bodies.live.wire.credentials import Credentials
from weft.bodies.live.wire.greeting import (
    CALL_S_MAX,
    Accepting,
    NotBelieved,
    Self,
    called,
    greeted,
    secured,
)
from weft.bodies.live.wire.line import Line
from weft.bodies.live.wire.messages import BROKEN, Messages
from weft.bodies.live.wire.parties import Party, home_of
from weft.bodies.live.wire.peers import Clock, Peer, Tally
from weft.bodies.live.wire.traffic import Traffic
from weft.protocol import connection as core
from weft.protocol.messages import MESSAGE_BYTES_MAX

LOOPBACK = ("127.0.0.1", 0)
OWN_S_MAX = 60.0
"""The longest that the port's own thread is waited for: a busy machine may keep it from running."""
STEADY_S = 1.0
"""A connection that held so long was none that failed."""
ACCEPTED_MAX = 64
"""Connections that one peer may have to us at once."""

Value = TypeVar("Value")
Where = tuple[str, int]
Handler = Callable[[Connection, bytes], Awaitable[None]]
"""Answers what is asked over a bulk connection, which says by whom; its errors are told to the one that asked."""


class Port:
    """One process's way to the others; `tell` is given a line for whatever was refused, lost or broken."""

    def __init__(
        self,
        credentials: Credentials,
        deployment: str,
        listen: Where | None = LOOPBACK,
        peers: Mapping[Party, Where] | None = None,
        *,
        session: int | None = None,
        tell: Callable[[str], None] = lambda line: None,
        lines: Mapping[Party, Line] | None = None,
        limits: core.SpeakerLimits | None = None,
    ) -> None:
        self.me = credentials.party
        self.address: Where | None = None
        self._self = Self(credentials, deployment, time.time_ns() if session is None else session)
        self._listen = listen
        self._lines = dict(lines or {})
        self._peers: dict[Party, Peer] = {}
        self._handlers: dict[str, Handler] = {}
        self._live: dict[int, Connection] = {}
        self._cuts: dict[Party, float] = {}
        self._links = 0
        self._tally = Tally(tell)
        speaks = limits or core.SpeakerLimits()
        self._messages = Messages(self.me, self._self.session, speaks, self._live, self._tally)
        self._loop = asyncio.new_event_loop()
        self._stopping = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name=f"port-{self.me}", daemon=True)
        for party, where in (peers or {}).items():
            self._peer(party).where = where

    # ---- for all threads: a Transport

    def start(self) -> Where | None:
        """Begin to listen; the address where it does, or OSError where that is taken."""
        self._thread.start()
        try:
            self.address = self.do(self._begin()).result(OWN_S_MAX)
        except BaseException:
            self.stop(0)
            raise
        return self.address

    def open(self, address: Address, deliver: Deliver) -> None:
        """Let messages for an address be delivered, on the port's own thread."""
        self._messages.open(address, deliver)

    def close(self, address: Address) -> None:
        """No more is delivered to an address."""
        self._messages.close(address)

    def send(self, sender: Address, to: Address, data: bytes) -> None:
        """Pass bytes on; returns at once."""
        if len(data) > MESSAGE_BYTES_MAX:
            raise ValueError(f"a message of {len(data)} bytes; at most {MESSAGE_BYTES_MAX} are carried")
        home = home_of(to)
        if home == self.me:
            self._messages.here(sender, to, data)
        elif not self._stopping:
            self._soon(self._offer, home, frames.enveloped(sender, to, data))

    def know(self, peer: Party, where: Where) -> None:
        """From now on a peer is found there."""
        self._soon(self._known, peer, where)

    def cut(self, peer: Party, for_s: float) -> None:
        """Nothing passes between this process and a peer for a time, as if the way were cut; 0: all does again."""
        self._soon(self._cut, peer, for_s)

    def clocks(self) -> dict[Party, Clock]:
        """How far peers' clocks are from this one's, and how long a word and its answer take, where it was measured."""
        return {party: peer.clock for party, peer in list(self._peers.items()) if peer.clock is not None}

    def round_trips(self) -> dict[Party, float]:
        """How long a word and its answer take of late, in ms, where there is a connection to a peer."""
        there = self.heard()
        peers = list(self._peers.items())
        return {party: peer.round_trip_ms for party, peer in peers if peer.round_trip_ms is not None and party in there}

    def traffic(self) -> dict[Party, Traffic]:
        """What has gone to each peer so far, and what the way there took when it was full."""
        return {party: peer.traffic for party, peer in list(self._peers.items())}

    def heard(self) -> set[Party]:
        """The peers that there is a connection to now."""
        return {one.peer for one in list(self._live.values())}

    def owed(self) -> int:
        """Messages that were not acknowledged yet."""
        return self._messages.owed()

    def refused(self) -> dict[str, int]:
        """What was refused, lost or broken so far, and how often."""
        return dict(self._tally.counts)

    def serve(self, what: str, handler: Handler) -> None:
        """Answer what is asked over bulk connections under a name."""
        self._handlers[what] = handler

    def do(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        """Let something be done on the port's own thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self, linger_s: float = 1.0) -> None:
        """Close the port, once peers have acknowledged what was said, or after a moment."""
        if self._stopping or not self._thread.is_alive():
            return
        self._stopping = True
        self.do(self._end(linger_s)).result(linger_s + OWN_S_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(OWN_S_MAX)

    def _is_stopping(self) -> bool:
        return self._stopping

    def _soon(self, what: Callable[..., None], *given: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *given)
        except RuntimeError:  # the loop is closed: what is said to a port that is gone is lost
            return

    # ---- on the port's own thread: its beginning and end

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _begin(self) -> Where | None:
        if self._listen is None:
            return None
        server = await self._loop.create_server(lambda: Accepting(self._accepted), *self._listen, backlog=128)
        self._server = server
        host, port = server.sockets[0].getsockname()[:2]
        return host, port

    async def _end(self, linger_s: float) -> None:
        until_s = self._loop.time() + linger_s
        while self.owed() and self._live and self._loop.time() < until_s:
            await asyncio.sleep(0.01)
        if hasattr(self, "_server"):
            self._server.close()
        for one in list(self._live.values()):
            one.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=1.0) if tasks else None

    def _task(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ---- peers

    def _peer(self, party: Party) -> Peer:
        peer = self._peers.get(party)
        if peer is None:
            self._peers[party] = peer = Peer(party, self._lines.get(party, Line()))
        return peer

    def _known(self, party: Party, where: Where) -> None:
        peer = self._peer(party)
        peer.where, peer.failures = where, 0
        peer.hurry.set()
        if self._messages.owes(party):
            self._call(peer)

    def _offer(self, home: Party, data: bytes) -> None:
        peer = self._peer(home)
        self._messages.offer(home, data)
        self._call(peer)

    def _call(self, peer: Peer) -> None:
        if peer.where is not None and not peer.calling and not self._stopping:
            peer.calling = True
            self._task(self._keep(peer))

    def _cut(self, party: Party, for_s: float) -> None:
        self._cuts[party] = self._loop.time() + for_s
        if not for_s:
            self._peer(party).hurry.set()
            return
        self._tally.note(f"cut off from {party}")
        for one in list(self._live.values()):
            if one.peer == party:
                one.abort()

    def is_cut(self, party: Party) -> bool:
        """Whether nothing passes between this process and a peer now."""
        return self._cuts.get(party, 0.0) > self._loop.time()

    # ---- calling

    async def _keep(self, peer: Peer) -> None:
        """Keep a connection to a peer, with growing pauses between attempts."""
        while not self._stopping:
            try:
                one = await self._call_up(peer, frames.MESSAGES)
            except BROKEN as error:
                peer.failures += 1
                self._tally.note(f"no connection to {peer.party}: {frames.text_of(error)}")
            else:
                begun_s = self._loop.time()
                await self._messages.converse(one, peer, True, self._is_stopping)
                # One that is closed at once, as that of a past life is, must not be called without end.
                peer.failures = 1 if self._loop.time() - begun_s > STEADY_S else peer.failures + 1
            pause_s = core.pause_ms(peer.failures) / 1000 * (0.75 + 0.5 * (self._links % 7) / 6)
            peer.hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await peer.hurry.wait()

    async def _call_up(self, peer: Peer, stream: str) -> Connection:
        """A new connection to a peer that has shown who it is."""
        if self.is_cut(peer.party):
            raise ConnectionError("the way is cut")
        if peer.where is None:
            raise ConnectionError(f"nobody knows where {peer.party} is")
        streams, hello = await called(peer.where, self._self, stream, peer.party)
        return self._connection(streams, peer, hello)

    def _connection(self, streams: Any, peer: Peer, hello: frames.Hello) -> Connection:
        self._links += 1
        reader, writer = streams
        return Connection(self._links, reader, writer, peer.party, hello.session, peer.line, peer.traffic)

    # ---- being called

    def _accepted(self, raw: asyncio.Transport) -> None:
        self._task(self._answer(raw))

    def _admit(self, party: Party) -> None:
        if self.is_cut(party):
            raise ConnectionError("the way is cut")
        held = self._peers.get(party)
        if held is not None and held.accepted >= ACCEPTED_MAX:
            raise NotBelieved(f"{party} has {held.accepted} connections already")

    async def _answer(self, raw: asyncio.Transport) -> None:
        host = (raw.get_extra_info("peername") or ("unknown",))[0]
        streams: Any = None
        try:
            streams = await secured(raw, self._self.credentials.called, called=True)
            hello = await greeted(streams, self._self, self._admit)
        except BROKEN as error:
            self._tally.note(f"refused a connection from {host}: {frames.text_of(error)}")
            if streams is not None and isinstance(error, NotBelieved | frames.BadFrame):
                streams[1].write(frames.framed(frames.Refusal(frames.text_of(error))))
                streams[1].close()
            else:
                raw.abort()
            return
        peer = self._peer(Party(hello.kind, hello.site))
        peer.accepted += 1
        try:
            one = self._connection(streams, peer, hello)
            if hello.stream == frames.BULK:
                await self._serve(one)
            else:
                # Who has no address is answered over its own connection.
                await self._messages.converse(one, peer, peer.where is None, self._is_stopping)
        finally:
            peer.accepted -= 1

    # ---- bulk bytes

    async def ask(self, party: Party, what: str, request: bytes) -> Connection:
        """A connection of its own on which a peer answers; the caller closes it. On the port's own thread."""
        one = await self._call_up(self._peer(party), frames.BULK)
        self._live[one.link] = one
        one.write(frames.Ask(what, request))
        return one

    def hang_up(self, one: Connection) -> None:
        """A bulk connection is no longer needed."""
        self._live.pop(one.link, None)
        one.close()

    async def _serve(self, one: Connection) -> None:
        self._live[one.link] = one
        try:
            async with asyncio.timeout(CALL_S_MAX):
                asked = await frames.read_frame(one.reader)
            if not isinstance(asked, frames.Ask) or asked.what not in self._handlers:
                raise frames.BadFrame(f"{one.peer} asked for something that nobody here gives")
            await self._handlers[asked.what](one, asked.request)
        except (Ended, asyncio.IncompleteReadError, ConnectionError):
            pass
        except Exception as error:
            self._tally.note(f"{one.peer} was refused bulk bytes: {frames.text_of(error)}")
            one.refuse(frames.text_of(error))
        finally:
            self.hang_up(one)
        await one.gone()
