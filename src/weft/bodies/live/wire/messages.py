"""How do messages pass over the connections that are there? Speaker and hearer, performed; delivered to addresses here.

What is kept, numbered and said again, and what counts as heard, `protocol/connection` decides. This writes its frames,
hands it those that come, and calls the parts of this process that messages are addressed to.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from weft.bodies.live.transport import Address, Deliver
from weft.bodies.live.wire import frames
from weft.bodies.live.wire.connections import Connection
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import Party, home_of
from weft.bodies.live.wire.peers import Peer, Tally
from weft.protocol import connection as core

PING_S = 2.0
SILENT_S_MAX = 8.0
BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError, frames.BadFrame, NotBelieved)
"""What ends a connection."""


class Messages:
    """The messages of one process, over all its connections (`live`, by their links); on the port's own thread."""

    def __init__(
        self, me: Party, session: int, limits: core.SpeakerLimits, live: dict[int, Connection], tally: Tally
    ) -> None:
        self._me = me
        self._live = live
        self._tally = tally
        self._open: dict[Address, Deliver] = {}
        self._speaker = core.Speaker(str(me), session, limits)
        self._hearer = core.Hearer(str(me))

    def open(self, address: Address, deliver: Deliver) -> None:
        """Let messages for an address be delivered."""
        self._open[address] = deliver

    def close(self, address: Address) -> None:
        """No more is delivered to an address."""
        self._open.pop(address, None)

    def here(self, sender: Address, to: Address, data: bytes) -> None:
        """Deliver what stays in this process."""
        deliver = self._open.get(to)
        if deliver is not None:
            deliver(sender, data)

    def offer(self, home: Party, data: bytes) -> None:
        """Say something to a peer, over the connection that there is or the next one."""
        self._perform(self._speaker.handle(core.Offered(str(home), data)))

    def owed(self) -> int:
        """Messages that were not acknowledged yet."""
        return sum(len(row.held) for row in list(self._speaker.rows.values()))

    def owes(self, party: Party) -> bool:
        """Whether a peer is still to hear something."""
        row = self._speaker.rows.get(str(party))
        return row is not None and bool(row.held)

    async def converse(self, one: Connection, peer: Peer, speaks: bool, stopping: Callable[[], bool]) -> None:
        """Take what comes over a connection until it breaks, and let the speaker use it where it may."""
        self._live[one.link] = one
        pinging = asyncio.get_running_loop().create_task(self._ping(one, peer))
        try:
            if speaks:
                self._perform(self._speaker.handle(core.LinkUp(str(one.peer), one.link)))
            while True:
                self._take(one, peer, await one.read())
        except (frames.BadFrame, NotBelieved) as error:
            self._tally.note(f"refused a frame of {one.peer}: {frames.text_of(error)}")
            one.refuse(frames.text_of(error))
        except BROKEN as error:
            if not isinstance(error, asyncio.IncompleteReadError) and not stopping():
                self._tally.note(f"the connection with {one.peer} broke: {frames.text_of(error)}")
        finally:
            pinging.cancel()
            del self._live[one.link]
            if speaks:
                self._perform(self._speaker.handle(core.LinkDown(str(one.peer), one.link)))
            one.close()
        await one.gone()

    def _perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case core.WriteCarry(link=link, number=number, data=data):
                    if link in self._live:
                        self._live[link].write(frames.Carry(number, data))
                case core.WriteAck(link=link, session=session, number=number):
                    if link in self._live:
                        self._live[link].write(frames.Ack(session, number))
                case core.Deliver(data=data):
                    self._deliver(data)
                case core.Close(link=link, why=why):
                    self._tally.note(f"refused: {why}")
                    if link in self._live:
                        self._live[link].refuse(why)
                case core.Lost(peer=name):
                    self._tally.note(f"a message to {name} was given up: it was away too long")
                case core.Missed(peer=name):
                    self._tally.note(f"messages of {name} were missed: it had no room to keep them")

    def _deliver(self, data: bytes) -> None:
        sender, to, message = frames.opened(data)
        try:
            self.here(sender, to, message)
        except Exception as error:  # one part's fault must not silence the others
            self._tally.note(f"{to} failed on a message from {sender}: {type(error).__name__}: {error}")

    def _take(self, one: Connection, peer: Peer, frame: Any) -> None:
        match frame:
            case frames.Carry(number=number, data=data):
                sender, to, _ = frames.opened(data)
                if home_of(sender) != one.peer:
                    raise NotBelieved(f"{one.peer} spoke in the name of {sender}")
                if home_of(to) != self._me:
                    raise NotBelieved(f"{one.peer} spoke to {to}, who is not here")
                arrived = core.Arrived(str(one.peer), one.link, one.session, number, data)
                self._perform(self._hearer.handle(arrived))
            case frames.Ack(session=session, number=number):
                self._perform(self._speaker.handle(core.Acked(str(one.peer), session, number)))
            case frames.Ping(number=number):
                one.write(frames.Pong(number, time.time() * 1000))
            case frames.Pong(number=number, clock_ms=clock_ms):
                peer.answered(one.link, number, clock_ms)
            case _:
                raise frames.BadFrame(f"{type(frame).__name__} amid messages")

    async def _ping(self, one: Connection, peer: Peer) -> None:
        """A few pings at once tell the clocks apart; then one now and then tells whether the other is still there."""
        number = 0
        while True:
            number += 1
            peer.asked(one.link, number)
            one.write(frames.Ping(number))
            await asyncio.sleep(0.02 if number < 5 else PING_S)
            if asyncio.get_running_loop().time() - one.heard_s > SILENT_S_MAX:
                self._tally.note(f"{one.peer} is silent")
                one.abort()
                return
