"""How are search loops made fast? By numba, compiled once and kept; callers keep their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """The same function as machine code; what it calls must be compiled too."""
    return cast("Callable[P, R]", njit(cache=True, error_model="numpy")(function))
