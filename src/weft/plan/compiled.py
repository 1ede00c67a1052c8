"""How are inner loops made fast? By numba, compiled once and kept; callers keep their types."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], forceinline: bool = False) -> Callable[P, R]:
    """The same function as machine code, made at first use; what it calls must be compiled too.

    What is kept on disk is stale when any file of the function's folder has changed: numba looks only at the file of
    the function itself, and would go on calling former versions of others.
    """
    made: Any = njit(cache=True, error_model="numpy", forceinline=forceinline)(function)
    with suppress(AttributeError):
        made._cache._cache_file._source_stamp = _stamp(function.__module__.rpartition(".")[0])
    return cast("Callable[P, R]", made)


@cache
def _stamp(package: str) -> tuple[float, int]:
    folder: Any = files(package)
    found = [one.stat() for one in folder.iterdir() if one.name.endswith(".py")]
    return max(one.st_mtime for one in found), sum(one.st_size for one in found)
