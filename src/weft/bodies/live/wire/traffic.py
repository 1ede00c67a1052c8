"""How much goes to a peer, and what can the way take? Bytes that the port writes, and what TCP measures by itself."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

INFO_BYTES = 168
FLAGS_AT, RATE_AT = 7, 160
"""In Linux's `tcp_info`: whether the sender had too little to say (the lowest bit), and bytes a second that arrived."""


@dataclass(slots=True)
class Traffic:
    """One direction, all connections to a peer together."""

    sent_bytes: int = 0
    way_kbps: float | None = None
    """What the way took when it was full: when it, and not the sender, set the pace."""
    way_s: float = 0.0
    """When that was, on the monotonic clock."""

    def full(self, kbps: float, now_s: float) -> None:
        """The way was full, and took so much."""
        self.way_kbps, self.way_s = kbps, now_s


def full_kbps(connected: Any) -> float | None:
    """What a connection's way took of late, in kbit/s, where it was full; None where it was not, or nothing tells."""
    with suppress(OSError, AttributeError, struct.error):
        info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        (rate,) = struct.unpack_from("=Q", info, RATE_AT)
        if len(info) >= INFO_BYTES and not info[FLAGS_AT] & 1 and 0 < rate < 1 << 63:
            return 8 * float(rate) / 1000
    return None
