"""Bare pointers for the event loop: an array that is passed around compiled code counts its references, at a price."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _pointer(kind: Any) -> Any:
    def typed(context: Any, address: Any) -> Any:
        del context, address

        def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], target.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.uintp), generate

    return typed


@intrinsic
def ints(context: Any, address: Any) -> Any:
    """Whole numbers at an address; the caller keeps the array alive."""
    return _pointer(types.int64)(context, address)


@intrinsic
def floats(context: Any, address: Any) -> Any:
    """Floats at an address; the caller keeps the array alive."""
    return _pointer(types.float64)(context, address)
