"""An exact Atari Pong, played step by step, with sticky actions and snapshots.

The console plays single frames and uses no random numbers. Whether an action sticks is decided once
per frame, with numbers that the caller draws. The distribution is that of ``ALE/Pong-v5``, and a
game is a pure function of (state, actions, uniforms): `get_state` and `set_state` move it to any
process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.games import Games
from pixelpong.atari.games.rules import Rules
from pixelpong.atari.games.views import NOTHING, View
from pixelpong.atari.machine.palette import PALETTE
from pixelpong.atari.steps.records import GAME
from pixelpong.atari.steps.stepping import RESET, REWARD
from pixelpong.config.protocols import Protocol
from pixelpong.errors import ConfigError
from pixelpong.pong.native import rules_of

NUM_ACTIONS = 6
_EMPTY = np.zeros((1, 0, 0), np.uint8)  # the observation


class SteppedGame:
    """A game that the caller plays step by step, reused for every episode."""

    def __init__(self, rules: Rules) -> None:
        """Start a game with these rules."""
        self._games = Games(1, rules, View(NOTHING, keeps_frames=True))
        self._game = self._games.rows[0]
        self.reset()

    def reset(self) -> None:
        """Start an episode, always from the same state."""
        self._games.orders.moves[0] = RESET
        self._step()

    def _step(self) -> int:
        """Carry out the orders for a step and return the reward."""
        return int(self._games.step(_EMPTY, _EMPTY).numbers[REWARD, 0])

    @property
    def num_frames(self) -> int:
        """The frames of the episode so far."""
        return int(self._game["num_frames"])

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended, by its last point or by the frame limit."""
        return not self._game["is_on"]

    @property
    def screen(self) -> NDArray[np.uint8]:
        """The newest frame, [210, 160] palette indices, overwritten at every step."""
        screen: NDArray[np.uint8] = self._games.frames[0]
        return screen


class Emulator(SteppedGame):
    """A game against the built-in player; `screen` is undefined from `set_state` to a step."""

    def __init__(self, protocol: Protocol) -> None:
        """Start a game by the rules of a protocol."""
        self.protocol = protocol
        super().__init__(rules_of(protocol))

    def step(self, action: int, uniforms: Sequence[float]) -> float:
        """Play one step with an action of ``ALE/Pong-v5`` and return the reward: −1, 0 or +1.

        `uniforms` has at least 1 + protocol.max_frame_skip numbers in [0, 1). The first chooses the
        frame skip if the protocol has several; each of the others decides at one frame whether the
        held action sticks.

        Raises:
            ConfigError: there are fewer numbers, or there is no such action.
        """
        if not 0 <= action < NUM_ACTIONS:
            raise ConfigError(f"An action is a number from 0 to {NUM_ACTIONS - 1}, not {action}.")
        count = 1 + self.protocol.max_frame_skip
        if len(uniforms) < count:
            raise ConfigError(f"A step needs at least {count} numbers, not {len(uniforms)}.")
        orders = self._games.orders
        orders.moves[0] = action
        orders.uniforms[0, 0, 1:] = uniforms[:count]  # the number at index 0 is for a network
        return float(self._step())

    def frame(self) -> NDArray[np.uint8]:
        """Return the newest frame in colour, [210, 160, 3] uint8; undefined if `screen` is."""
        return PALETTE[self.screen]

    def get_state(self) -> bytes:
        """Return everything the future depends on: a `GAME` and its console's state."""
        return self._games.rows.tobytes() + self._games.states.tobytes()

    def set_state(self, state: bytes) -> None:
        """Continue from `state`, which any emulator with the same protocol took in any process."""
        self._games.rows[:] = np.frombuffer(state, GAME, 1)
        self._games.states[0] = np.frombuffer(state, np.uint8, offset=GAME.itemsize)
