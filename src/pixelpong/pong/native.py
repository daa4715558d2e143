"""Atari Pong in native code: the console that plays all games.

On first use the cartridge is read from the ROM in ale-py, translated and compiled, which takes a
second; later processes load the code from the cache in milliseconds. The compiled code contains the
game's logic and stays on the user's machine.

Other compiled code can call the same function without holding the GIL, through `NativeGame.address`
and with its own machine (`pixelpong.atari.steps.records.RULES`).
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridges import cartridge as find_cartridge
from pixelpong.atari.machine.compiled import Game, not_covered
from pixelpong.atari.machine.record import FRAME_DONE, PADDLE_CENTRE, ROWS, STATE, WIDTH
from pixelpong.atari.machine.resetting import NO_SWITCH, RESET, SELECT
from pixelpong.pong import cartridge, field
from pixelpong.pong.field import PONG_MACHINE
from pixelpong.pong.preprocess import pack_field
from pixelpong.pong.rom import read_rom

PONG = dataclasses.replace(
    find_cartridge("pong"),
    entries=cartridge.ENTRIES,
    modules=(field, cartridge),
    hints=cartridge.HINTS,
    constants={"FIRST_OWN_ROW": field.FIELD_TOP},
    record=PONG_MACHINE,
    codes=cartridge.CODES,
    scoring=None,  # `cartridge.score` is faster
)

_NUM_MODES = 50  # games on the cartridge
# Frames after switching on, and frames with RESET held, before a game starts. Source: ALE.
_IDLE_FRAMES, _RESET_FRAMES = 60, 12


class NativeGame(Game):
    """Compiled Pong, for any number of machines; with `is_plain` it skips no rounds of loops."""

    def __init__(self, rom: bytes, folder: Path | None = None, *, is_plain: bool = False) -> None:
        super().__init__(PONG, rom, folder, is_plain=is_plain)

    def switch_on(self, mode: int = 0) -> NDArray[np.void]:
        """Return a machine at the start of a game, with picture and field drawn: [1] PONG_MACHINE.

        `mode` is ALE's number of the game on the cartridge: 0 for one player; 3 and 4 for two.
        """
        machine = self.power_on()
        # The cartridge reads four paddles. The two unused ones are at 0 in ale-py and in the middle
        # in multi-agent-ale-py; one picture in a hundred shows the difference.
        machine["resistance"] = [PADDLE_CENTRE] * 4 if mode else [PADDLE_CENTRE] * 2 + [0] * 2
        self.idle(machine, NO_SWITCH, _IDLE_FRAMES)
        if mode == 0:
            self.idle(machine, RESET, _RESET_FRAMES)
        else:
            self._choose(machine, mode)
        machine["swchb"] = NO_SWITCH
        machine["field"][0] = pack_field(machine["picture"][0, : ROWS * WIDTH].reshape(ROWS, WIDTH))
        return machine

    def _choose(self, machine: NDArray[np.void], mode: int) -> None:
        """Choose a game with SELECT, as multi-agent-ale-py does."""
        assert 0 < mode <= _NUM_MODES, mode
        self.idle(machine, RESET, 4)
        while machine["ram"][0, cartridge.MODE] != mode - 1:
            self.idle(machine, SELECT, 2)
            self.idle(machine, NO_SWITCH, 1)
        self.idle(machine, RESET, 8)
        self.idle(machine, NO_SWITCH, 2)


class NativeConsole:
    """A console with Pong in it, reused for every game; for `mode` see `NativeGame.switch_on`."""

    def __init__(self, mode: int = 0, game: NativeGame | None = None) -> None:
        self._game = game = game or load_game()  # keeps the machine code alive
        self._play_frames, self._start = game.play_frames, start_of(game, mode)
        self.mode = mode
        self.machine = self._start.copy()  # [1] PONG_MACHINE, for compiled code that plays on it
        self._pointer = self.machine.ctypes.data
        self._state = self.machine.view(np.uint8)[: STATE.itemsize]  # as bytes, which is faster
        # The fields stop, reward, is_over and frames as numbers, which is faster.
        at = PONG_MACHINE.fields["stop"][1]  # type: ignore[index]
        self._results = self.machine.view(np.uint8)[at : at + 16].view("<i4")
        # The palette indices of the last frame that was drawn.
        picture = self.machine["picture"][0, : ROWS * WIDTH]
        self.picture: NDArray[np.uint8] = picture.reshape(ROWS, WIDTH)

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The console's memory, [128] uint8."""
        memory: NDArray[np.uint8] = self.machine["ram"][0]
        return memory

    @property
    def is_over(self) -> bool:
        """Whether a side has 21 points."""
        points = self.memory[cartridge.LEFT_POINTS], self.memory[cartridge.RIGHT_POINTS]
        return cartridge.LAST_POINT in points

    def reset(self) -> None:
        """Start a game, with the picture and the field of its first frame."""
        self.machine[:] = self._start

    def run(self, actions: bytes, draws: int) -> tuple[int, bool, int]:
        """Play frames, one action byte each, until the frame in which a side reaches 21 points.

        Return the points won minus the points lost, whether the game is over, and the frames
        played. `picture` changes only with DRAW_PICTURE.
        """
        self._play_frames(self._pointer, actions, len(actions), draws)
        stop, reward, is_over, frames = self._results.tolist()
        if stop != FRAME_DONE:
            raise not_covered(stop)
        return reward, bool(is_over), frames

    def get_state(self) -> NDArray[np.void]:
        """The state on which the future depends, [1] STATE."""
        return self._state.copy().view(STATE)

    def set_state(self, state: NDArray[np.void]) -> None:
        """Continue from a state, [1] STATE. `picture` does not change before the next frame.

        Compiled code stays inside its record, whatever the state.
        """
        self._state[:] = state.view(np.uint8)


@functools.cache
def load_game() -> NativeGame:
    """Load Pong, once per process."""
    return NativeGame(read_rom())


@functools.cache
def start_of(game: NativeGame, mode: int) -> NDArray[np.void]:
    """A machine at the start of a game, [1] PONG_MACHINE; do not change it."""
    return game.switch_on(mode)
