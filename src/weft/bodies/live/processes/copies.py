"""What of a desk's state must sites on other machines have? Copies of three of its files, brought over the port.

The record says which run it is, the journal which plan is in force, the flows since when sources give records. A desk
answers every word of a site with a mark that tells what these files hold; a site whose copies bear another mark asks
for them. So a site reads its own folder as one that shares the desk's does, about a second later.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import zlib
from concurrent.futures import CancelledError
from hashlib import sha256
from pathlib import Path

import msgspec

from weft.bodies.live import journal
from weft.bodies.live.identity import identity, unreachable
from weft.bodies.live.state import CannotRun, Record, State
from weft.bodies.live.wire.connections import Connection
from weft.bodies.live.wire.frames import CHUNK_BYTES, BadFrame, Note
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import SITE, THE_DESK
from weft.bodies.live.wire.port import Port
from weft.model import Deployment, sink_name
from weft.spark.channels.mirror import is_stream_name
from weft.spark.fragments.outputs import claims_of
from weft.spark.sinks import ownership
from weft.spark.sinks.ownership import RUN_FILE
from weft.spark.sources.streams import read_flows
from weft.spark.storage.disk import unseal

WHAT = "run"
FLOWS = "flows.json"
FILES = (RUN_FILE, journal.FILE, FLOWS)
FILE_BYTES_MAX = 64 << 20
BRING_S_MAX = 30.0
LOOK_S = 0.05


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the files: its name, how long it is (None: there is none yet), and its checksum; its bytes follow."""

    name: str
    size: int | None = None
    crc: int = 0


def mark_of(state: State) -> str:
    """Tells apart what the files hold, but for how long sources have flowed, which changes all the time."""
    flows = {name: held for name, held in read_flows(state.folders.flows).items() if name != "flowed_s"}
    held = [_bytes(state.path / name) or b"" for name in (RUN_FILE, journal.FILE)]
    return sha256(b"\0".join([*held, json.dumps(flows, sort_keys=True).encode()])).hexdigest()


class Giving:
    """Gives copies to the sites of a run; on the desk's port."""

    def __init__(self, state: State) -> None:
        self.state = state

    def at(self, port: Port) -> None:
        """Answer whoever asks there."""
        port.serve(WHAT, self.give)

    async def give(self, one: Connection, request: bytes) -> None:
        """Send each of the files as it is now."""
        if one.peer.kind != SITE:
            raise NotBelieved(f"{one.peer} is no site: its key does not ask for that")
        for name in FILES:
            data = await asyncio.get_running_loop().run_in_executor(None, _given, self.state.path / name)
            head = Head(name) if data is None else Head(name, len(data), zlib.crc32(data))
            await one.note(msgspec.msgpack.encode(head))
            for at in range(0, len(data or b""), CHUNK_BYTES):
                await one.chunk((data or b"")[at : at + CHUNK_BYTES])
        await one.done()


class Copies:
    """The copies of one site."""

    def __init__(self, port: Port, state: State) -> None:
        self.state = state
        self._port = port
        self._mark = ""
        self._lock = threading.Lock()

    def bring(self, mark: str) -> None:
        """Have copies of what bears a mark; OSError where the desk does not give them now.

        CannotRun where the folder is that of another run.
        """
        with self._lock:
            if mark == self._mark:
                return
            try:
                brought = self._port.do(self._asked()).result(BRING_S_MAX)
            except (BadFrame, NotBelieved, TimeoutError, CancelledError, asyncio.IncompleteReadError) as error:
                raise OSError(f"the desk does not give its state: {error or type(error).__name__}") from error
            self._refuse_other(brought.get(RUN_FILE, b""))
            self._refuse_foreign(brought.get(journal.FILE))
            for name, data in brought.items():
                if data != _bytes(self.state.path / name):
                    self.state.disk.replace(self.state.path / name, data)
            self._mark = mark

    def have_plan(self, number: int) -> None:
        """Have the plan of a number, or a later one; OSError where it does not come in time."""
        deadline = time.monotonic() + BRING_S_MAX
        while (held := journal.read(self.state)) is None or held.number < number:
            if time.monotonic() > deadline:
                raise OSError(f"plan {number} has not come from the desk")
            self.bring(f"for plan {number} at {time.monotonic()}")
            time.sleep(LOOK_S)

    def _refuse_other(self, brought: bytes) -> None:
        here = self.state.record()
        if here is None:
            return
        desk = msgspec.json.decode(unseal(brought, self.state.path / RUN_FILE), type=Record)
        if desk.run != here.run:
            raise CannotRun(
                f"{self.state.path} holds an earlier run of this site ({here.run}), and the desk runs another "
                f"({desk.run}): move that folder and the results of the site's sinks away, or give another with --state"
            )

    def _refuse_foreign(self, brought: bytes | None) -> None:
        """A plan may say where operators of this site's file run; it brings none, and no name that is no folder's."""
        if brought is None:
            return
        path = self.state.path / journal.FILE
        held = journal.held(msgspec.json.decode(unseal(brought, path)))
        if held.beside.added or held.stands or held.operators:
            raise CannotRun("the desk's plan has queries that the file of this site does not have")
        for one in held.fragments:
            for name in (one.id, *one.outputs, *one.channels):
                if not is_stream_name(name):
                    raise CannotRun(f"the desk's plan names something {name[:100]!r}, which no folder can be called")

    async def _asked(self) -> dict[str, bytes]:
        one = await self._port.ask(THE_DESK, WHAT, b"")
        try:
            found = {}
            while (frame := await one.take()) is not None:
                name, data = await _file(one, frame)
                if data is not None:
                    found[name] = data
            return found
        finally:
            self._port.hang_up(one)


async def _file(one: Connection, frame: object) -> tuple[str, bytes | None]:
    try:
        assert isinstance(frame, Note)
        head = msgspec.msgpack.decode(frame.data, type=Head)
    except (AssertionError, msgspec.MsgspecError) as error:
        raise BadFrame("a copy of another form") from error
    if head.name not in FILES or not 0 <= (head.size or 0) <= FILE_BYTES_MAX:
        raise BadFrame(f"{head.name[:100]!r} is no file that a desk gives")
    if head.size is None:
        return head.name, None
    data = b""
    while len(data) < head.size:
        part = await one.take()
        if not isinstance(part, bytes) or not part or len(data) + len(part) > head.size:
            raise BadFrame("a copy ends before its bytes have come, or after")
        data += part
    if zlib.crc32(data) != head.crc:
        raise BadFrame(f"{head.name} is not what was sent")
    return head.name, data


def claim_here(state: State, deployment: Deployment, site: str, record: Record, goes_on: bool) -> None:
    """Let the sinks that stand at a site be this run's; CannotRun where one is somebody else's."""
    here = {sink_name(query, sink) for query in deployment.queries for sink in query.sinks if sink.site == site}
    for claim in claims_of(deployment, state.folders):
        if claim.sink not in here:
            continue
        found = ownership.standing(claim, state.path, record.run if goes_on else None)
        if found.refusal is not None:
            raise CannotRun(f"sink {claim.sink}: {found.refusal}")
        if found.orphan:
            ownership.forget(claim.hidden, state.disk)
        owner = found.owner
        if not found.ours or owner is None or (owner.state, owner.path) != (str(state.path), str(claim.path)):
            ownership.take(claim, state.path, record.run, found.ours)


def is_run_of(record: Record | None, deployment: Deployment) -> bool:
    """Whether a record is that of a run of a deployment: queries may have come and gone since, the rest is alike."""
    return record is not None and not unreachable(record.deployment, identity(deployment))


def _given(path: Path) -> bytes | None:
    """What a desk gives of a file, which appears whole under its name."""
    return _bytes(path)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
