"""A game on an emulator: many steps in one compiled call, or one after the other.

If the emulator's game is compiled code, a call plays many steps. This changes the speed, never the
result: the same kernels decide, on the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.config.protocols import Protocol as Rules
from pixelpong.env.cartridge import SERVE
from pixelpong.env.duel import no_game_for_two
from pixelpong.env.native import NativeConsole, NotCoveredError
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import pack_field
from pixelpong.play.deciders import LOOK, Compiled, Decider


class Game:
    """A game in progress.

    Attributes:
        emulator: plays the game; code that resets it or sets its state must tell the decider.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._width = 2 + emulator.protocol.max_frame_skip
        if (console := emulator.native) is not None:
            actions = np.zeros(emulator.protocol.max_frame_skip, np.uint8)
            record = _describe(console, emulator.protocol, actions)
            self._compiled: Compiled = record, actions, console.machine["field"][0]

    def draw(self, rng: np.random.Generator, steps: int, sides: int = 1) -> NDArray[np.float64]:
        """The uniform numbers of some steps, a row each: one chooses the action, one the number of
        frames, and the rest are the frames' coins. A last row, without random numbers, only looks
        (`LOOK`).

        Args:
            rng: its state moves on.
            steps: T.
            sides: 2 for rows that will do for both sides, the left one's numbers last.
        """
        draws = np.full((steps + 1, sides * self._width), LOOK)
        rng.random(out=draws[:steps])
        return draws

    def play(self, deciders: Sequence[Decider], draws: NDArray[np.float64]) -> int:
        """Play until the episode is over, the draws are used up or a decider has no room.

        Args:
            deciders: play, and record their steps: that of the right side, and in the game for two
                that of the left one.
            draws: from `draw`.

        Returns:
            The number of steps played, at least one.

        Raises:
            EmulatorError: the native emulator cannot go on with the game for two.
        """
        before = deciders[0].num_steps
        for each in deciders:
            each.make_room()
        if self.emulator.native is None:
            self._play_step_by_step(deciders[0], draws)
        else:
            width = len(deciders) * self._width
            self._play_compiled(deciders, np.ascontiguousarray(draws[:, :width]))
        return deciders[0].num_steps - before

    def _play_compiled(self, deciders: Sequence[Decider], draws: NDArray[np.float64]) -> None:
        emulator, decider = self.emulator, deciders[0]
        memory, before = decider.memory, decider.num_steps
        for side, each in enumerate(deciders):
            each.memory["held"] = emulator.held >> 4 * side & 15
            each.memory["num_frames"] = emulator.num_frames
        decider.play(self._compiled, draws, *deciders[1:])
        held = [int(each.memory["held"][0]) << 4 * side for side, each in enumerate(deciders)]
        emulator.held, emulator.num_frames = sum(held), int(memory["num_frames"][0])
        if memory["fault"][0] and len(deciders) > 1:
            raise no_game_for_two(NotCoveredError.from_stop(-int(memory["fault"][0])))
        if fault := int(memory["fault"][0]):
            # The last decision remains valid; ALE emulates it and all later ones.
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
        fewest, most, rules.max_frames, rules.sticky, SERVE if console.mode else 0,
    )  # fmt: skip
    return game
