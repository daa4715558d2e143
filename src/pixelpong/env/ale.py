"""Atari Pong on ALE: the reference for the native emulator, and its replacement if it can't play.

ALE's sticky actions, frame skip and frame limit are off, so a game is a function of its state and
of one action per frame. States are the console's records (`pixelpong.atari.machine`), not ALE's, so
either emulator can continue a game of the other.

Covered: frames, states, the picture as palette indices, the speed of ALE alone.
Not covered: reading a state (`pixelpong.env.ale_state`), steps and sticky actions.
"""

from __future__ import annotations

import time
from typing import Any

import ale_py
import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.check import fault_in
from pixelpong.atari.machine import DRAW_NOTHING, ROWS, WIDTH
from pixelpong.env.ale_state import is_between_frames, read_state, write_state
from pixelpong.env.rom import read_rom, rom_path
from pixelpong.errors import EmulatorError, expected
from pixelpong.items import DOWN, UP

_ACTIONS = tuple(
    each.value
    for each in (
        ale_py.Action.NOOP, ale_py.Action.FIRE, ale_py.Action.RIGHT, ale_py.Action.LEFT,
        ale_py.Action.RIGHTFIRE, ale_py.Action.LEFTFIRE,
    )
)  # fmt: skip
"""ALE's numbers for Gymnasium's actions 0 to 5."""


class AleConsole:
    """A console with Pong in it, reused for every game.

    Attributes:
        picture: [210, 160] uint8 palette indices of the last frame drawn; overwritten.
    """

    name = "ale"

    def __init__(self) -> None:
        """Switch it on and start a game.

        Raises:
            EmulatorError: Pong's ROM is missing or is not the expected one.
        """
        self.picture = np.zeros((ROWS, WIDTH), np.uint8)
        self._switch_on()
        # A reset takes milliseconds and always ends in the same state, so it is done once. A
        # state does not contain the picture.
        self._start_data = self._ale.cloneState().serialize()
        self._start = self._ale.cloneState()
        self._start_picture: NDArray[np.uint8] = self._ale.getScreen()
        self.reset()

    @property
    def is_over(self) -> bool:
        """Whether a side has 21 points."""
        return bool(self._ale.game_over())

    def reset(self) -> None:
        """Start a game."""
        self._recover()
        self._ale.restoreState(self._start)
        self.picture[:] = self._start_picture

    def run(self, actions: bytes, draws: int) -> tuple[int, bool, int]:
        """Play frames; see `pixelpong.env.native.NativeConsole.run`."""
        ale, reward, frames = self._ale, 0, 0
        is_over = bool(ale.game_over())
        for action in actions:
            if is_over:
                break
            reward += ale.act(_ACTIONS[action])
            is_over = bool(ale.game_over())
            frames += 1
        if frames:
            self._has_frame_end = False
            if draws != DRAW_NOTHING:
                ale.getScreen(self.picture)
        return reward, is_over, frames

    def get_state(self) -> NDArray[np.void]:
        """Everything the future depends on: [1] STATE.

        Raises:
            EmulatorError: ALE is in a state that Pong never reaches.
        """
        state = read_state(self._ale.cloneState().serialize())
        self._has_frame_end = True
        return state

    def set_state(self, state: NDArray[np.void]) -> None:
        """Continue from a state. `picture` does not change before the next frame.

        Args:
            state: [1] STATE, from any emulator; not changed.

        Raises:
            EmulatorError: it is not a state between two frames, or belongs to the game for two.
        """
        fault = fault_in(state)
        if not fault and state["resistance"][0, 2:].any():
            fault = "one of the game for two, which the native emulator plays"
        if fault:
            advice = "take one with get_state()"
            raise EmulatorError(expected("a state of the console", fault, advice))
        self._recover()
        self._ale.restoreState(ale_py.ALEState(write_state(state, self._start_data)))

    def _switch_on(self) -> None:
        self._ale = _load()
        self._ale.reset_game()
        self._has_frame_end = True

    def _recover(self) -> None:
        """Switch the console off and on if its last frame did not end.

        A made-up state can lead the processor astray. ALE then gives the frame up after 25,000
        instructions, and continues it with the next one, whatever state is restored.
        """
        if not self._has_frame_end and not is_between_frames(self._ale.cloneState().serialize()):
            self._switch_on()
        self._has_frame_end = True


def run_bare(seconds: float, rng: np.random.Generator) -> tuple[int, float]:
    """Step ALE alone at frame skip 4, with random moves and no picture: the unit of all speeds.

    Args:
        seconds: the least time to run.
        rng: draws the moves.

    Returns:
        Steps done and seconds taken.
    """
    ale = _load(frame_skip=4)
    ale.reset_game()
    start = ale.cloneState()
    moves = [_ACTIONS[action] for action in rng.choice([UP, DOWN], 1000).tolist()]
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for move in moves:
            ale.act(move)
            if ale.game_over():
                ale.restoreState(start)
        steps += len(moves)
    return steps, time.perf_counter() - begin


def _load(frame_skip: int = 1) -> Any:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", frame_skip)
    ale.setInt("max_num_frames_per_episode", 0)  # no limit: the player counts the frames
    read_rom()  # checks it
    ale.loadROM(rom_path())
    return ale
