"""What do processes of their own cost? A word and its answer over TLS, and a stream mirrored from one to another.

    python -m benchmarks.transport [--short] [--json]

Two processes on loopback. Round trips: one message and its answer at a time, over the port (TLS 1.3 with both
certificates, numbered, acknowledged) and, by turns, over a bare TCP connection between the same two processes. Mirror:
segments that lie at one process's log are followed by the other until its copy has them all, with and without syncing
the copy to disk, by turns with a plain copy of the same files. Hop: from the link that commits a small segment at its
home to the moment that its manifest is in the copy, seen by looking every half millisecond.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import statistics
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks._bench import Found, Setting, go, line, ratios, spread, turns
from weft.bodies.live.mirrors.mirroring import Mirroring
from weft.bodies.live.transport import Address, host
from weft.bodies.live.wire.authority import own_keys
from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.parties import site
from weft.bodies.live.wire.port import Port
from weft.spark.channels.folders import Folders
from weft.spark.channels.kinds import MIRROR
from weft.spark.channels.log_writer import LogWriter
from weft.spark.channels.manifest import Manifest
from weft.spark.channels.mirror import Mirror
from weft.spark.storage.disk import Disk

WAIT_S_MAX = 120.0
LOOK_S = 0.0005


def until(what: Any) -> None:
    """Wait until something is so, but not for ever."""
    end_s = time.monotonic() + WAIT_S_MAX
    while not what():
        if time.monotonic() > end_s:
            raise TimeoutError("the benchmark waited too long")
        time.sleep(LOOK_S)


class Watched(Disk):
    """Notes when a manifest was linked."""

    linked_s = 0.0

    def link(self, path: Path, name: Path) -> None:
        """Give a file a further name."""
        super().link(path, name)
        self.linked_s = time.perf_counter()


def folders_of(work: Path, name: str, fsync: bool) -> Folders:
    """One site's own folder."""
    return Folders(work / name, "run", Watched(fsync), MIRROR)


def other_side(work: str, pipe: Connection) -> None:
    """Site b in a process of its own: answers messages, echoes plain bytes, follows what it is told to."""
    port = Port(credentials(Path(work) / "keys", site("b")), "bench")
    where = port.start()
    port.open(host("b"), lambda sender, data: port.send(host("b"), sender, data))
    plain = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=echo, args=(plain,), daemon=True).start()
    pipe.send((where, plain.getsockname()))
    port.know(site("a"), pipe.recv())
    mirroring: dict[bool, Mirroring] = {}
    while (asked := pipe.recv()) is not None:
        stream, fsync = asked
        if fsync is None:
            for one in mirroring.values():
                one.unfollow(stream)
            pipe.send(None)
            continue
        if fsync not in mirroring:
            mirroring[fsync] = Mirroring(port, folders_of(Path(work), "b", fsync))
        mirroring[fsync].follow(stream, "a")
        pipe.send(None)
    for one in mirroring.values():
        one.close()
    port.stop(0)


def echo(server: socket.socket) -> None:
    """A bare echo."""
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(65536):
        connection.sendall(data)


class Answers:
    """Waits for each answer in turn."""

    def __init__(self) -> None:
        self._there = threading.Semaphore(0)

    def __call__(self, sender: Address, data: bytes) -> None:
        self._there.release()

    def wait(self) -> None:
        """The next answer."""
        if not self._there.acquire(timeout=WAIT_S_MAX):
            raise TimeoutError("no answer came")


def round_trips(say: Any, count: int) -> list[float]:
    """Milliseconds of each, one after another, the first tenth left out."""
    found = []
    for _ in range(count + count // 10):
        begun_s = time.perf_counter()
        say()
        found.append((time.perf_counter() - begun_s) * 1000)
    return found[count // 10 :]


def segments(log: Mirror, count: int, size: int) -> int:
    """Commit so many segments of one file each; bytes in all."""
    writer = LogWriter(log, max(1, log.epoch()), "bench")
    data = os.urandom(size)
    for _ in range(count):
        commit(writer, data)
    return count * size


def commit(writer: LogWriter, data: bytes) -> None:
    """One segment."""
    folder = writer.folder()
    folder.mkdir(parents=True)
    (folder / "part.bin").write_bytes(data)
    batch = writer.segment
    writer.commit(Manifest(batch, writer.epoch, "bench", batch, rows=1, bytes=len(data), files=("part.bin",)))


def copied(work: Path, log: Mirror, to: Path) -> float:
    """Seconds that a plain copy of a log's records takes."""
    begun_s = time.perf_counter()
    shutil.copytree(log.data, to)
    taken_s = time.perf_counter() - begun_s
    shutil.rmtree(to)
    return taken_s


def mirrored(pipe: Connection, work: Path, stream: str, fsync: bool, end: int) -> float:
    """Seconds from the word to follow until the copy has all."""
    last = work / "b" / "streams" / stream / "manifests" / f"{end - 1:010d}"
    begun_s = time.perf_counter()
    pipe.send((stream, fsync))
    pipe.recv()
    until(last.exists)
    return time.perf_counter() - begun_s


def measure(setting: Setting) -> Found:
    """All figures."""
    work = Path(tempfile.mkdtemp(prefix="weft-transport-"))
    own_keys(work / "keys", ["a", "b"])
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=other_side, args=(str(work), theirs), daemon=True)
    process.start()
    port = Port(credentials(work / "keys", site("a")), "bench")
    where = port.start()
    try:
        there, plain_at = pipe.recv()
        pipe.send(where)
        port.know(site("b"), there)
        trips = _trips(port, plain_at, setting)
        mirror = _mirror(port, pipe, work, setting)
        pipe.send(None)
        process.join(10)
    finally:
        port.stop(0)
        if process.is_alive():
            process.kill()
        shutil.rmtree(work, ignore_errors=True)
    return {**trips, **mirror}


def _trips(port: Port, plain_at: Any, setting: Setting) -> Found:
    answers = Answers()
    port.open(host("a"), answers)
    message = os.urandom(setting["message_bytes"])
    plain = socket.create_connection(plain_at)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def over_port() -> None:
        port.send(host("a"), host("b"), message)
        answers.wait()

    def bare() -> None:
        plain.sendall(message)
        left = len(message)
        while left:
            left -= len(plain.recv(left))

    say = {"port": over_port, "bare": bare}
    held: dict[str, list[list[float]]] = {"port": [], "bare": []}
    for _, name, counts in turns(list(say), setting["rounds"], setting["warm_rounds"]):
        found = round_trips(say[name], setting["trips"])
        held[name] += [found] if counts else []
    plain.close()
    middle = {name: [statistics.median(one) for one in rounds] for name, rounds in held.items()}
    late = [statistics.quantiles(one, n=20)[-1] for one in held["port"]]
    return {
        "round_trip_ms": spread(middle["port"]),
        "round_trip_p95_ms": spread(late),
        "bare_round_trip_ms": spread(middle["bare"]),
        "over_bare": ratios(middle["port"], middle["bare"], 1),
    }


def _mirror(port: Port, pipe: Connection, work: Path, setting: Setting) -> Found:
    home = folders_of(work, "a", fsync=False)
    Mirroring(port, home)
    rates: dict[str, list[float]] = {"mirror": [], "synced": [], "copy": []}
    for number, name, counts in turns(list(rates), setting["rounds"], setting["warm_rounds"]):
        stream = f"bulk-{name}-{number}"
        log = home.stream(stream)
        assert isinstance(log, Mirror)
        size = segments(log.create(), setting["segments"], setting["segment_bytes"])
        if name == "copy":
            taken_s = copied(work, log, work / "plain")
        else:
            taken_s = mirrored(pipe, work, stream, name == "synced", setting["segments"])
            pipe.send((stream, None))
            pipe.recv()
            shutil.rmtree(work / "b" / "streams" / stream, ignore_errors=True)
        shutil.rmtree(log.folder)
        rates[name] += [size / taken_s / 1e6] if counts else []
    return {
        "mirror_mb_s": spread(rates["mirror"], 0),
        "mirror_synced_mb_s": spread(rates["synced"], 0),
        "copy_mb_s": spread(rates["copy"], 0),
        "hop_ms": spread(_hops(home, pipe, work, setting)),
    }


def _hops(home: Folders, pipe: Connection, work: Path, setting: Setting) -> list[float]:
    """The median of each round, from a commit to its copy, which is not synced."""
    log = home.stream("hop")
    assert isinstance(log, Mirror)
    writer = LogWriter(log.create(), 1, "bench")
    commit(writer, b"first")
    mirrored(pipe, work, "hop", False, 1)
    found = []
    for _ in range(setting["rounds"]):
        held = []
        for _ in range(setting["hops"]):
            commit(writer, os.urandom(2_000))
            copy = work / "b" / "streams" / "hop" / "manifests" / f"{writer.segment - 1:010d}"
            until(copy.exists)
            assert isinstance(log.disk, Watched)
            held.append((time.perf_counter() - log.disk.linked_s) * 1000)
            time.sleep(0.01)
        found.append(statistics.median(held))
    return found


def show(setting: Setting, found: Found) -> None:
    """The numbers for people."""
    print(line("a word and its answer, median", found["round_trip_ms"], "ms"), setting.aim("round_trip_ms.median"))
    print(line("the same, 95 of 100 below", found["round_trip_p95_ms"], "ms"))
    print(line("over a bare connection", found["bare_round_trip_ms"], "ms"))
    print(line("times the bare one", found["over_bare"]))
    print(line("a stream to its copy", found["mirror_mb_s"], "MB/s"), setting.aim("mirror_mb_s.median"))
    print(line("the same, synced to disk", found["mirror_synced_mb_s"], "MB/s"))
    print(line("a plain copy of the files", found["copy_mb_s"], "MB/s"))
    print(line("a commit to its copy", found["hop_ms"], "ms"))


if __name__ == "__main__":
    go("transport", __doc__, measure, show)
