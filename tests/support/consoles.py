"""A console with one of Pong's cartridges, played by hand."""

from __future__ import annotations

import numpy as np

from pixelpong.atari.games.rules import open_cartridge
from pixelpong.atari.machine import starting
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    PADDLE_CENTRE,
    ROWS,
    STATE,
    WIDTH,
)
from pixelpong.atari.machine.resetting import NO_SWITCH, RESET, SELECT
from pixelpong.errors import EmulatorError
from pixelpong.pong.cartridge import MODE
from pixelpong.pong.native import PONG
from pixelpong.pong.preprocess import pack_field


class Console:
    """A machine's record and what is read in it; `memory` and `picture` change with the machine."""

    def __init__(self, game: Game | None = None, start: np.ndarray | None = None):
        self._game = game or open_cartridge(PONG)
        self._start = starting.start(self._game) if start is None else start
        self.machine = self._start.copy()
        self.memory = self.machine["ram"][0]
        self.picture = self.machine["picture"][0, : ROWS * WIDTH].reshape(ROWS, WIDTH)

    def reset(self) -> None:
        self.machine[:] = self._start

    def run(self, actions: bytes, draws: int) -> tuple[int, bool, int]:
        """Play frames, an action each; the reward, whether the game is over, the frames played."""
        self._game.play(self.machine, actions, draws)
        reward, is_over, frames = (
            int(self.machine[it][0]) for it in ("reward", "is_over", "frames")
        )
        return reward, bool(is_over), frames

    def get_state(self) -> np.ndarray:
        """What the future depends on, [1] STATE."""
        return self.machine.view(np.uint8)[: STATE.itemsize].copy().view(STATE)

    def set_state(self, state: np.ndarray) -> None:
        self.machine.view(np.uint8)[: STATE.itemsize] = state.view(np.uint8)


def console_in(mode: int, game: Game | None = None) -> Console:
    """A console in any game of the cartridge, chosen by hand: `start_game` does not know these."""
    game = game or open_cartridge(PONG)
    machine = game.power_on()
    if mode == 0:
        return Console(game)
    machine["resistance"] = PADDLE_CENTRE  # also the two paddles that nobody holds
    game.idle(machine, NO_SWITCH, 60)
    game.idle(machine, RESET, 4)
    while machine["ram"][0, MODE] != mode - 1:
        game.idle(machine, SELECT, 2)
        game.idle(machine, NO_SWITCH, 1)
    game.idle(machine, RESET, 8)
    game.idle(machine, NO_SWITCH, 2)
    machine["field"][0] = pack_field(machine["picture"][0, : 210 * 160].reshape(210, 160))
    return Console(game, machine)


def shows(console: Console, draws: int, picture: np.ndarray) -> bool:
    """Whether what a console drew is this."""
    if draws == DRAW_PICTURE:
        return np.array_equal(console.picture, picture)
    fields = console.machine["field"][0], pack_field(picture)
    rows = [field.view(np.uint8)[:, :10] for field in fields]  # 80 bits of 128
    return draws == DRAW_NOTHING or np.array_equal(*rows)


def outcome(console: Console, actions: bytes, draws: int) -> tuple:
    """What it pays and comes to; of a machine that stops, why."""
    try:
        return console.run(actions, draws), console.get_state().tobytes()
    except EmulatorError as error:
        return (str(error),)


def scribble(console: Console) -> None:
    """Overwrite the record, but for the state: nothing else may count."""
    state = console.get_state()
    # How pictures are to be drawn, and how far a paddle turns.
    inputs = {name: console.machine[name].copy() for name in ("shades", "turn")}
    console.machine.view(np.uint8)[:] = 0xA5
    for name, value in inputs.items():
        console.machine[name] = value
    console.machine["swchb"] = 0x3F
    console.set_state(state)
