"""How are inner loops made fast? By numba, compiled once and kept; callers keep their types."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
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
        made._cache._cache_file._source_stamp = _stamp(Path(function.__code__.co_filename).parent)
    return cast("Callable[P, R]", made)


@cache
def _stamp(folder: Path) -> tuple[float, int]:
    files = [path.stat() for path in folder.glob("*.py")]
    return max(one.st_mtime for one in files), sum(one.st_size for one in files)
