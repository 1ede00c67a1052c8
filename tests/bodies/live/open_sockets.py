"""Where does this process listen, and those that it has started? As the system's own list of sockets says."""

from __future__ import annotations

import os
import re
import socket
import struct
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

LISTENS = "0A"
told_by_the_system = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system has no /proc/net/tcp")


def family() -> set[int]:
    """This process and all that descend from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listening(pids: set[int]) -> set[tuple[str, int]]:
    """The addresses at which processes listen for connections."""
    own = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                own |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(handle)))
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and words[9] in own:
                host, _, port = words[1].partition(":")
                found.add((_host(host), int(port, 16)))
    return found


def elsewhere(found: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those of some addresses that somebody on another machine could call."""
    return {(host, port) for host, port in found if not ip_address(host.removeprefix("::ffff:")).is_loopback}


def _host(text: str) -> str:
    """An address as the system writes it: words of four bytes in its own order."""
    words = struct.pack(f"={len(text) // 8}I", *(int(text[at : at + 8], 16) for at in range(0, len(text), 8)))
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)
