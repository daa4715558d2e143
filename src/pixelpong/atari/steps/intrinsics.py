"""Processor instructions that numba lacks.

Kernels in other files call these. An edit here compiles all kernels again, because the name of the
cache's folder is a hash of this file, too (`atari.steps.compiling`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pixelpong.atari.machine.record import MACHINE

_intrinsic: Any = intrinsic


@_intrinsic
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """Return the index of the lowest set bit of a uint64; `bits` must not be 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@_intrinsic
def reverse(typing_context: Any, bits: Any) -> Any:
    """Reverse the order of a uint64's bits."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitreverse(args[0])

    return types.uint64(types.uint64), generate


# The results of `play_frames`: their offsets in the machine's record, and their sizes in bits.
_RESULTS = tuple(
    (MACHINE.fields[name][1], 8 * MACHINE.fields[name][0].itemsize)  # type: ignore[index]
    for name in ("stop", "frames", "reward", "is_over", "may_end", "lives")
)


@_intrinsic
def call_play_frames(  # type: ignore[no-untyped-def]
    typing_context, address, machine, actions, num_frames, draws
):
    """Call the console's function, see `atari.steps.records.RULES`; all numbers are int64.

    Returns why it stopped, the frames played, the reward, whether the game is over, whether the
    next frame may be the last, and the lives.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, number, number])
        function = builder.inttoptr(args[0], kind.as_pointer())
        addresses = [builder.inttoptr(each, pointer) for each in args[1:3]]
        numbers = [builder.trunc(each, number) for each in args[3:]]
        builder.call(function, addresses + numbers)
        return _read_results(context, builder, signature, addresses[0])

    return types.UniTuple(types.int64, len(_RESULTS))(*[types.int64] * 5), generate


@_intrinsic
def set_turn(typing_context, machine, turn):  # type: ignore[no-untyped-def]
    """Set how far a press turns a paddle; the machine's address and the number are int64."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        number = ir.IntType(32)
        at = MACHINE.fields["turn"][1]  # type: ignore[index]
        address = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        address = builder.gep(address, [ir.Constant(number, at)])
        address = builder.bitcast(address, number.as_pointer())
        builder.store(builder.trunc(args[1], number), address, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@_intrinsic
def get_second(typing_context, machine):  # type: ignore[no-untyped-def]
    """Return the second player's reward; the machine's address is an int64."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        at = MACHINE.fields["second"][1]  # type: ignore[index]
        address = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        address = builder.gep(address, [ir.Constant(ir.IntType(32), at)])
        address = builder.bitcast(address, ir.IntType(32).as_pointer())
        return builder.sext(builder.load(address, align=1), ir.IntType(64))

    return types.int64(types.int64), generate


@_intrinsic
def call_start_game(typing_context, address, machine):  # type: ignore[no-untyped-def]
    """Call ``start_game``, or only read its results if its address is 0.

    Returns what `call_play_frames` returns.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer])
        function = builder.inttoptr(args[0], kind.as_pointer())
        address = builder.inttoptr(args[1], pointer)
        is_called = builder.icmp_unsigned("!=", args[0], ir.Constant(ir.IntType(64), 0))
        with builder.if_then(is_called):
            builder.call(function, [address])
        return _read_results(context, builder, signature, address)

    return types.UniTuple(types.int64, len(_RESULTS))(types.int64, types.int64), generate


def _read_results(context: Any, builder: Any, signature: Any, machine: Any) -> Any:
    """Read the results of a machine's last frames."""
    number, results = ir.IntType(32), []
    for offset, bits in _RESULTS:
        address = builder.gep(machine, [ir.Constant(number, offset)])
        address = builder.bitcast(address, ir.IntType(bits).as_pointer())
        widen = builder.sext if bits == 32 else builder.zext
        results.append(widen(builder.load(address, align=1), ir.IntType(64)))
    return context.make_tuple(builder, signature.return_type, results)


@_intrinsic
def call_shrink(  # type: ignore[no-untyped-def]
    typing_context, address, first, second, out, scratch
):
    """Call the function of `atari.machine.shrinking`; all numbers are addresses, int64."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer] * 4)
        function = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(function, [builder.inttoptr(each, pointer) for each in args[1:]])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate
