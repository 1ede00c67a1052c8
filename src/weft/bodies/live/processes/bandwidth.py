"""How much more could go to each neighbour? What the way can take, less what goes there (residual bandwidth, S12).

What a way can take is what the file says of the link, or less, where TCP has seen it full with less: then others use
the rest. Nothing is sent to find out; where neither is known, nothing is said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from weft.bodies.live.wire.traffic import Traffic
from weft.model import Deployment

WINDOW_S = 10.0
FULL_S_MAX = 60.0
"""What was seen longer ago says nothing of now."""


class Bandwidth(NamedTuple):
    """Kbit/s to each neighbour: what this site sends of late, and what is left."""

    sent_kbps: dict[str, float]
    free_kbps: dict[str, float]


class BandwidthLook:
    """Looks at what a site's port has carried, now and then."""

    def __init__(self, site: str, deployment: Deployment) -> None:
        self._told: dict[str, float] = {}
        for link in deployment.links:
            ends = [(link.from_, link.to), *([] if link.oneway else [(link.to, link.from_)])]
            for start, end in ends:
                if start == site and link.bandwidth_kbps is not None:
                    self._told[end] = max(link.bandwidth_kbps, self._told.get(end, 0.0))
        self._sent: dict[str, deque[tuple[float, int]]] = {}

    def now(self, now_s: float, traffic: Mapping[str, Traffic]) -> Bandwidth:
        """What is used, and what is left, by what was carried in the last ten seconds."""
        sent, free = {}, {}
        for site, one in traffic.items():
            looks = self._sent.setdefault(site, deque())
            looks.append((now_s, one.sent_bytes))
            while len(looks) > 2 and looks[1][0] <= now_s - WINDOW_S:
                looks.popleft()
            then_s, before = looks[0]
            if now_s <= then_s:
                continue
            used = 8 * (one.sent_bytes - before) / 1000 / (now_s - then_s)
            sent[site] = round(used, 3)
            seen = one.way_kbps if one.way_kbps is not None and one.way_s > now_s - FULL_S_MAX else None
            known = [kbps for kbps in (self._told.get(site), seen) if kbps is not None]
            if known:
                free[site] = round(max(0.0, min(known) - used), 3)
        return Bandwidth(sent, free)
