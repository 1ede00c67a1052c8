"""What does a deployment say of its processes? Who is where, by which keys they know one another, over which lines."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weft.bodies.live.wire.credentials import credentials
from weft.bodies.live.wire.line import Line
from weft.bodies.live.wire.parties import SITE, THE_DESK, Party, site
from weft.bodies.live.wire.port import LOOPBACK, Port, Where
from weft.model import Deployment
from weft.model.sites import where
from weft.plan.network.paths import Paths
from weft.spark.storage.disk import Disk, read_note
from weft.spec import absolute, as_plain


def fingerprint(deployment: Deployment) -> str:
    """What two processes compare to see that they were given the same file."""
    text = json.dumps(as_plain(deployment), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def addresses(deployment: Deployment) -> dict[Party, Where]:
    """Where the file says that sites and desk listen."""
    told = {site(one.name): one.address for one in deployment.sites}
    told[THE_DESK] = deployment.desk
    return {party: where(address) for party, address in told.items() if address is not None}


def lines_of(deployment: Deployment, here: Party) -> dict[Party, Line]:
    """The emulated lines from one site to the others: what the least-delay path there adds up to."""
    if here.kind != SITE:
        return {}
    paths = Paths(deployment)
    found = {}
    for other in deployment.sites:
        way = None if other.name == here.site else paths.between(here.site, other.name)
        if way is not None and way.emulate:
            found[site(other.name)] = Line(way.delay_ms, way.bandwidth_kbps)
    return found


def keys_folder(deployment: Deployment, otherwise: Path) -> Path:
    """Where the file says that keys lie, else in another folder."""
    return otherwise if deployment.keys is None else Path(absolute(deployment.keys, deployment.folder))


def next_session(path: Path, disk: Disk) -> int:
    """A session greater than any that a process with this file had before it, however its clock was set."""
    before = read_note(path)
    session = max(time.time_ns(), before + 1 if isinstance(before, int) else 0)
    disk.make(path.parent)
    disk.seal(path, session)
    return session


def port_of(
    deployment: Deployment,
    party: Party,
    keys: Path,
    *,
    session: int | None = None,
    peers: Mapping[Party, Where] | None = None,
    tell: Callable[[str], None] = lambda line: None,
    **given: Any,
) -> Port:
    """The port of one process of a deployment: at its address where the file names one, else somewhere on loopback.

    `peers` tells of addresses that the file does not name, as those of a run on one machine.
    """
    named = addresses(deployment)
    known = {other: there for other, there in {**named, **(peers or {})}.items() if other != party}
    given.setdefault("listen", named.get(party, LOOPBACK))
    given.setdefault("lines", lines_of(deployment, party))
    return Port(
        credentials(keys, party), fingerprint(deployment), peers=known, session=session, tell=tell, **given
    )  # fmt: skip
