"""What Numba has no words for, as single instructions."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_instruction: Any = intrinsic


@_instruction
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set in a uint64; `bits` must not be 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@_instruction
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
