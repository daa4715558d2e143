"""Atari Pong in native code: its cartridge with all that is known of it, and a console to play it.

On first use the cartridge is read from the ROM in ale-py, translated and compiled, which takes two
seconds; later processes load the code from the cache in milliseconds. The compiled code contains
the game's logic and stays on the user's machine.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.rules import Rules, open_cartridge
from pixelpong.atari.machine import starting
from pixelpong.atari.machine.cartridge import Cartridge, Select
from pixelpong.atari.machine.cartridges import cartridge as find_cartridge
from pixelpong.atari.machine.compiled import Game, not_covered
from pixelpong.atari.machine.record import FRAME_DONE, ROWS, STATE, WIDTH
from pixelpong.config.protocols import Protocol
from pixelpong.pong import cartridge, field
from pixelpong.pong.field import PONG_MACHINE
from pixelpong.pong.modes import MODE

PONG = dataclasses.replace(
    find_cartridge("pong"),
    entries=cartridge.ENTRIES,
    modules=(field, cartridge),
    hints=cartridge.HINTS,
    constants={"FIRST_OWN_ROW": field.FIELD_TOP},
    record=PONG_MACHINE,
    own_drawing="field",
    codes=cartridge.CODES,
    scoring=None,  # `cartridge.score` is faster
)


@functools.cache
def for_two(mode: int = MODE) -> Cartridge:
    """Return the cartridge set to one of its games for two; `mode` is ALE's number of that game.

    It is chosen with SELECT, as by multi-agent-ale-py. The cartridge reads four paddles. The two
    unused ones are in the middle there, and at 0 in ale-py; one picture in a hundred shows the
    difference. In mode 0, the game for one, the console plays the left side whatever its action.
    """
    codes = tuple(cartridge.DUEL_CODES[code] for code in PONG.codes)
    if mode == 0:
        return dataclasses.replace(PONG, codes=codes)
    presses = mode - 1
    return dataclasses.replace(
        PONG,
        controls="four paddles",
        select=Select(2, {cartridge.MODE: presses}),
        start_actions=((0, 2),),
        constants={**PONG.constants, "COUNTED_FRAMES": -presses},  # presses do not count
        codes=codes,
    )


def rules_of(protocol: Protocol, num_sides: int = 1) -> Rules:
    """Return the rules of a protocol, for one or two sides."""
    low, high = protocol.frame_skips
    sticky = protocol.sticky, protocol.sticky
    facts = for_two() if num_sides == 2 else PONG
    return Rules(facts, low, high, protocol.max_frames, sticky, num_sides)


class NativeConsole:
    """A console with Pong in it, reused for every game."""

    def __init__(self, game: Game | None = None, start: NDArray[np.void] | None = None) -> None:
        """Play PONG, or a `game` with one of Pong's cartridges.

        `start` is a machine at the start of a game, [1] PONG_MACHINE; by default the first start.
        """
        self._game = game = game or open_cartridge(PONG)  # keeps the machine code alive
        self._play_frames = game.play_frames
        self._start = starting.start(game) if start is None else start
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
