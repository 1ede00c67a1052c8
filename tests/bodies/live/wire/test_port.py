"""Messages over a port: in order, once, over broken connections and restarts, and only as far as it was told."""

from __future__ import annotations

import random
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.wire.ports import Ears, Ports, meet, until
from weft.bodies.live.transport import DESK, Address, host
from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.line import Line
from weft.bodies.live.wire.parties import A_COMMAND, THE_DESK, home_of, site
from weft.bodies.live.wire.port import Port
from weft.protocol.connection import SpeakerLimits


def test_an_address_lives_in_the_process_of_its_site_the_desk_or_a_command() -> None:
    assert home_of(host("a")) == site("a")
    assert home_of(DESK) == home_of(Address("controller")) == THE_DESK
    assert A_COMMAND.uri == "weft:command"


def test_messages_arrive_in_order_both_ways_and_to_their_own_addresses(ports: Ports) -> None:
    one, other = ports.pair()
    ears = {address: Ears() for address in (host("a"), host("b"), Address("reporter", "b"))}
    one.open(host("a"), ears[host("a")])
    for address in (host("b"), Address("reporter", "b")):
        other.open(address, ears[address])
    for number in range(300):
        one.send(host("a"), host("b"), b"%d" % number)
        other.send(host("b"), host("a"), b"%d" % number)
    one.send(host("a"), Address("reporter", "b"), b"7")
    one.send(host("a"), host("a"), b"here")
    until(lambda: len(ears[host("b")].heard) == 300 and len(ears[host("a")].heard) == 301)
    assert ears[host("b")].numbers == list(range(300))
    assert [data for _, data in ears[host("a")].heard if data != b"here"] == [b"%d" % n for n in range(300)]
    until(lambda: ears[Address("reporter", "b")].heard == [(host("a"), b"7")])
    until(lambda: one.owed() == other.owed() == 0)


def test_what_is_said_before_anybody_listens_waits_and_a_closed_address_hears_nothing(ports: Ports) -> None:
    one = ports.port(site("a"))
    one.send(host("a"), host("b"), b"1")
    ears = Ears()
    other = ports.port(site("b"))
    other.open(host("b"), ears)
    meet(one, other)
    until(lambda: ears.numbers == [1])
    other.close(host("b"))
    one.send(host("a"), host("b"), b"2")
    until(lambda: one.owed() == 0)
    assert ears.numbers == [1]


def test_over_connections_that_break_at_any_moment_nothing_is_lost_doubled_or_overtaken(ports: Ports) -> None:
    chance = random.Random(5)
    one, other = ports.pair()
    ears = Ears()
    other.open(host("b"), ears)
    for number in range(2_000):
        one.send(host("a"), host("b"), b"%d" % number)
        if number % 400 == 399:
            side = chance.choice((one, other))
            side.do(_broken(side)).result(10)
            time.sleep(chance.random() * 0.02)
    until(lambda: len(ears.heard) >= 2_000)
    assert ears.numbers == list(range(2_000))


async def _broken(port: Port) -> None:
    for connection in list(port._live.values()):
        connection.abort()


def test_a_cut_way_holds_messages_back_and_they_come_after_it(ports: Ports) -> None:
    one, other = ports.pair()
    ears = Ears()
    other.open(host("b"), ears)
    one.send(host("a"), host("b"), b"0")
    until(lambda: ears.numbers == [0] and one.owed() == 0)
    other.cut(site("a"), 1000)
    until(lambda: not other.heard())
    for number in range(1, 20):
        one.send(host("a"), host("b"), b"%d" % number)
    until(lambda: one.owed() == 19)
    assert ears.numbers == [0]
    other.cut(site("a"), 0)
    until(lambda: len(ears.heard) == 20)
    assert ears.numbers == list(range(20))
    assert any("cut" in line for line in ports.told)


def test_what_there_is_no_room_for_is_lost_with_a_word_and_the_rest_arrives_in_order(ports: Ports) -> None:
    one = ports.port(site("a"), limits=SpeakerLimits(messages_max=10, window=4))
    for number in range(30):
        one.send(host("a"), host("b"), b"%d" % number)
    until(lambda: one.owed() == 10)
    other = ports.port(site("b"))
    ears = Ears()
    other.open(host("b"), ears)
    meet(one, other)
    until(lambda: one.owed() == 0)
    assert ears.numbers == list(range(20, 30))
    assert any("given up" in line for line in ports.told)


def test_a_process_that_restarts_is_heard_and_its_past_life_is_not(ports: Ports) -> None:
    other = ports.port(site("b"))
    ears = Ears()
    other.open(host("b"), ears)
    first = ports.port(site("a"), session=1)
    meet(first, other)
    first.send(host("a"), host("b"), b"1")
    until(lambda: ears.numbers == [1])
    second = ports.port(site("a"), session=2)
    meet(second, other)
    second.send(host("a"), host("b"), b"2")
    until(lambda: ears.numbers == [1, 2])
    first.send(host("a"), host("b"), b"3")
    until(lambda: any("session 1 of site a is over" in line for line in ports.told))
    second.send(host("a"), host("b"), b"4")
    until(lambda: len(ears.heard) == 3)
    assert ears.numbers == [1, 2, 4]


def test_a_listener_that_restarts_hears_what_it_had_not_acknowledged(ports: Ports) -> None:
    one, other = ports.pair()
    ears = Ears()
    other.open(host("b"), ears)
    one.send(host("a"), host("b"), b"1")
    until(lambda: one.owed() == 0 and ears.heard)
    other.stop(0)
    one.send(host("a"), host("b"), b"2")
    again = ports.port(site("b"))
    again.open(host("b"), ears)
    assert again.address is not None
    one.know(site("b"), again.address)
    until(lambda: ears.numbers == [1, 2])


def test_who_cannot_be_called_is_answered_over_its_own_connection(ports: Ports) -> None:
    desk = ports.port(THE_DESK)
    me = host("a")
    hidden = Port(credentials(ports.keys, home_of(me)), "d1", listen=None, peers={THE_DESK: desk.address or ("", 0)})
    ports.all.append(hidden)
    assert hidden.start() is None
    ears = Ears()
    hidden.open(me, ears)
    desk.open(DESK, lambda sender, data: desk.send(DESK, sender, b"answer to " + data))
    hidden.send(me, DESK, b"status")
    until(lambda: ears.heard == [(DESK, b"answer to status")])


def test_clocks_are_told_apart_and_round_trips_measured(ports: Ports) -> None:
    one, other = ports.pair()
    one.send(host("a"), host("b"), b"1")
    clock = until(lambda: one.clocks().get(site("b")))
    assert abs(clock.ahead_ms) <= clock.round_trip_ms / 2 + 1
    assert clock.round_trip_ms >= 0
    until(lambda: site("a") in other.clocks())


def test_what_goes_to_a_peer_is_counted_messages_and_bulk_bytes_together(ports: Ports) -> None:
    one, other = ports.pair()

    async def give(asked: Any, request: bytes) -> None:
        await asked.chunk(bytes(8 << 20))
        await asked.done()

    async def fetch() -> int:
        asked, taken = await one.ask(site("b"), "all", b""), 0
        while isinstance(found := await asked.take(), bytes):
            taken += len(found)
        one.hang_up(asked)
        return taken

    other.serve("all", give)
    assert one.do(fetch()).result(60) == 8 << 20
    assert 8 << 20 < other.traffic()[site("a")].sent_bytes < 9 << 20
    assert 0 < one.traffic()[site("b")].sent_bytes < 10_000
    assert one.traffic()[site("b")].way_kbps is None, "a way that was never full"


def test_an_emulated_line_delays_and_narrows_what_passes_and_keeps_its_order() -> None:
    line = Line(delay_ms=100, kbps=8)
    arrivals = [line.arrival_s(size, now_s) for size, now_s in ((100, 0.0), (100, 0.0), (0, 0.0), (100, 9.0))]
    assert [round(at, 3) for at in arrivals] == [0.2, 0.3, 0.3, 9.2]
    assert arrivals == sorted(set(arrivals))
    assert Line().arrival_s(10**9, 5.0) == 5.0


def test_messages_over_a_slow_line_take_its_delay(ports: Ports) -> None:
    one = ports.port(site("a"), lines={site("b"): Line(delay_ms=80)})
    other = ports.port(site("b"))
    meet(one, other)
    ears = Ears()
    other.open(host("b"), ears)
    for number in range(20):
        one.send(host("a"), host("b"), b"%d" % number)
    until(lambda: len(ears.heard) == 20)
    assert ears.numbers == list(range(20))
    assert until(lambda: one.clocks().get(site("b"))).round_trip_ms >= 79


def test_a_default_port_listens_on_loopback_only(ports: Ports) -> None:
    port = ports.port(site("a"))
    assert port.address is not None
    table = Path("/proc/net/tcp")
    if table.exists():
        found = [line.split()[1] for line in table.read_text().splitlines()[1:] if line.split()[3] == "0A"]
        mine = [one for one in found if int(one.partition(":")[2], 16) == port.address[1]]
        assert mine == [f"0100007F:{port.address[1]:04X}"]
    assert port.address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_told_and_leaves_nothing_running(ports: Ports) -> None:
    taken = ports.port(site("a")).address
    with pytest.raises(OSError, match="address already in use"):
        ports.port(site("b"), listen=taken)
    assert not ports.all[-1]._thread.is_alive()


def test_a_host_all_of_whose_addresses_refuse_is_one_that_refuses(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ports.port(site("a"))
    assert there.address is not None
    number = there.address[1]
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host_, number)) for host_ in ("127.0.0.2", "127.0.0.1")]
    look_up = socket.getaddrinfo

    def found(name: Any, port: Any, *rest: Any, **more: Any) -> Any:
        return both if name == "both.example" else look_up(name, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    caller = ports.port(THE_DESK, listen=None, peers={site("a"): ("both.example", number)})

    async def asked() -> bool:
        caller.hang_up(await caller.ask(site("a"), "anything", b""))
        return True

    assert caller.do(asked()).result(60), "the second address takes what the first refuses"
    there.stop(0)
    with pytest.raises(ConnectionRefusedError):
        caller.do(asked()).result(60)


def test_a_part_that_fails_on_a_message_does_not_silence_the_others(ports: Ports) -> None:
    one, other = ports.pair()
    ears = Ears()

    def fails(sender: Address, data: bytes) -> None:
        raise RuntimeError("broken part")

    other.open(host("b"), fails)
    other.open(Address("reporter", "b"), ears)
    one.send(host("a"), host("b"), b"1")
    one.send(host("a"), Address("reporter", "b"), b"2")
    until(lambda: ears.numbers == [2])
    assert any("broken part" in line for line in ports.told)
