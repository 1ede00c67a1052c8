"""How far has an input been read? A position: one number, or one for each partition; 0 is the beginning of any.

Only a channel or a source knows what its numbers count (segments, records, offsets). Everybody else keeps positions,
compares them here, and gives them back.
"""

from __future__ import annotations

from typing import Any

Position = int | dict[str, int]
BEGINNING: Position = 0
# Keys of an offset as Spark writes it down; older checkpoints call a position so, too.
POSITION, TICK = "segment", "tick"


def as_position(value: Any) -> Position:
    """A position that was written down as JSON."""
    return {str(name): int(at) for name, at in value.items()} if isinstance(value, dict) else int(value)


def later(one: Position, other: Position) -> Position:
    """The least position that has passed all that either of two has passed."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    first, second = _by_partition(one), _by_partition(other)
    return {name: max(first.get(name, 0), second.get(name, 0)) for name in sorted(first.keys() | second.keys())}


def earlier(one: Position, other: Position) -> Position:
    """The greatest position that has passed nothing but what both of two have passed."""
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other)
    first, second = _by_partition(one), _by_partition(other)
    return {name: min(first[name], second[name]) for name in sorted(first.keys() & second.keys())}


def reaches(one: Position, other: Position) -> bool:
    """True if all that lies before `other` lies before `one`, too."""
    if isinstance(one, int) and isinstance(other, int):
        return one >= other
    first = _by_partition(one)
    return all(first.get(name, 0) >= at for name, at in _by_partition(other).items())


def _by_partition(position: Position) -> dict[str, int]:
    if isinstance(position, dict):
        return position
    if position != BEGINNING:
        raise TypeError(f"position {position} of a whole stream is compared with one by partition")
    return {}
