"""Ports for tests: keys made once, processes in one process, and connections that follow no rule."""

from __future__ import annotations

import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from weft.bodies.live.transport import DESK, Address, host
from weft.bodies.live.wire import frames
from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.frames import WIRE_VERSION, Hello
from weft.bodies.live.wire.parties import A_COMMAND, Party, site
from weft.bodies.live.wire.port import Port
from weft.protocol.messages import VERSION

WAIT_S_MAX = 60.0


def until(what: Callable[[], Any], why: str = "") -> Any:
    """Wait until something is so, but not for ever."""
    end_s = time.monotonic() + WAIT_S_MAX
    while not (found := what()):
        assert time.monotonic() < end_s, why or "it took too long"
        time.sleep(0.005)
    return found


class Ears:
    """All that was delivered to an address."""

    def __init__(self) -> None:
        self.heard: list[tuple[Address, bytes]] = []
        self._lock = threading.Lock()

    def __call__(self, sender: Address, data: bytes) -> None:
        with self._lock:
            self.heard.append((sender, data))

    @property
    def numbers(self) -> list[int]:
        """What was said, as numbers."""
        return [int(data) for _, data in list(self.heard)]


class Ports:
    """Processes of one deployment, all of them here."""

    def __init__(self, keys: Path) -> None:
        self.keys = keys
        self.told: list[str] = []
        self.all: list[Port] = []

    def port(self, party: Party, **given: Any) -> Port:
        """A process that listens on loopback, on any port that is free."""
        deployment = given.pop("deployment", "d1")
        port = Port(credentials(self.keys, party), deployment, tell=self.told.append, **given)
        self.all.append(port)
        port.start()
        return port

    def pair(self, **given: Any) -> tuple[Port, Port]:
        """Two sites that know one another."""
        one, other = self.port(site("a"), **given), self.port(site("b"))
        meet(one, other)
        return one, other

    def close(self) -> None:
        """End them all."""
        for port in self.all:
            port.stop(0)


def meet(*ports: Port) -> None:
    """Let all know where the others are."""
    for one in ports:
        for other in ports:
            if one is not other and other.address is not None:
                one.know(other.me, other.address)


@contextmanager
def raw(port: Port, keys: Path | None, party: Party | None = None, blind: bool = False) -> Any:
    """A connection to a port as anybody could make it, with the key of a party or with none; `blind`: to whomever."""
    assert port.address is not None
    plain = socket.create_connection(port.address, timeout=WAIT_S_MAX)
    try:
        if keys is None:
            yield plain
            return
        if party is not None:
            context = credentials(keys, party).calls
            context.verify_mode = ssl.CERT_NONE if blind else ssl.CERT_REQUIRED
        else:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with context.wrap_socket(plain) as secured:
            yield secured
    finally:
        plain.close()


def hello(party: Party, session: int = 1, **changes: Any) -> bytes:
    """What a process says first."""
    told = {
        "wire": WIRE_VERSION, "weft": VERSION, "deployment": "d1", "kind": party.kind, "site": party.site,
        "session": session, **changes,
    }  # fmt: skip
    return frames.framed(Hello(**told))


def closed(connection: Any) -> bool:
    """Read until the other end closes: True when it has."""
    try:
        while connection.recv(65536):
            pass
    except OSError:
        return True
    return True


def message(sender: Address, to: Address, data: bytes = b"forged", number: int = 1) -> bytes:
    """A numbered message, whoever may send it."""
    return frames.framed(frames.Carry(number, frames.enveloped(sender, to, data)))


class Assailant(NamedTuple):
    """Somebody with keys of some sites and of commands, who knows the names of all sites."""

    keys: Path
    own: tuple[str, ...]
    names: tuple[str, ...]
    deployment: str = "d1"


def noise(who: Assailant, chance: random.Random, count: int) -> Iterator[bytes]:
    """Frames that are none: noise, cut off, oversized, out of place, replayed and forged; requests that make no sense.

    None asks for what its sender may have.
    """
    good = message(host(who.own[0]), Address("nobody", who.names[1]), b"x", 7)
    others = [DESK, *(host(name) for name in who.names if name not in who.own)]
    for _ in range(count):
        match chance.randrange(7):
            case 0:
                yield struct.pack("<IB", chance.randrange(1, 60), 1) + chance.randbytes(chance.randrange(60))
            case 1:
                yield chance.randbytes(chance.randrange(1, 80))
            case 2:
                yield good[: chance.randrange(1, len(good))]
            case 3:
                size = chance.randrange(frames.FRAME_BYTES_MAX, 1 << 32)
                yield struct.pack("<IB", size, chance.randrange(4)) + b"z" * 20
            case 4:
                to = host(chance.choice(who.names))
                yield message(chance.choice(others), to, b"evil", chance.randrange(1 << 60))
            case 5:
                what = chance.choice(("follow", "fence", "pack", "command", "shell"))
                yield frames.framed(frames.Ask(what, chance.randbytes(chance.randrange(40))))
            case _:
                at = chance.randrange(len(good))
                yield good[:at] + bytes([chance.randrange(256)]) + good[at + 1 :]


def bad_frames(port: Port, who: Assailant, count: int, seed: int, now_and_then: Callable[[], None]) -> None:
    """So many bad frames, after a good hello, another's or none, several to a connection."""
    chance = random.Random(seed)
    done = 0
    while done < count:
        some = chance.randrange(1, 40)
        party = chance.choice([*(site(name) for name in who.own), A_COMMAND])
        says = party if chance.random() < 0.9 else site(chance.choice(who.names))
        stream = chance.choice((frames.MESSAGES, frames.BULK))
        with suppress(OSError), raw(port, who.keys, party if chance.random() < 0.9 else None) as other:
            if chance.random() < 0.8:
                other.sendall(hello(says, 1 + done, stream=stream, deployment=who.deployment))
            other.sendall(b"".join(noise(who, chance, some)))
            if chance.random() < 0.3:
                other.shutdown(socket.SHUT_RDWR)
        done += some
        if chance.random() < 0.02:
            now_and_then()
