"""A game on an emulator: many steps in one compiled call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.config.protocols import Protocol as Rules
from pixelpong.env.cartridge import SERVE
from pixelpong.env.native import NativeConsole, not_covered
from pixelpong.env.pong import Emulator
from pixelpong.play.deciders import LOOK, Compiled, Decider


class Game:
    """A game in progress."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator  # code that resets it or sets its state must tell the decider
        self._width = 2 + emulator.protocol.max_frame_skip
        actions = np.zeros(emulator.protocol.max_frame_skip, np.uint8)
        record = _describe(emulator.console, emulator.protocol, actions)
        self._compiled: Compiled = record, actions, emulator.console.machine["field"][0]

    def draw(self, rng: np.random.Generator, steps: int, sides: int = 1) -> NDArray[np.float64]:
        """The uniform numbers of some steps, a row each.

        One chooses the action, one the number of frames, and the rest are the frames' coins. A last
        row, without random numbers, only looks (`LOOK`). With 2 `sides`, rows hold the numbers of
        both, the left one's last.
        """
        draws = np.full((steps + 1, sides * self._width), LOOK)
        rng.random(out=draws[:steps])
        return draws

    def play(self, deciders: Sequence[Decider], draws: NDArray[np.float64]) -> int:
        """Play until the episode is over, the draws are used up or a decider has no room.

        The right side's decider is first; in the game for two, the left one's is second. Returns
        the number of steps played, at least one.
        """
        emulator, decider = self.emulator, deciders[0]
        memory, before = decider.memory, decider.num_steps
        for side, each in enumerate(deciders):
            each.make_room()
            each.memory["held"] = emulator.held >> 4 * side & 15
            each.memory["num_frames"] = emulator.num_frames
        width = len(deciders) * self._width
        decider.play(self._compiled, np.ascontiguousarray(draws[:, :width]), *deciders[1:])
        held = [int(each.memory["held"][0]) << 4 * side for side, each in enumerate(deciders)]
        emulator.held, emulator.num_frames = sum(held), int(memory["num_frames"][0])
        if fault := int(memory["fault"][0]):
            raise not_covered(-fault)
        return decider.num_steps - before


def _describe(console: NativeConsole, rules: Rules, actions: NDArray[np.uint8]) -> NDArray[Any]:
    game = np.zeros(1, kernels.GAME)
    fewest, most = rules.frame_skips
    game[0] = (
        console.address, console.machine.ctypes.data, actions.ctypes.data,
        fewest, most, rules.max_frames, rules.sticky, SERVE if console.mode else 0,
    )  # fmt: skip
    return game
