"""Which sites hold what is known of a name? The next ones on a ring on which names and sites lie by hash."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container
from functools import lru_cache
from hashlib import sha1

POINTS = 16
"""How often each site lies on the ring: with one point each, some would hold many times as much as others."""


@lru_cache(maxsize=65_536)
def _place(text: str) -> int:
    """Where a text lies (SHA-1, Synergy §2.3.3)."""
    return int.from_bytes(sha1(text.encode(), usedforsecurity=False).digest()[:8])


@lru_cache(maxsize=64)
def _ring(sites: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    points = sorted((_place(f"{site} #{point}"), site) for site in sites for point in range(POINTS))
    return tuple(place for place, _ in points), tuple(site for _, site in points)


def holders(name: str, sites: tuple[str, ...], away: Container[str], copies: int) -> tuple[str, ...]:
    """The first sites after a name that are not away; as many as there are to be copies, or fewer where sites lack."""
    places, owners = _ring(sites)
    first = bisect_right(places, _place(name))
    found: list[str] = []
    for step in range(len(owners)):
        site = owners[(first + step) % len(owners)]
        if site not in found and site not in away:
            found.append(site)
            if len(found) == copies:
                break
    return tuple(found)
