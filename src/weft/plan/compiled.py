"""How are inner loops made fast? By numba, compiled once and kept; callers keep their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], forceinline: bool = False) -> Callable[P, R]:
    """The same function as machine code, made at first use; what it calls must be compiled too.

    What is kept on disk is stale when any file of the function's part of Weft (`weft.plan`, `weft.bodies.twin`) has
    changed: numba looks only at the file of the function itself, and would go on calling former versions of others.
    """
    made: Any = njit(cache=True, error_model="numpy", forceinline=forceinline)(function)
    with suppress(AttributeError):
        made._cache._cache_file._source_stamp = _stamp(_part(function.__module__))
    return cast("Callable[P, R]", made)


def _part(module: str) -> str:
    """The package whose compiled functions call one another: `weft.plan`, which others may call, or a body."""
    names = module.split(".")
    if names[0] != "weft":
        return "weft.plan"
    return ".".join(names[: 3 if names[:2] == ["weft", "bodies"] else 2])


@cache
def _stamp(package: str) -> tuple[float, int]:
    found = [one.stat() for one in _sources(files(package))]
    return max(one.st_mtime for one in found), sum(one.st_size for one in found)


def _sources(folder: Any) -> Iterator[Any]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _sources(one)
        elif one.name.endswith(".py"):
            yield one
