"""The start of a game: a reset of the console that is played, not restored.

A reset keeps the memory. The timer starts with a number from the console's own generator, and some
programs derive their random numbers from both. So in many games a start depends on the previous
game. The procedure is the same for all games: the processor and the TIA start as after switching
on, 60 frames pass, RESET is held, in some games SELECT is pressed until the right game of the
cartridge is chosen, RESET is held again, and some actions start the game. In Double Dunk, these
actions go through the menu.

Source: ALE's starts; tests compare the memory. The generator is C++'s mt19937, which has always the
same seed in ALE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine import DRAW_PICTURE, MAX_LINES
from pixelpong.errors import EmulatorError

if TYPE_CHECKING:
    from pixelpong.atari.cartridge import Cartridge
    from pixelpong.atari.game import Game

# The console's switches: none held, RESET held, SELECT held. Both difficulties are easy; the
# picture is in colour.
NO_SWITCH, RESET, SELECT = 0x3F, 0x3E, 0x3D
SWITCH_ACTIONS = {40: RESET, 41: SELECT}  # start actions that hold a switch for one frame

_IDLE_FRAMES = 60  # number of idle frames after switching on
_RESET_FRAMES = 4  # fewest frames with RESET before and after a game is chosen
_MOST_PRESSES = 400  # most presses of SELECT; no cartridge has as many games

# ALE's generator: its seed, the count of numbers drawn for the memory when a cartridge is loaded,
# and the count of resets that loading includes. Each reset draws a number for the timer.
SEED, MEMORY, _LOADS = 4753849, 128, 4
SHORTEST, TIMERS, _SHIFT = 25, 75, 6  # the timer starts at 25 to 99 and counts every 64 cycles


def start(game: Game, number: int = 0, memory: bytes | None = None) -> NDArray[np.void]:
    """A machine at the start of a game, [1] of the cartridge's record, with its picture drawn.

    Args:
        game: the compiled cartridge.
        number: number of the start since the cartridge was loaded; loading includes start 0.
        memory: [128], the console's memory at the reset; None just after loading.
    """
    if memory is None:
        memory = _load(game)
    machine = _switch_on(game, memory, _LOADS + number)
    _reset(game, machine)
    return machine


def count_draws(cartridge: Cartridge) -> int:
    """How many numbers of the console's generator loading takes, with its starts."""
    return MEMORY + _LOADS + filled_bytes(cartridge) * (_LOADS - 1)


def filled_bytes(cartridge: Cartridge) -> int:
    """How many bytes of the cartridge's memory a reset fills, except the first one."""
    return MEMORY if cartridge.scheme.endswith("SC") else 0


def after_loading(game: Game) -> NDArray[np.uint8]:
    """The console's memory after loading, which includes start 0: [128] uint8."""
    memory: NDArray[np.uint8] = start(game)["ram"][0].copy()
    return memory


def _load(game: Game) -> bytes:
    """The memory after loading; while loading, ALE plays to detect the television standard."""
    if game.cartridge.max_lines != MAX_LINES:  # at first, ALE takes all cartridges for American
        game = game.with_facts(max_lines=MAX_LINES)
    machine = _switch_on(game, _draw(MEMORY).astype(np.uint8).tobytes(), 1)
    game.idle(machine, NO_SWITCH, _IDLE_FRAMES)
    memory: bytes = machine["ram"].tobytes()
    return memory


def _switch_on(game: Game, memory: bytes, resets: int) -> Any:
    """A machine after a reset; resets are counted from 1 since the cartridge was loaded."""
    machine: Any = game.power_on()
    machine["ram"] = np.frombuffer(memory, np.uint8)
    if game.cartridge.scheme.endswith("SC"):  # its memory is filled, except at the first reset
        numbers = _draw(MEMORY + resets + MEMORY * (resets - 1))
        machine["extra_ram"] = numbers[-MEMORY:] & 0xFF
        number = numbers[-1 - MEMORY]
    else:
        number = _draw(MEMORY + resets)[-1]
    machine["timer"] = SHORTEST + number % TIMERS
    machine["timer_shift"] = _SHIFT
    return machine


def _draw(count: int) -> NDArray[np.uint32]:
    """The first numbers of the console's generator, starting with those for the memory."""
    return np.random.RandomState(SEED).randint(1 << 32, size=count, dtype=np.uint32)


def _reset(game: Game, machine: NDArray[np.void]) -> None:
    """Play the frames that follow a reset."""
    cartridge = game.cartridge
    game.idle(machine, NO_SWITCH, _IDLE_FRAMES)
    game.idle(machine, RESET, _RESET_FRAMES)
    if cartridge.select:
        _select(game, machine)
    game.idle(machine, NO_SWITCH, cartridge.wait_frames)
    game.idle(machine, RESET, cartridge.reset_frames - _RESET_FRAMES)
    machine["swchb"] = NO_SWITCH
    for action, count in cartridge.start_actions:
        for _ in range(count):
            if action in SWITCH_ACTIONS:
                game.idle(machine, SWITCH_ACTIONS[action], 1)
                machine["swchb"] = NO_SWITCH
            else:
                game.play(machine, bytes([action]), DRAW_PICTURE)


def _select(game: Game, machine: Any) -> None:
    """Press SELECT until the right one of the cartridge's games is chosen."""
    select = game.cartridge.select
    assert select
    if select.first:
        _press_select(game, machine, select.first)
    for _ in range(_MOST_PRESSES):
        memory = machine["ram"][0]
        if all(memory[address] == value for address, value in select.until.items()):
            return
        _press_select(game, machine, select.frames)
    raise EmulatorError("the cartridge does not show the game that was chosen; start it again")


def _press_select(game: Game, machine: NDArray[np.void], frames: int) -> None:
    game.idle(machine, SELECT, frames)
    game.idle(machine, NO_SWITCH, 1)
