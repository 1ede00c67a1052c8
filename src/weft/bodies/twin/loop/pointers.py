"""How the event loop is compiled, and the bare pointers it runs over.

An array that is passed around compiled code counts its references, at a price: two thirds of the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from weft.plan.compiled import compiled as _compiled

_POINTER: Any = types.CPointer
_cgutils: Any = cgutils  # not typed


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


def _lowest_bit(context: Any, number: Any) -> Any:
    del context, number

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        del target, signature
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


lowest_bit: Any = intrinsic(_lowest_bit)
"""The place of the lowest bit that is set in a whole number other than 0."""


def _fetch_early(context: Any, pointer: Any, at: Any) -> Any:
    del context, at

    def generate(target: Any, builder: Any, signature: Any, args: Any) -> Any:
        del signature
        small, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, small, small, small])
        function = _cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        where = builder.bitcast(builder.gep(args[0], [args[1]]), byte)
        # To be read, kept in all caches, data.
        builder.call(function, [where, ir.Constant(small, 0), ir.Constant(small, 3), ir.Constant(small, 1)])
        return target.get_dummy_value()

    return types.void(pointer, types.int64), generate


fetch_early: Any = intrinsic(_fetch_early)
"""Has a cache line of the memory brought near, for it will be asked for soon; wherever that is, nothing fails."""


def compiled(function: Any) -> Any:
    """Compiled on first use and kept on disk; types are left to numba."""
    return _compiled(function)


def inlined(function: Any) -> Any:
    """As `compiled`, and part of whatever calls it."""
    return _compiled(function, forceinline=True)
