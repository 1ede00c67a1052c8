"""Which epochs were seen? Those of the desk in epochs.json, those of each site in a file of its own, kept for good."""

from __future__ import annotations

import threading
import time
from urllib.parse import quote

from weft.bodies.live.state import EPOCHS, EPOCHS_OF_SITES, LIVES, State


class DeskEpochs:
    """The greatest epoch of each fragment that the desk has said; a state of an earlier version has the sites' here."""

    def __init__(self, state: State, desk: str) -> None:
        self._state = state
        self._desk = desk
        self._held: dict[str, dict[str, int]] = state.read(EPOCHS) or {}
        self._lock = threading.Lock()

    def remembered(self) -> dict[str, int]:
        """What an earlier life has said, by fragment."""
        return dict(self._held.get(self._desk, {}))

    def remember(self, fragment: str, epoch: int) -> None:
        """Keep an epoch for the next life; it is on disk when this returns."""
        with self._lock:
            self._held.setdefault(self._desk, {})[fragment] = epoch
            self._state.write(EPOCHS, self._held)


class SiteEpochs:
    """The greatest epoch of each fragment that one site has seen."""

    def __init__(self, state: State, site: str) -> None:
        self._state = state
        self._file = f"{EPOCHS_OF_SITES}/{quote(site, safe='')}.json"
        held = state.read(self._file)
        self._held: dict[str, int] = (state.read(EPOCHS) or {}).get(site, {}) if held is None else held
        self._lock = threading.Lock()

    def remembered(self) -> dict[str, int]:
        """What an earlier life has seen, by fragment."""
        return dict(self._held)

    def remember(self, fragment: str, epoch: int) -> None:
        """Keep an epoch for the next life; it is on disk when this returns."""
        with self._lock:
            self._held[fragment] = epoch
            self._state.disk.make(self._state.path / EPOCHS_OF_SITES)
            self._state.write(self._file, self._held)


def next_life(state: State, site: str) -> int:
    """A number above those of all earlier lives of a site.

    By the clock where what was kept is lost, by what was kept where the clock went back; only both at once would harm.
    """
    file = f"{LIVES}/{quote(site, safe='')}.json"
    before = state.noted(file)
    life = max((before if isinstance(before, int) else 0) + 1, time.time_ns() // 1_000_000)
    state.disk.make(state.path / LIVES)
    state.note(file, life)
    return life
