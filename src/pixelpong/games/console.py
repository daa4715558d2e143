"""The rules of games, and consoles that play by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import DRAW_PICTURE
from pixelpong.config.protocols import Protocol
from pixelpong.env.cartridge import SERVE
from pixelpong.env.duel import MODE
from pixelpong.env.field import DRAW_FIELD, PONG_MACHINE
from pixelpong.env.native import load_game, start_of
from pixelpong.items import STAY
from pixelpong.kernels import RULES, aligned_zeros
from pixelpong.kernels.games import Console

FIRE = 1  # in Gymnasium's numbers


@dataclass(frozen=True)
class Rules:
    """The rules of a game; the console plays 60 frames a second."""

    frame_skips: tuple[int, int]  # the fewest and the most frames of a step
    max_frames: int  # the number of frames after which an episode is cut off
    # The probability that a frame keeps the held action: right side, left side.
    sticky: tuple[float, float] = (0.0, 0.0)
    num_sides: int = 1  # 1: the console plays the left side
    mode: int = 0  # number of the game on the cartridge, see `NativeGame.switch_on`
    fires_first: bool = False  # the button is pressed in the first frame of an episode
    max_waits: int = 0  # the most frames without a press at the start of an episode


def rules_of(protocol: Protocol, num_sides: int = 1) -> Rules:
    """The rules of a protocol, for one or two sides."""
    sticky, mode = (protocol.sticky, protocol.sticky), MODE if num_sides == 2 else 0
    return Rules(protocol.frame_skips, protocol.max_frames, sticky, num_sides, mode)


def make_console(
    rules: Rules,
    *,
    has_pictures: bool = False,
    takes_two: bool = False,
    start: NDArray[np.uint8] | None = None,
) -> Console:
    """Make a console.

    Args:
        rules: the rules of its games.
        has_pictures: whether it draws pictures; otherwise it draws fields.
        takes_two: whether the pictures of the last two frames of a step are taken.
        start: the machine at the start of a game, as bytes; by default the cartridge's start.
    """
    game = load_game()
    if start is None:
        start = start_of(game, rules.mode).view(np.uint8)
    size, at = PONG_MACHINE.itemsize, PONG_MACHINE.fields["picture"][1]  # type: ignore[index]
    begin = -at % 64  # pictures are read as vectors
    first, second = (
        aligned_zeros(64 + size, dtype=np.uint8)[begin : begin + size] for _ in range(2)
    )
    first[:] = second[:] = start
    record = np.zeros(1, RULES)
    record["play_frames"] = game.address
    record["draws"] = DRAW_PICTURE if has_pictures else DRAW_FIELD
    record["takes_two"] = takes_two
    record["fewest_frames"], record["most_frames"] = rules.frame_skips
    record["max_frames"], record["sticky"] = rules.max_frames, rules.sticky
    record["first_action"] = FIRE if rules.fires_first else 0
    record["num_sides"] = rules.num_sides
    record["idle"] = SERVE if rules.num_sides == 2 else STAY
    machines = first, second if takes_two else first
    actions = aligned_zeros(max(rules.frame_skips[1], rules.max_waits, 1), dtype=np.uint8)
    return Console(
        record,
        machines,
        addresses=(machines[0].ctypes.data, machines[1].ctypes.data),
        start=start,
        actions=actions,
        actions_address=actions.ctypes.data,
        moves=aligned_zeros(2, dtype=np.int64),
        field=first.view(PONG_MACHINE)["field"][0],
    )
