"""Whoever has no key, another's key or no manners is refused with a word, and nobody else notices."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from pathlib import Path

import pytest

from tests.bodies.live.wire.ports import Assailant, Ears, Ports, bad_frames, closed, hello, meet, message, raw, until
from weft.bodies.live.transport import DESK, Address, host
from weft.bodies.live.wire.frames import FRAME_BYTES_MAX, Ack, Ask, Carry, Done, Pong, Refusal, framed
from weft.bodies.live.wire.parties import THE_DESK, site
from weft.bodies.live.wire.port import Port


class Target:
    """Site b, which hears site a all the time while somebody else misbehaves."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.friend, self.port = ports.pair()
        self.ears = Ears()
        self.port.open(host("b"), self.ears)
        self.said = 0
        self.undisturbed()

    def undisturbed(self) -> None:
        """What the friend says is heard, once and in order, and nothing else ever was."""
        for _ in range(5):
            self.friend.send(host("a"), host("b"), b"%d" % self.said)
            self.said += 1
        until(lambda: len(self.ears.heard) >= self.said)
        assert self.ears.numbers == list(range(self.said))
        assert {sender for sender, _ in self.ears.heard} == {host("a")}

    def refused(self, text: str) -> None:
        """It was told why."""
        until(lambda: any(text in line for line in self.ports.told), f"no word of {text!r} in {self.ports.told}")


@pytest.fixture
def target(ports: Ports) -> Target:
    return Target(ports)


def test_no_tls_no_certificate_and_another_authority_are_refused(target: Target, foreign: Path) -> None:
    with raw(target.port, None) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert closed(plain)
    target.refused("refused a connection from 127.0.0.1")
    for party, why in ((None, "did not return a certificate"), (site("a"), "certificate verify failed")):
        # It believes the wrong authority: what it meets is refused on its own side, too.
        with contextlib.suppress(OSError), raw(target.port, foreign, party, blind=True) as stranger:
            stranger.sendall(hello(site("a")))
            assert closed(stranger)
        target.refused(why)
    target.undisturbed()


def test_an_older_tls_is_refused(target: Target, keys: Path) -> None:
    assert target.port.address is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(target.port.address) as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain)
    target.undisturbed()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (hello(site("a")), "not to weft:site:a"),
        (hello(THE_DESK), "not to weft:desk"),
        (hello(site("c"), weft=99), "speaks version"),
        (hello(site("c"), wire=99), "speaks version"),
        (hello(site("c"), deployment="d2"), "runs another deployment"),
        (hello(site("c"), stream="shell"), "connection for `shell`"),
        (framed(Ack(1, 1)), "before a hello"),
        (framed(Done()), "before a hello"),
        (struct.pack("<IB", FRAME_BYTES_MAX + 1, 1), "at most"),
        (struct.pack("<IB", 10, 2) + b"0123456789", "a frame of kind 2"),
        (struct.pack("<IB", 3, 1) + b"\xc1\xc1\xc1", "of another form"),
    ],
    ids=range(11),
)
def test_a_greeting_that_is_not_right_is_refused_with_the_reason(
    target: Target, keys: Path, said: bytes, why: str
) -> None:
    with raw(target.port, keys, site("c")) as other:
        other.sendall(said)
        assert closed(other)
    target.refused(why)
    target.undisturbed()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (message(host("a"), host("b")), "spoke in the name of host a"),
        (message(DESK, host("b")), "spoke in the name of desk"),
        (message(host("c"), host("a")), "who is not here"),
        (framed(Carry(1, b"\x01")), "of another form"),
        (framed(Ask("stream", b"")), "Ask amid messages"),
        (hello(site("c")), "Hello amid messages"),
        (struct.pack("<IB", 5, 2) + b"12345", "a frame of kind 2"),
        (struct.pack("<IB", 1 << 31, 1), "at most"),
    ],
    ids=range(8),
)
def test_the_right_key_of_the_wrong_site_speaks_for_nobody_else(
    target: Target, keys: Path, said: bytes, why: str
) -> None:
    with raw(target.port, keys, site("c")) as other:
        other.sendall(hello(site("c")) + said)
        assert closed(other)
    target.refused(why)
    target.undisturbed()


def test_replayed_messages_are_heard_once_and_acknowledgements_of_nothing_change_nothing(
    target: Target, keys: Path
) -> None:
    ears = Ears()
    target.port.open(Address("reporter", "b"), ears)
    said = message(host("c"), Address("reporter", "b"), b"1")
    for session in (5, 5, 4):
        with raw(target.port, keys, site("c")) as other:
            other.sendall(hello(site("c"), session) + said * 50 + framed(Ack(session, 10**9)) + framed(Pong(9, 0.0)))
            if session == 4:
                assert closed(other)
            until(lambda: ears.heard)
    until(lambda: any("session 4 of site c is over" in line for line in target.ports.told))
    target.undisturbed()
    assert ears.numbers == [1]


def test_a_false_server_is_not_believed(ports: Ports, foreign: Path) -> None:
    caller = ports.port(site("a"))
    wrong, stranger = ports.port(site("c")), Ports(foreign)
    other = stranger.port(site("b"))
    try:
        for false, why in ((wrong, "not to weft:site:b"), (other, "certificate verify failed")):
            assert false.address is not None
            caller.know(site("b"), false.address)
            caller.send(host("a"), host("b"), b"secret")
            until(lambda why=why: any(why in line for line in ports.told))
        assert caller.owed() == 2
    finally:
        stranger.close()


def test_one_site_cannot_take_all_connections(target: Target, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.bodies.live.wire.port.ACCEPTED_MAX", 3)
    held = []
    for _ in range(4):
        manager = raw(target.port, keys, site("c"))
        connection = manager.__enter__()
        connection.sendall(hello(site("c")))
        held.append((manager, connection))
    target.refused("site c has 3 connections already")
    target.undisturbed()
    for manager, _ in held:
        manager.__exit__(None, None, None)


def storm(target: Target, keys: Path, count: int, seed: int) -> None:
    """Bad frames from all sides, while the friend goes on."""
    bad_frames(target.port, Assailant(keys, ("c",), ("a", "b", "c")), count, seed, target.undisturbed)
    until(lambda: sum(target.port.refused().values()) > 0)
    target.undisturbed()
    assert len(target.ports.told) < 2_000, "what is refused a thousand times must not be told a thousand times"
    assert target.port._thread.is_alive()
    until(lambda: len(target.port.heard()) <= 1, "connections were left behind")


def test_a_thousand_frames_of_noise_disturb_nobody(target: Target, keys: Path) -> None:
    storm(target, keys, 1_000, seed=1)


@pytest.mark.long
def test_a_hundred_thousand_frames_of_noise_disturb_nobody(target: Target, keys: Path) -> None:
    threads = threading.active_count()
    storm(target, keys, 100_000, seed=2)
    assert threading.active_count() <= threads + 1


def test_what_a_refusal_says_is_bounded_and_a_message_too_long_is_not_sent(ports: Ports) -> None:
    one, _ = ports.pair()
    with pytest.raises(ValueError, match="at most"):
        one.send(host("a"), host("b"), bytes(FRAME_BYTES_MAX + 1))
    assert len(framed(Refusal("x" * 1000))) < 1_100


def test_the_peer_that_is_cut_is_refused_until_it_is_over(ports: Ports) -> None:
    one = ports.port(site("a"))
    other = ports.port(site("b"))
    other.cut(site("a"), 1000)
    ears = Ears()
    other.open(host("b"), ears)
    meet(one, other)
    one.send(host("a"), host("b"), b"1")
    until(lambda: any("the way is cut" in line for line in ports.told))
    assert ears.heard == []
    other.cut(site("a"), 0)
    until(lambda: ears.numbers == [1])


def test_a_port_that_has_ended_loses_what_is_said_to_it(ports: Ports) -> None:
    port: Port = ports.port(site("a"))
    port.stop()
    port.send(host("a"), host("b"), b"1")
    port.stop()
    assert not port._thread.is_alive()
