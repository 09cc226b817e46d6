"""How kernels are compiled: one decorator, the same flags everywhere.

Numba compiles a kernel when it is first called and keeps the machine code on disk, so that the next process loads it
in a fraction of a second. Kernels release the global interpreter lock. Only modules that hold kernels import this one,
and they are themselves imported inside functions, because importing Numba takes about half a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

int64 = cast("type[int]", np.int64)
"""NumPy's 64-bit integer, which kernels need where Numba would pick another width; to a type checker it is an int."""


def compiled(function: F) -> F:
    """The function compiled to machine code at its first call, cached on disk, without the interpreter lock."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the memory for the cache line of ``array[index]`` now, because it will be read soon; changes nothing else."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        llvm_prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        for_reading, keep_close, data_cache = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(llvm_prefetch, [address, for_reading, keep_close, data_cache])
        return context.get_dummy_value()

    return types.void(array, index), generate


prefetch = cast("Callable[[Any, Any], None]", intrinsic(_prefetch))


def _pointer(typing_context: Any, address: Any) -> Any:
    """An address as a pointer, of which `numba.carray` makes an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


pointer = cast("Callable[[int], Any]", intrinsic(_pointer))
carray = cast("Callable[..., Any]", numba.carray)  # type: ignore[attr-defined]
"""An array that lies at a pointer, of a shape and a type."""


def addresses_of(arrays: Iterable[np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where arrays lie, and how long they are, flat: for a kernel that is called at every step and needs many of them.

    To hand over an array costs 0.15 microseconds, an address nothing: in the kernel number i is
    ``carray(pointer(given[2 * i]), (given[2 * i + 1],), dtype)``. Whoever calls must keep the arrays alive.
    """
    return np.array([(array.ctypes.data, array.size) for array in arrays], dtype=np.int64).ravel()


def inlined(function: F) -> F:
    """Like `compiled`, for a piece of a kernel that is too long to be inlined unless it says so."""
    return cast(F, numba.njit(cache=True, nogil=True, inline="always")(function))
