"""What a site sends to its neighbours, and what more it could: by the file, and by what TCP saw of a full way."""

from __future__ import annotations

import socket
import sys
import threading
from dataclasses import replace

import pytest

from tests.plan.plan_builders import deployment
from weft.bodies.live.processes.bandwidth import FULL_S_MAX, BandwidthLook
from weft.bodies.live.wire.traffic import Traffic, full_kbps
from weft.model import Link

LINKS = (
    Link("a", "b", bandwidth_kbps=1000.0), Link("a", "c"), Link("d", "a", bandwidth_kbps=500.0, oneway=True),
    Link("e", "a", bandwidth_kbps=300.0),
)  # fmt: skip


def looking() -> BandwidthLook:
    return BandwidthLook("a", replace(deployment(["a", "b", "c", "d", "e"], []), links=LINKS))


def test_what_is_left_is_what_the_link_has_less_what_was_sent_in_the_last_ten_seconds() -> None:
    look, to = looking(), {site: Traffic() for site in ("b", "c", "d", "e")}
    assert look.now(100.0, to).sent_kbps == {}, "one look tells of no time"
    to["b"].sent_bytes = 500_000
    found = look.now(105.0, to)
    assert found.sent_kbps == {"b": 800.0, "c": 0.0, "d": 0.0, "e": 0.0}
    assert found.free_kbps == {"b": 200.0, "e": 300.0}, "nothing is known of c, nor of the way against a oneway link"
    for second in range(106, 117):
        found = look.now(float(second), to)
    assert (found.sent_kbps["b"], found.free_kbps["b"]) == (0.0, 1000.0), "what was sent before does not count"
    to["b"].sent_bytes += 2_000_000
    assert look.now(117.0, to).free_kbps["b"] == 0.0


def test_a_way_that_was_full_with_less_has_less_and_only_for_a_while() -> None:
    look, to = looking(), {site: Traffic() for site in ("b", "c")}
    look.now(100.0, to)
    to["b"].full(250.0, 101.0)
    to["c"].full(9000.0, 101.0)
    assert look.now(102.0, to).free_kbps == {"b": 250.0, "c": 9000.0}
    to["b"].full(4000.0, 103.0)
    assert look.now(104.0, to).free_kbps["b"] == 1000.0, "others may not use it now: the file says what there is"
    assert look.now(102.0 + FULL_S_MAX, to).free_kbps == {"b": 1000.0}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="TCP tells of its ways on Linux alone")
def test_tcp_tells_what_a_way_took_that_was_full_and_nothing_of_one_that_was_idle() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        other, _ = server.accept()
        reads = threading.Thread(target=lambda: [None for _ in iter(lambda: other.recv(1 << 20), b"")], daemon=True)
        one.sendall(b"a word")
        assert full_kbps(one) is None, "the sender had little to say"
        reads.start()
        found = None
        for _ in range(20):
            one.sendall(bytes(16 << 20))
            found = found or full_kbps(one)
        assert found is not None
        assert found > 1000, "loopback is not slow"
        one.shutdown(socket.SHUT_WR)
        reads.join(10)
        other.close()
    assert full_kbps(None) is None
    assert full_kbps(one) is None, "closed"
