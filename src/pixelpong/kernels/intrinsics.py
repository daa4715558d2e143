"""Processor instructions that numba lacks.

Kernels in other files call these. Numba's cache would not notice a change here, so the meaning of
a name never changes; anything new gets a new name.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_intrinsic: Any = intrinsic


@_intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """The index of the lowest set bit of a uint64; `bits` must not be 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@_intrinsic
def reverse(typing_context: Any, bits: Any) -> Any:
    """A uint64 with its bits in reverse order."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitreverse(args[0])

    return types.uint64(types.uint64), generate


@_intrinsic
def call_play_frames(  # type: ignore[no-untyped-def]
    typing_context, address, machine, actions, num_frames, draws
):
    """Call the console's function, see `pixelpong.kernels.records.GAME`; all numbers are int64."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(number, [pointer, pointer, number, number])
        function = builder.inttoptr(args[0], kind.as_pointer())
        addresses = [builder.inttoptr(each, pointer) for each in args[1:3]]
        numbers = [builder.trunc(each, number) for each in args[3:]]
        return builder.sext(builder.call(function, addresses + numbers), ir.IntType(64))

    return types.int64(*[types.int64] * 5), generate


@_intrinsic
def call_shrink(  # type: ignore[no-untyped-def]
    typing_context, address, first, second, of_first, of_second, out, scratch
):
    """Call the function of `pixelpong.atari.shrinking`; all numbers are addresses, int64."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer] * 6)
        function = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(function, [builder.inttoptr(each, pointer) for each in args[1:]])
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(*[types.int64] * 7), generate
