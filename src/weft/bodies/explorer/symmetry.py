"""Machines that are alike: states that differ only in which of them is which are one state.

This is sound where nothing tells such machines apart: the same code and scripts, no comparison of their names, the same
claims. Every value is renamed as a whole: snapshots and messages by replacing names wherever they stand as text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import permutations, product
from typing import Any

import msgspec
import numpy as np

from weft.bodies.explorer.values import GROUND, Queue, Snapshot, Timers
from weft.bodies.explorer.world import World

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Names:
    """The ways in which machines that are alike can change places, and what each makes of values."""

    def __init__(self, world: World) -> None:
        assert not (world.alike and world.scripts), "machines with scripts are told apart"
        ways = [[dict(zip(alike, turn, strict=True)) for turn in permutations(alike)] for alike in world.alike]
        every = [{name: to for part in parts for name, to in part.items()} for parts in product(*ways)]
        self.turns = tuple(turn for turn in every if any(name != to for name, to in turn.items()))
        self._places = np.zeros((len(self.turns), 0), np.int32)
        self._names = np.full((len(self.turns), 64), -1, np.int32)

    def tables(self, places: Mapping[Hashable, int], values: int) -> tuple[Any, Any]:
        """Where each place and value goes in each turn; below 0 where that is not known yet."""
        if self._places.shape[1] != len(places):
            self._places = np.array(
                [[places[self.place(what, turn)] for what in places] for turn in self.turns], np.int32
            ).reshape(len(self.turns), len(places))
        if values > self._names.shape[1]:
            grown = np.full((len(self.turns), 2 * values), -1, np.int32)
            grown[:, : self._names.shape[1]] = self._names
            self._names = grown
        return self._places, self._names

    def note(self, turn: int, value: int, after: int) -> None:
        """Notes what a value is called in a turn."""
        if max(value, after) < self._names.shape[1]:
            self._names[turn, value] = after

    def place(self, what: Any, turn: Mapping[str, str]) -> Any:
        """Where what stands at a place goes."""
        if isinstance(what, tuple):
            return tuple(turn.get(name, name) for name in what)
        return turn.get(what, what)

    def value(self, held: Any, turn: int) -> Any:
        """A value with other names."""
        names = self.turns[turn]
        match held:
            case Snapshot(site, snapshot):
                return Snapshot(names.get(site, site), _encode(_renamed(msgspec.msgpack.decode(snapshot), names)))
            case Queue(pair, messages):
                said = tuple(msgspec.convert(_renamed(msgspec.to_builtins(one), names), type(one)) for one in messages)
                return Queue(self.place(pair, names), said)
            case Timers(timers):
                return Timers(tuple(sorted(self.place(one, names) for one in timers)))
            case (kind, ground) if kind == GROUND:
                return (GROUND, ground.renamed(names))
        return held


def _renamed(held: Any, names: Mapping[str, str]) -> Any:
    if isinstance(held, str):
        return names.get(held, held)
    if isinstance(held, dict):
        return {_renamed(name, names): _renamed(one, names) for name, one in held.items()}
    return [_renamed(one, names) for one in held] if isinstance(held, list | tuple) else held
