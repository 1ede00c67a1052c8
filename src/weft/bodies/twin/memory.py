"""How the event loop is compiled, and the bare pointers it runs over.

An array that is passed around compiled code counts its references, at a price: two thirds of the time.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.extending import intrinsic

_POINTER: Any = types.CPointer


def _pointer(kind: Any) -> Any:
    def typed(context: Any, address: Any) -> Any:
        del context, address

        def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], target.get_value_type(signature.return_type))

        return _POINTER(kind)(types.uintp), generate

    return typed


ints: Any = intrinsic(_pointer(types.int64))
"""Whole numbers at an address; the caller keeps the array alive."""

floats: Any = intrinsic(_pointer(types.float64))
"""Floats at an address; the caller keeps the array alive."""


def _stamp() -> tuple[float, int]:
    files = [path.stat() for path in Path(__file__).parent.glob("*.py")]
    return max(one.st_mtime for one in files), sum(one.st_size for one in files)


_STAMP = _stamp()


def compiled(function: Any, forceinline: bool = False) -> Any:
    """Compiled on first use and kept on disk; what is kept is stale when any file of this folder has changed.

    Numba looks only at the file of a function itself, and would go on calling former versions of others.
    """
    made: Any = njit(cache=True, error_model="numpy", forceinline=forceinline)(function)
    with contextlib.suppress(AttributeError):
        made._cache._cache_file._source_stamp = _STAMP
    return made


def inlined(function: Any) -> Any:
    """As `compiled`, and part of whatever calls it."""
    return compiled(function, forceinline=True)
