"""The start of a game: a reset of the console that is played, not restored.

A reset keeps the memory. The timer starts with a number from the console's own generator, and some
programs derive their random numbers from both. So in many games a start depends on the previous
game. This module makes a machine after a reset; `atari.machine.resetting` plays what follows.

Source: ALE's starts; tests compare the memory. The generator is C++'s mt19937, whose seed is fixed
in ALE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.record import MAX_LINES
from pixelpong.atari.machine.resetting import IDLE_FRAMES, NO_SWITCH

if TYPE_CHECKING:
    from pixelpong.atari.machine.cartridge import Cartridge, Flavour
    from pixelpong.atari.machine.compiled import Game

# ALE's generator: its seed, the count of numbers drawn for the memory when a cartridge is loaded,
# and the count of resets that loading includes. Each reset draws a number for the timer.
SEED, MEMORY, _LOADS = 4753849, 128, 4
SHORTEST, TIMERS, SHIFT = 25, 75, 6  # the timer starts at 25 to 99 and counts every 64 cycles


def start(
    game: Game, number: int = 0, memory: bytes | None = None, flavour: Flavour | None = None
) -> NDArray[np.void]:
    """Make a machine at the start of a game, [1] of the cartridge's record, with its picture.

    Args:
        game: the compiled cartridge.
        number: number of the start since the cartridge was loaded; loading includes start 0.
        memory: [128], the console's memory at the reset; None just after loading.
        flavour: the game on the cartridge, by default the first one.

    Raises:
        EmulatorError: the cartridge does not start.
    """
    machine = reset(game, number, load(game) if memory is None else memory, flavour)
    game.start_game(machine)
    return machine


def load(game: Game) -> bytes:
    """Compute the memory after loading, when ALE plays frames to detect the TV standard."""
    if game.cartridge.max_lines != MAX_LINES:  # at first, ALE takes all cartridges for American
        game = game.with_facts(is_translated=False, max_lines=MAX_LINES)
    machine = _switch_on(game, _draw(MEMORY).astype(np.uint8).tobytes(), 1)
    game.idle(machine, NO_SWITCH, IDLE_FRAMES)
    memory: bytes = machine["ram"].tobytes()
    return memory


def count_draws(cartridge: Cartridge) -> int:
    """Count the numbers that loading, with its resets, draws from the console's generator."""
    return MEMORY + _LOADS + filled_bytes(cartridge) * (_LOADS - 1)


def filled_bytes(cartridge: Cartridge) -> int:
    """Count the bytes of the cartridge's memory that each reset but the first one fills."""
    return MEMORY if cartridge.has_memory else 0


def reset(
    game: Game, number: int, memory: bytes, flavour: Flavour | None = None
) -> NDArray[np.void]:
    """Make a machine that was just reset, [1] of its record; the arguments are those of `start`."""
    machine: NDArray[np.void] = _switch_on(game, memory, _LOADS + number, flavour)
    return machine


def _switch_on(game: Game, memory: bytes, resets: int, flavour: Flavour | None = None) -> Any:
    """Make a machine after a reset; resets are counted from 1 since the cartridge was loaded."""
    machine: Any = game.power_on(flavour)
    machine["ram"] = np.frombuffer(memory, np.uint8)
    index = _timer_index(game.cartridge, resets)
    numbers = _draw(index + 1 + MEMORY)
    machine["timer"] = SHORTEST + numbers[index] % TIMERS
    machine["timer_shift"] = SHIFT
    if game.cartridge.has_memory and resets > 1:
        machine["extra_ram"] = numbers[index + 1 :] & 0xFF
    return machine


def _timer_index(cartridge: Cartridge, resets: int) -> int:
    """Return the index of the timer's number; the numbers for the cartridge's memory follow it."""
    return MEMORY + resets - 1 + filled_bytes(cartridge) * max(resets - 2, 0)


def _draw(count: int) -> NDArray[np.uint32]:
    """Draw the first numbers of the console's generator, starting with those for the memory."""
    return np.random.RandomState(SEED).randint(1 << 32, size=count, dtype=np.uint32)
