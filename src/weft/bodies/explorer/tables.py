"""Growing tables of numbers, in a form that the compiled part reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.explorer import kernel


class Table:
    """What operations make of values, in a form the compiled part reads and enlarges as need be."""

    def __init__(self) -> None:
        self.count = 0
        self.arrays = self._empty(1 << 12)

    @staticmethod
    def _empty(size: int) -> tuple[Any, Any, Any]:
        return np.full(size, -1, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int32)

    def put(self, value: int, op: int, after: int, program: int) -> None:
        """Notes what an operation makes of a value."""
        if 2 * self.count >= self.arrays[0].size:
            larger = self._empty(4 * self.arrays[0].size)
            kernel.rehash(*self.arrays, *larger)
            self.arrays = larger
        kernel.put(*self.arrays, (value << 31) | op, after, program)
        self.count += 1


class Columns:
    """Growing columns of numbers of equal length."""

    def __init__(self, count: int, fill: int = 0) -> None:
        self.fill, self.size = fill, 0
        self.arrays = [np.full(64, fill, np.int32) for _ in range(count)]

    def append(self, *numbers: int) -> int:
        """Adds a line; its place."""
        if self.size == self.arrays[0].size:
            self.arrays = [np.concatenate([one, np.full(one.size, self.fill, np.int32)]) for one in self.arrays]
        for array, number in zip(self.arrays, numbers, strict=True):
            array[self.size] = number
        self.size += 1
        return self.size - 1
