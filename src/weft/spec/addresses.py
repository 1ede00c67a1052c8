"""Can the processes of a deployment be where its file says? Addresses, and the folder of keys."""

from __future__ import annotations

import os
from pathlib import Path

from weft.model import Deployment
from weft.model.sites import where
from weft.spec.paths import absolute
from weft.spec.problems import Problems
from weft.spec.shapes import Text
from weft.spec.store import node_in
from weft.spec.tree import Node, Unreadable, text_of

ADDRESS = Text(
    "an address, as `host:port`",
    r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252}):[0-9]{1,5}",
    "; write the host, a colon and the port",
)
_ANYWHERE = ("0.0.0.0", "::", "0")


def desk_of(file: str | os.PathLike[str]) -> tuple[str | None, str | None]:
    """Where a file says that its desk listens, and that keys lie, whatever else is wrong with it."""
    try:
        text = text_of(Path(file))
    except Unreadable:
        return None, None
    told = {key: node_in(text, key) for key in ("desk", "keys")}
    desk, keys = (node.value if node is not None and isinstance(node.value, str) else None for node in told.values())
    problems = Problems()
    if desk is not None:
        ADDRESS.read(Node(desk), "desk", problems)
    return None if problems.errors else desk, keys


def check_addresses(deployment: Deployment, problems: Problems) -> None:
    """Reports addresses that cannot be, that two would share, or that only some sites have."""
    told = {f"sites[{index}].address": site.address for index, site in enumerate(deployment.sites)}
    told["desk"] = deployment.desk
    taken: dict[tuple[str, int], str] = {}
    for field, address in told.items():
        if address is None or not _is_address(address):
            continue
        host, port = where(address)
        if not 1 <= port <= 65535:
            problems.error(field, f"port {port} is none; choose one from 1024 to 65535")
        elif host in _ANYWHERE:
            problems.error(field, f"`{host}` is no address that others could call; name the host that it has for them")
        elif (host.lower(), port) in taken:
            says = f"`{address}` is the address of {taken[host.lower(), port]} too; give each a port of its own"
            problems.error(field, says)
        taken.setdefault((host.lower(), port), field.removesuffix(".address"))
    named = [site for site in deployment.sites if site.address is not None]
    for index, site in enumerate(deployment.sites if named else ()):
        if site.address is None:
            says = f"is missing: `{named[0].name}` has one, and sites on several machines must all be found"
            problems.error(f"sites[{index}].address", f"{says}; give every site one, or none")
    keys = None if deployment.keys is None else absolute(deployment.keys, deployment.folder)
    if keys is not None and os.path.exists(keys) and not os.path.isdir(keys):
        problems.error("keys", f"{keys} is no folder; name the folder that `weft keys` made")


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdigit()
