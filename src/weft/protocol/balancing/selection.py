"""Which operators may leave a site for a neighbour? (Neighbor §3.2, Listings 1 and 2, corrected)

Streams flow from child to parent, and an operator may run only where all its inputs pass. So operators may go to the
parent together with those here that read them, and to a child together with those here that they read, if all else
they read comes from that child.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec


class Streams(msgspec.Struct, frozen=True):
    """Which operators read which, for all queries; sources and sinks are operators too, that are pinned."""

    inputs: dict[str, tuple[str, ...]]
    pinned: frozenset[str] = frozenset()


class Selection:
    """The transfers of one site, which has a parent or none."""

    __slots__ = ("inputs", "parent", "pinned", "readers")

    def __init__(self, streams: Streams, parent: str) -> None:
        self.inputs: Mapping[str, tuple[str, ...]] = streams.inputs
        self.readers: Mapping[str, tuple[str, ...]] = _readers(streams.inputs)
        self.pinned = streams.pinned
        self.parent = parent

    def transfers(self, peer: str, here: Collection[str], below: Mapping[str, str]) -> list[tuple[str, ...]]:
        """Every set of operators that may go to a neighbour, each the least that one of them needs."""
        along = self.readers if peer == self.parent else self.inputs
        sets = {_closure(operator, along, here) for operator in here}
        return sorted(one for one in sets if self.may_go(one, peer, here, below))

    def may_go(self, those: Collection[str], peer: str, here: Collection[str], below: Mapping[str, str]) -> bool:
        """Whether these operators, which are here, may leave for a neighbour, and every stream still flows upwards."""
        if any(operator in self.pinned for operator in those):
            return False
        if peer == self.parent:
            left = (reader for operator in those for reader in self.readers[operator] if reader in here)
            return all(reader in those for reader in left)
        read = (source for operator in those for source in self.inputs[operator] if source not in those)
        return all(below.get(source) == peer for source in read)


def _readers(inputs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """By operator, those that read it."""
    found: dict[str, list[str]] = {operator: [] for operator in inputs}
    for reader, read in inputs.items():
        for operator in read:
            found[operator].append(reader)
    return {operator: tuple(readers) for operator, readers in found.items()}


def _closure(operator: str, along: Mapping[str, Iterable[str]], within: Collection[str]) -> tuple[str, ...]:
    found, todo = {operator}, [operator]
    while todo:
        for one in along[todo.pop()]:
            if one in within and one not in found:
                found.add(one)
                todo.append(one)
    return tuple(sorted(found))
