"""Mirrors: nothing lost or doubled over restarts, fences that reach copies, moves with all that goes along."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.bodies.live.mirrors.mirrored import Places
from tests.bodies.live.wire.ports import Ports, until
from tests.spark.channels.channel_kinds import Kind, read
from tests.spark.channels.test_channels import some
from weft.bodies.live.mirrors.mirroring import Mirroring
from weft.bodies.live.mirrors.words import FOLLOW, PACK, AskPack, Follow
from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.line import Line
from weft.bodies.live.wire.parties import A_COMMAND, site
from weft.bodies.live.wire.port import Port
from weft.protocol.stream_rule import Counted, taken_from
from weft.spark.channels.channel import Fenced
from weft.spark.channels.mirror import is_stream_name


@pytest.fixture(params=["abc"])
def three(ports: Ports, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Places]:
    """Three sites that share no folder."""
    made = Places(ports, tmp_path, request.param)
    yield made
    made.close()


def filled(kind: Kind, places: Places, batches: range, at: str = "a", epoch: int = 1) -> None:
    """Some batches, written at a site."""
    writer = places.log(at).create().open_writer(epoch, "f")
    for batch in batches:
        kind.commit(writer, batch, some(batch))


def rows(batches: range) -> list[tuple[str, int]]:
    """What batches hold."""
    return sorted(row for batch in batches for row in some(batch))


def test_over_connections_that_break_and_processes_that_restart_every_record_is_there_once(
    kind: Kind, ports: Ports, places: Places
) -> None:
    chance = random.Random(3)
    places.mirroring["b"].follow("s", "a")
    writer = places.log("a").create().open_writer(1, "f")
    for batch in range(60):
        kind.commit(writer, batch, some(batch))
        what = chance.random()
        if what < 0.1:
            _restart(places, ports, chance.choice("ab"))
        elif what < 0.3:
            port = places.port[chance.choice("ab")]
            port.do(_broken(port)).result(10)
    places.same()
    assert read(places.log("b")) == rows(range(60))
    places.log("b").inspect(0)


def test_what_is_being_counted_when_the_connection_breaks_keeps_its_records(
    kind: Kind, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, disk, copy = places.port["b"], places.folders["b"].disk, places.log("b")
    link, there = disk.link, []

    def slow(path: Path, name: Path) -> None:
        files = [Path(file) for file, _, _ in copy.files(copy.room_for(path.read_bytes()).manifest)]
        port.do(_broken(port)).result(10)
        deadline = time.monotonic() + 1
        while files[0].exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        link(path, name)
        there.append(all(file.exists() for file in files))

    monkeypatch.setattr(disk, "link", slow)
    filled(kind, places, range(1))
    places.mirroring["b"].follow("s", "a")
    places.same()
    until(lambda: bool(there))  # the name is there a moment before that is looked at
    assert there == [True], "whoever reads it by now finds its records"
    assert read(copy) == rows(range(1))


async def _broken(port: Port) -> None:
    for connection in list(port._live.values()):
        connection.abort()


def _restart(places: Places, ports: Ports, name: str) -> None:
    """A process ends without a word, and another takes up what it left on disk."""
    places.port[name].stop(0)
    port = ports.port(site(name))
    places.port[name] = port
    places.mirroring[name] = Mirroring(port, places.folders[name], ports.told.append)
    for other, known in places.port.items():
        if other != name:
            assert known.address is not None
            assert port.address is not None
            known.know(site(name), port.address)
            port.know(site(other), known.address)
    if name == "b":
        places.mirroring["b"].follow("s", "a")


def test_a_copy_begins_where_its_readers_are_and_the_home_keeps_only_what_they_need(kind: Kind, places: Places) -> None:
    home, copy = places.log("a").create(), places.log("b").create()
    home.register("q.f~in")
    filled(kind, places, range(20))
    home.passed("q.f~in", 12)
    home.retain()
    copy.passed("q.f~in", 12, has_read=False)
    places.mirroring["b"].follow("s", "a")
    places.same()
    assert (copy.first_segment(), copy.next_segment()) == (11, 20)
    assert read(copy, 12) == rows(range(12, 20))
    copy.passed("q.f~in", 19)
    until(lambda: home.place("q.f~in") == 19)
    home.retain()
    assert home.first_segment() == 18
    copy.forget("q.f~in")
    until(lambda: home.known() == [])


def test_a_copy_that_was_left_behind_begins_anew_where_nobody_needs_what_is_gone(kind: Kind, places: Places) -> None:
    home, copy = places.log("a").create(), places.log("b").create()
    filled(kind, places, range(4))
    places.mirroring["b"].follow("s", "a")
    places.same()
    places.mirroring["b"].unfollow("s")
    home.register("q.f~in")
    filled(kind, places, range(4, 30), epoch=2)
    home.passed("q.f~in", 25)
    home.retain()
    copy.passed("q.f~in", 25, has_read=False)
    places.mirroring["b"].follow("s", "a")
    places.same()
    assert (copy.first_segment(), copy.next_segment()) == (24, 30)
    assert read(copy, 25) == rows(range(25, 30))


def test_a_copy_whose_readers_need_what_is_gone_says_so_and_keeps_what_it_has(
    kind: Kind, ports: Ports, places: Places
) -> None:
    home, copy = places.log("a").create(), places.log("b").create()
    filled(kind, places, range(4))
    places.mirroring["b"].follow("s", "a")
    places.same()
    places.mirroring["b"].unfollow("s")
    copy.passed("q.f~in", 2)
    home.register("q.g~in")
    filled(kind, places, range(4, 30), epoch=2)
    home.passed("q.g~in", 25)
    home.retain()
    places.mirroring["b"].follow("s", "a")
    until(lambda: any("still needed here" in line for line in ports.told))
    assert read(copy, 2) == rows(range(2, 4))


def test_a_fence_that_a_copy_has_heard_keeps_out_what_a_cut_off_writer_still_adds(kind: Kind, three: Places) -> None:
    for name in "bc":
        three.mirroring[name].follow("s", "a")
    writer = three.log("a").create().open_writer(1, "f")
    for batch in range(5):
        kind.commit(writer, batch, some(batch))
    for name in "bc":
        three.same("a", name)
    three.port["a"].cut(site("c"), 1000)
    kind.commit(writer, 5, some(5))
    three.same("a", "b")
    # c takes the stream away from a, which it cannot reach, and writes it from now on.
    told = three.mirroring["c"].take_away("s", 2, ["b", "c"])
    counted = {name: Counted(one.epoch, one.following) for name, one in told.items()}
    assert counted == {"b": Counted(2, 6), "c": Counted(2, 5)}
    assert taken_from(2, ["b", "c"], counted) == 5
    three.mirroring["c"].follow("s", "c")
    three.log("c").cut_back(5)
    for batch in range(6, 9):  # the writer at a does not know yet
        kind.commit(writer, batch, [("zombie", batch)])
    filled(kind, three, range(5, 12), "c", epoch=2)
    three.mirroring["b"].follow("s", "c")
    three.same("c", "b")
    for name in "bc":
        assert read(three.log(name)) == rows(range(12))
    three.log("a").fence(2)
    with pytest.raises(Fenced):
        kind.commit(writer, 9, some(9))


def test_who_does_not_answer_is_missing_and_nothing_goes_on_without_it(kind: Kind, three: Places) -> None:
    three.port["b"].stop(0)
    told = three.mirroring["c"].take_away("s", 2, ["b", "c"], within_s=3.0)
    assert set(told) == {"c"}
    assert taken_from(2, ["b", "c"], {"c": Counted(2, 0)}) is None


def test_a_move_brings_the_checkpoint_the_streams_and_their_readers_places(kind: Kind, three: Places) -> None:
    old, new = three.folders["a"], three.folders["b"]
    checkpoint = old.checkpoint("q.f", 2)
    files = {"metadata": b"{}", "offsets/7": b"v1", "commits/7": b"v1", "state/0/0/7.delta": bytes(3_000_000)}
    for name, content in files.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_bytes(content)
    (checkpoint.parent / "ledger-2.json").write_bytes(b"ledger")
    log = three.log("a").create()
    log.register("q.g~in")
    filled(kind, three, range(10))
    log.passed("q.g~in", 6)
    log.retain()
    three.mirroring["c"].follow("s", "a")
    for _ in range(2):  # asked again after a crash it does the same
        three.mirroring["b"].fetch("a", "q.f", 2, ["s"])
    brought = new.checkpoint("q.f", 2)
    assert {
        path.relative_to(brought).as_posix(): path.read_bytes() for path in brought.rglob("*") if path.is_file()
    } == files
    assert (brought.parent / "ledger-2.json").read_bytes() == b"ledger"
    assert not list(brought.parent.glob(".incoming*"))
    home = three.log("b")
    assert (home.first_segment(), home.next_segment(), home.place("q.g~in")) == (5, 10, 6)
    last = home.last()
    assert last is not None
    assert (last.segment, last.batch) == (9, 9)
    # The log's home has moved with its writer; its mirrors are told.
    home.fence(2)
    writer = home.open_writer(2, "f")
    assert writer.written(9)
    three.mirroring["c"].follow("s", "b")
    for batch in range(10, 14):
        kind.commit(writer, batch, some(batch))
    three.same("b", "c")
    assert read(three.log("c"), 6) == rows(range(6, 14))


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a..b", "x" * 300, "a\0b", "/etc/passwd"])
def test_names_become_folders_only_where_they_are_safe(name: str) -> None:
    assert not is_stream_name(name)
    assert is_stream_name("q.hourly")
    assert is_stream_name("readings@q.valid")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ((FOLLOW, Follow("run", "../a", 0)), "impossible name"),
        ((FOLLOW, Follow("other", "s", 0)), "of another run"),
        ((PACK, AskPack("run", "..", 0)), "impossible name"),
        ((PACK, AskPack("other", "f", 0)), "no site of this run"),
        (("shell", Follow("run", "s", 0)), "nobody here gives"),
    ],
    ids=range(5),
)
def test_what_a_site_may_not_ask_for_is_refused_with_a_word(
    places: Places, asked: tuple[str, msgspec.Struct], why: str
) -> None:
    assert why in _answer(places.port["b"], asked)


def test_a_command_gets_no_streams(ports: Ports, places: Places) -> None:
    command = Port(credentials(ports.keys, A_COMMAND), "d1", listen=None)
    ports.all.append(command)
    command.start()
    assert places.port["a"].address is not None
    command.know(site("a"), places.port["a"].address)
    assert "sites of the deployment only" in _answer(command, (FOLLOW, Follow("run", "s", 0)))


def _answer(port: Port, asked: tuple[str, msgspec.Struct]) -> str:
    async def ask() -> str:
        one = await port.ask(site("a"), asked[0], msgspec.msgpack.encode(asked[1]))
        try:
            await one.take(10)
        except ConnectionError as error:
            return str(error)
        finally:
            port.hang_up(one)
        return ""

    return port.do(ask()).result(30)


def test_bulk_bytes_do_not_hold_up_messages_and_take_their_time_over_a_slow_line(
    kind: Kind, ports: Ports, keys: Path, tmp_path: Path
) -> None:
    from tests.bodies.live.wire.ports import Ears
    from weft.bodies.live.transport import host

    places = Places(ports, tmp_path / "slow")
    places.port["a"]._peer(site("b")).line = Line(kbps=400_000)
    log = places.log("a").create()
    writer = log.open_writer(1, "f")
    written = writer.write(kind.records([{"k": "k", "v": 1}]), [])
    assert written.folder is not None
    (written.folder / "large.bin").write_bytes(bytes(20 << 20))
    from dataclasses import replace

    from tests.spark.channels.channel_kinds import committed

    committed(writer, 0, replace(written, files=(*written.files, "large.bin"), bytes=20 << 20))
    ears = Ears()
    places.port["b"].open(host("b"), ears)
    places.mirroring["b"].follow("s", "a")
    numbers = 0
    while places.log("b").next_segment() == 0:
        places.port["a"].send(host("a"), host("b"), b"%d" % numbers)
        numbers += 1
        until(lambda: len(ears.heard) == numbers)  # noqa: B023
    assert numbers > 3, "messages waited for the bytes"
    places.close()


def test_what_listens_is_on_loopback(places: Places) -> None:
    for port in places.port.values():
        assert port.address is not None
        with pytest.raises(OSError, match=r"refused|unreachable"):
            socket.create_connection((_own_address(), port.address[1]), timeout=5)


def _own_address() -> str:
    """An address of this machine that is not loopback; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address besides loopback")
        address: str = probe.getsockname()[0]
        if address.startswith("127."):
            pytest.skip("this machine has no address besides loopback")
        return address
