"""Memory that is laid out piece by piece and then becomes two flat arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.bodies.twin.loop.columns import Floats, Ints

WRAP = 1 << 64
LINE = 8  # numbers in a cache line


def aligned(size: int) -> Ints:
    """An array that begins with a cache line."""
    wide = np.empty(size + LINE, np.int64)
    skip = -(wide.ctypes.data // 8) % LINE
    return wide[skip : skip + size]


class Arena:
    """Gives out rows of whole numbers and of floats; a row's offset is its handle."""

    def __init__(self, scalars: int) -> None:
        self._values: dict[int, int] = {}
        self._arrays: list[tuple[int, Ints]] = []
        self._chains: list[tuple[int, int, int, int]] = []
        self._size = scalars
        self.x: list[float] = []

    def rows(self, size: int, fill: int = 0) -> int:
        """So many numbers."""
        at = self._size
        self._size += -(-size // LINE) * LINE
        if fill:
            self._arrays.append((at, np.full(size, fill, np.int64)))
        return at

    def array(self, values: Iterable[int] | Ints) -> int:
        """Given numbers, in order."""
        held = values if isinstance(values, np.ndarray) else np.array(list(values), np.int64)
        at = self.rows(len(held))
        self._arrays.append((at, held))
        return at

    def floats(self, *values: float) -> int:
        """Given floats, in order; their place in `x`."""
        self.x.extend(values)
        return len(self.x) - len(values)

    def set(self, handle: int, column: int, value: int) -> None:
        """Writes one number; what needs 64 bits without sign keeps its bits."""
        self._values[handle + column] = value - WRAP if value >= WRAP // 2 else value

    def get(self, at: int) -> int:
        """Reads what was written."""
        return self._values.get(at, 0)

    def scalars(self, values: dict[int, int]) -> None:
        """Writes scalars of the run."""
        self._values.update(values)

    def chain(self, first: int, n: int, size: int, column: int) -> None:
        """Links rows to a list, each to the one behind it, the last to nobody."""
        self._chains.append((first, n, size, column))

    def built(self) -> tuple[Ints, Floats]:
        """The two arrays."""
        m = aligned(self._size)
        m[:] = 0
        for at, values in self._arrays:
            m[at : at + len(values)] = values
        m[np.fromiter(self._values.keys(), np.int64)] = np.fromiter(self._values.values(), np.int64)
        for first, n, size, column in self._chains:
            m[first + column : first + n * size : size] = first + size * np.arange(1, n + 1)
            m[first + (n - 1) * size + column] = -1
        return m, np.array(self.x, np.float64)
