"""Our emulator, called from compiled code: steps one after the other, without Python and its lock.

The machine is a record of one's own (`pixelpong.atari.machine`), the function an address
(`pixelpong.env.native.NativeGame.address`). Both are arguments, so that the kernel can be kept:
they lie elsewhere in every process.

Covered: the call, and steps that nobody looks at, to measure the emulator alone.
Not covered: observing and deciding.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pixelpong.compiling import compiled

_intrinsic: Any = intrinsic


@_intrinsic
def call_play_frames(  # type: ignore[no-untyped-def]
    typing_context, address, machine, actions, count, draws
):
    """Call ``play_frames``, see `pixelpong.env.cartridge.play_frames`; all numbers are int64.

    Args:
        typing_context: Numba's own.
        address: of the function.
        machine: address of the record; what lies there is changed.
        actions: address of the held actions, a byte a frame.
        count: frames.
        draws: what is drawn of the last frame.
    """

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(number, [pointer, pointer, number, number])
        function = builder.inttoptr(args[0], kind.as_pointer())
        addresses = [builder.inttoptr(each, pointer) for each in args[1:3]]
        numbers = [builder.trunc(each, number) for each in args[3:]]
        return builder.sext(builder.call(function, addresses + numbers), ir.IntType(64))

    return types.int64(*[types.int64] * 5), generate


@compiled()
def play_steps(address, machine, start, actions, frame_skip, draws):  # type: ignore[no-untyped-def]
    """Play step after step; where a game ends, the next one begins.

    Args:
        address: of ``play_frames``.
        machine: [·] uint8, the record; changed.
        start: [·] uint8, its first part at the start of a game.
        actions: [steps · frame_skip] uint8, what is held in each frame.
        frame_skip: frames of a step.
        draws: what is drawn of a step's last frame: DRAW_NOTHING, DRAW_FIELD or DRAW_PICTURE.

    Returns:
        Points won less points lost; and 0, or if the machine met what it does not cover, its stop
        code (`pixelpong.atari.machine`).
    """
    reward = 0
    for step in range(len(actions) // frame_skip):
        held = actions.ctypes.data + step * frame_skip
        answer = call_play_frames(address, machine.ctypes.data, held, frame_skip, draws)
        if answer < 0:
            return reward, -answer
        reward += (answer & 0xFF) - 128
        if answer >> 8 & 1:
            machine[: len(start)] = start
    return reward, 0
