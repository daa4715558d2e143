"""An emulator as something to play on: many steps in one compiled call, or one after the other.

If the emulator's game is compiled code, a call plays many steps. Whether it is changes the speed,
never what is played: the same kernels decide, on the same draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.config.protocols import Protocol as Rules
from pixelpong.env.native import NativeConsole, NotCoveredError
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import pack_field
from pixelpong.play.deciders import LOOK, Compiled, Decider


class Game:
    """A game that goes on.

    Attributes:
        emulator: that is played on; code that resets it or sets its state must tell the decider.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._width = 2 + emulator.protocol.max_frame_skip
        if (console := emulator.native) is not None:
            actions = np.zeros(emulator.protocol.max_frame_skip, np.uint8)
            record = _describe(console, emulator.protocol, actions)
            self._compiled: Compiled = record, actions, console.machine["field"][0]

    def draw(self, rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
        """The uniform numbers of some steps, a row each: what chooses the action, what chooses the
        number of frames, and each frame's coin. One row more, which no numbers are drawn for, only
        looks (`LOOK`).
        """
        draws = np.full((steps + 1, self._width), LOOK)
        rng.random(out=draws[:steps])
        return draws

    def play(self, decider: Decider, draws: NDArray[np.float64]) -> int:
        """Play on until the episode is over, the draws are used up or the decider has no room.

        Args:
            decider: plays, and writes its steps down.
            draws: from `draw`.

        Returns:
            How many steps were played, at least one.

        """
        before = decider.num_steps
        decider.make_room()
        if self.emulator.native is None:
            self._play_step_by_step(decider, draws)
        else:
            self._play_compiled(decider, draws)
        return decider.num_steps - before

    def _play_compiled(self, decider: Decider, draws: NDArray[np.float64]) -> None:
        emulator, memory, before = self.emulator, decider.memory, decider.num_steps
        memory["held"], memory["num_frames"] = emulator.held, emulator.num_frames
        decider.play(self._compiled, draws)
        emulator.held, emulator.num_frames = int(memory["held"][0]), int(memory["num_frames"][0])
        if fault := int(memory["fault"][0]):
            # The last decision stands; ALE emulates it, and all that follow.
            memory["fault"] = 0
            emulator.turn_to_ale(NotCoveredError.from_stop(-fault))
            row = draws[decider.num_steps - before - 1, 1:].tolist()
            reward = emulator.step(int(memory["wanted"][0]), row)
            decider.note(reward, is_over=emulator.is_over)

    def _play_step_by_step(self, decider: Decider, draws: NDArray[np.float64]) -> None:
        emulator = self.emulator
        for row in draws.tolist():  # Python reads a float from a list much faster
            action = decider.decide(pack_field(emulator.screen), row[0])
            if row[0] == LOOK:
                return
            reward = emulator.step(action, row[1:])
            decider.note(reward, is_over=emulator.is_over)
            if decider.is_over:
                return


def _describe(console: NativeConsole, rules: Rules, actions: NDArray[np.uint8]) -> NDArray[Any]:
    game = np.zeros(1, kernels.GAME)
    fewest, most = rules.frame_skips
    game[0] = (
        console.address, console.machine.ctypes.data, actions.ctypes.data,
        fewest, most, rules.max_frames, rules.sticky,
    )  # fmt: skip
    return game
