"""How the event loop is compiled, and the bare pointers it runs over.

An array that is passed around compiled code counts its references, at a price: two thirds of the time.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from weft.plan.compiled import compiled as _compiled

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


def compiled(function: Any) -> Any:
    """Compiled on first use and kept on disk; types are left to numba."""
    return _compiled(function)


def inlined(function: Any) -> Any:
    """As `compiled`, and part of whatever calls it."""
    return _compiled(function, forceinline=True)
