"""What does a site's balancer keep over a crash? Its memory, and what it took and the desk may not have heard of."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from weft.bodies.live.state import BALANCE_OF_SITES, State
from weft.protocol.balancing import Agreed, Memory
from weft.spark.storage.disk import Damaged


class Kept(msgspec.Struct, frozen=True):
    """A balancer's memory in an era, and the handovers that it took in it."""

    era: int
    memory: Memory
    took: tuple[Agreed, ...] = ()


class KeptBalance:
    """The file of one site; a balancer goes on from it where its desk is still in that era."""

    def __init__(self, state: State, site: str) -> None:
        self._state = state
        self._file = f"{BALANCE_OF_SITES}/{quote(site, safe='')}.json"

    def read(self) -> Kept | None:
        """What an earlier life has kept; nothing where that cannot be read: no record rests on it."""
        try:
            held = self._state.read(self._file)
            return None if held is None else msgspec.convert(held, Kept)
        except (Damaged, msgspec.ValidationError):
            return None

    def write(self, kept: Kept) -> None:
        """Keep it for the next life; it is on disk when this returns."""
        self._state.disk.make(self._state.path / BALANCE_OF_SITES)
        self._state.write(self._file, kept)
