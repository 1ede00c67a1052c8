"""What goes along when a fragment moves to a site that shares no folder? Its room, and the streams that it writes.

The new site first hears which readers the streams have and where they stand, so that it keeps what they need. It then
brings the fragment's files into a folder aside, checks and syncs them, and gives them their names in one step. Last
it follows each stream that the fragment writes up to its end: from there on it is the stream's home.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from weft.bodies.live.mirrors.following import Follower, receive_file
from weft.bodies.live.mirrors.serving import send_file
from weft.bodies.live.mirrors.words import PACK, AskPack, FileHead, PackHead, encode, request_of
from weft.bodies.live.wire.connections import Connection
from weft.bodies.live.wire.frames import BadFrame, Note
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import COMMAND, Party
from weft.bodies.live.wire.port import Port
from weft.spark.channels.folders import Folders
from weft.spark.channels.mirror import Mirror, is_stream_name
from weft.spark.checkpoints.ledger import ledger_of
from weft.spark.storage.disk import Disk, size_and_sum

LOOK_S = 0.01
CATCH_UP_S_MAX = 600.0
Head = TypeVar("Head", PackHead, FileHead)


class Packs:
    """Gives what belongs to fragments that ran at this site."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders

    async def give(self, one: Connection, request: bytes) -> None:
        """Send the files of a fragment's generation, and say where its streams end."""
        asked = request_of(request, AskPack)
        if one.peer.kind == COMMAND or asked.run != self.folders.run:
            raise NotBelieved(f"{one.peer} is no site of this run")
        if not all(is_stream_name(name) for name in (asked.fragment, *asked.streams)):
            raise NotBelieved(f"{one.peer} asked for something of an impossible name")
        loop = asyncio.get_running_loop()
        files = await loop.run_in_executor(None, self._files, asked.fragment, asked.generation)
        streams = {name: _mirror(self.folders, name) for name in asked.streams}
        there = {name: log for name, log in streams.items() if log.is_there()}
        ends = {name: log.next_segment() for name, log in there.items()}
        places = {name: log.places() for name, log in there.items()}
        await one.note(encode(PackHead(len(files), ends, places)))
        for name, path in files:
            size, crc = await loop.run_in_executor(None, size_and_sum, path)
            await one.note(encode(FileHead(name, size, crc)))
            with open(path, "rb") as file:
                await send_file(one, file, size)
        await one.done()

    def _files(self, fragment: str, generation: int) -> list[tuple[str, Path]]:
        """The checkpoint, its ledger, and the ticks that it has seen."""
        room = self.folders.fragment(fragment)
        checkpoint = self.folders.checkpoint(fragment, generation)
        found = [ledger_of(checkpoint)] if ledger_of(checkpoint).exists() else []
        for folder in (checkpoint, self.folders.ticks(fragment)):
            found += [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return [(path.relative_to(room).as_posix(), path) for path in found]


async def fetch_pack(
    port: Port, old: Party, folders: Folders, fragment: str, generation: int, streams: tuple[str, ...]
) -> None:
    """Bring a fragment from the site where it ran; on the port's own thread. Asked again, it begins again."""
    asked = AskPack(folders.run, fragment, generation, streams)
    one = await port.ask(old, PACK, msgspec.msgpack.encode(asked))
    loop = asyncio.get_running_loop()
    aside = folders.fragment(fragment) / f".incoming-{generation}"
    try:
        head = await _note(one, PackHead)
        await loop.run_in_executor(None, _keep_places, folders, head)
        await loop.run_in_executor(None, folders.disk.remove_tree, aside)
        names = []
        for _ in range(head.files):
            names.append(await _file(one, aside))
        if await one.take() is not None:
            raise BadFrame("more comes than was announced")
    finally:
        port.hang_up(one)
    await loop.run_in_executor(None, _install, folders, fragment, generation, aside, names)
    for stream, end in head.ends.items():
        await _catch_up(port, old, _mirror(folders, stream), end)


async def _note(one: Connection, kind: type[Head]) -> Head:
    frame = await one.take()
    if not isinstance(frame, Note):
        raise BadFrame("a pack of another form")
    return request_of(frame.data, kind)


async def _file(one: Connection, aside: Path) -> str:
    head = await _note(one, FileHead)
    parts = Path(head.name).parts
    if not parts or head.name.startswith("/") or any(part in ("..", "") for part in parts):
        raise BadFrame("a pack names a file outside its room")
    path = aside / head.name
    await receive_file(one, path, head.size)
    if await asyncio.get_running_loop().run_in_executor(None, _crc, path) != head.crc:
        raise BadFrame(f"{head.name} is not what was sent")
    return head.name


def _crc(path: Path) -> int:
    return zlib.crc32(path.read_bytes())


def _keep_places(folders: Folders, head: PackHead) -> None:
    for stream, places in head.places.items():
        log = _mirror(folders, stream).create()
        for reader, (number, has_read) in places.items():
            if is_stream_name(reader):
                log.passed(reader, number, has_read)


def _install(folders: Folders, fragment: str, generation: int, aside: Path, names: list[str]) -> None:
    """Give what was brought its names: on disk before, and the ledger, which vouches for it, last."""
    room, disk = folders.fragment(fragment), folders.disk
    disk.make(room)
    _sync_all(disk, aside, names)
    checkpoint = folders.checkpoint(fragment, generation)
    ledger = ledger_of(checkpoint)
    disk.remove(ledger)
    for target in (checkpoint, folders.ticks(fragment)):
        brought = aside / target.relative_to(room)
        if brought.is_dir():
            disk.remove_tree(target)
            disk.rename(brought, target)
    if (aside / ledger.relative_to(room)).exists():
        disk.rename(aside / ledger.relative_to(room), ledger)
    disk.sync((), [room])
    disk.remove_tree(aside)


def _sync_all(disk: Disk, aside: Path, names: list[str]) -> None:
    files = [aside / name for name in names]
    folders = {parent for file in files for parent in file.parents if parent == aside or aside in parent.parents}
    disk.sync(files, sorted(folders, key=os.fspath))


async def _catch_up(port: Port, old: Party, log: Mirror, end: int) -> None:
    """Follow a stream whose writer has ended up to its end."""
    follower = Follower(port, log, old)
    await follower.start()
    try:
        begun_s = asyncio.get_running_loop().time()
        while log.next_segment() < end:
            if asyncio.get_running_loop().time() - begun_s > CATCH_UP_S_MAX:
                raise TimeoutError(f"stream {log.name} did not come from {old}: {log.next_segment()} of {end} segments")
            await asyncio.sleep(LOOK_S)
    finally:
        await follower.stop()


def _mirror(folders: Folders, stream: str) -> Mirror:
    log = folders.stream(stream)
    assert isinstance(log, Mirror)
    return log
