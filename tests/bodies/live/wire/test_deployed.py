"""A deployment's processes: the same file, addresses, lines that are emulated, and sessions that only grow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bodies.live.wire.ports import Ears, until
from weft.bodies.live.transport import DESK, host
from weft.bodies.live.wire.authority import own_keys
from weft.bodies.live.wire.deployed import addresses, fingerprint, keys_folder, lines_of, next_session, port_of
from weft.bodies.live.wire.parties import THE_DESK, site
from weft.model import Column, Deployment, Link, Operator, Query, Sink, Site, Source
from weft.spark.storage.disk import Disk

SOURCE = Source("r", "a", "rate", (Column("n", "BIGINT"),))
QUERY = Query("q", (Operator("o", ("r",), sql="SELECT * FROM r"),), (Sink("o", "console"),))
THREE = Deployment(
    (Site("a"), Site("b"), Site("c")), (SOURCE,), (QUERY,),
    links=(Link("a", "b", 20, 1000, emulate=True), Link("b", "c", 30, 500), Link("a", "c", 200)),
)  # fmt: skip


def test_the_same_file_has_the_same_fingerprint_and_another_has_not() -> None:
    assert fingerprint(THREE) == fingerprint(replace(THREE, folder="/elsewhere"))
    assert fingerprint(THREE) != fingerprint(replace(THREE, sites=THREE.sites[:2]))


def test_lines_are_those_of_paths_that_are_emulated() -> None:
    held = {party.site: (line.delay_ms, line.kbps) for party, line in lines_of(THREE, site("a")).items()}
    assert held == {"b": (20, 1000), "c": (50, 500)}
    assert list(lines_of(THREE, site("c"))) == [site("a")]
    assert lines_of(THREE, THE_DESK) == {}


def test_addresses_and_keys_are_where_the_file_says(tmp_path: Path) -> None:
    sites = (Site("a", address="h:1"), Site("b", address="[::1]:2"))
    assert addresses(replace(THREE, sites=sites, desk="d:3")) == {
        site("a"): ("h", 1), site("b"): ("::1", 2), THE_DESK: ("d", 3),
    }  # fmt: skip
    assert addresses(THREE) == {}
    assert keys_folder(THREE, tmp_path) == tmp_path
    assert keys_folder(replace(THREE, keys="k", folder=str(tmp_path)), Path("x")) == tmp_path / "k"


def test_sessions_grow_even_where_the_clock_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sites" / "session.json"
    first = next_session(path, Disk())
    monkeypatch.setattr("time.time_ns", lambda: 5)
    assert next_session(path, Disk()) == first + 1


def test_desk_and_sites_of_a_deployment_speak_over_their_ports(tmp_path: Path) -> None:
    keys = own_keys(tmp_path / "keys", [one.name for one in THREE.sites])
    desk = port_of(THREE, THE_DESK, keys)
    there = desk.start()
    assert there is not None
    agent = port_of(THREE, site("a"), keys, peers={THE_DESK: there})
    try:
        heard, answered = Ears(), Ears()
        desk.open(DESK, heard)
        agent.open(host("a"), answered)
        agent.start()
        agent.send(host("a"), DESK, b"1")
        until(lambda: heard.numbers == [1])
        desk.send(DESK, host("a"), b"2")
        until(lambda: answered.numbers == [2])
    finally:
        agent.stop(0)
        desk.stop(0)
