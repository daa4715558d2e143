"""How an episode starts in an environment, as in ale-py. Parts of kernels.

Most consoles are reset and play some seventy frames to a game's start, see
`atari.machine.resetting`. Then some frames without a press follow, which do not count. If a start
depends on the timer alone, or on nothing, each start is played once and copied from then on.

Source: ale-py's ``AtariVectorEnv``, by tests (``docs/emulator.md``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.record import DRAW_NOTHING, FRAME_DONE, MACHINE, MOST_ACTS
from pixelpong.atari.machine.starting import MEMORY, SEED, SHORTEST, TIMERS
from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.episode import clear, copy, emulate, hold, save
from pixelpong.atari.steps.intrinsics import call_start_game
from pixelpong.atari.steps.twister import peek, seed_twister, use, use_below, use_below_as_apple

_RAM, _TIMER, _EXTRA_RAM, _MODE, _STICKS, _ACTS = (
    MACHINE.fields[name][1]  # type: ignore[index]
    for name in ("ram", "timer", "extra_ram", "mode", "sticks", "acts")
)
MOST_AT_ONCE = 128  # the most opening frames that are played by one call
_SCALE = 1.0 / 2**32


class Starts(NamedTuple):
    """What a part needs to start games; `machines` and `is_known` change."""

    memory: NDArray[np.uint8]  # [128], the console's memory after the cartridge was loaded
    # [K, ·], machines at a start, with K = 1 if all starts are equal; 75 if they depend on the
    # timer; 0 if they depend on the memory.
    machines: NDArray[np.uint8]
    is_known: NDArray[np.bool_]  # [K], whether the machine is there


@kernel_part
def toss_coins(coins, count, row):  # type: ignore[no-untyped-def]
    """Write the random numbers for the next frames to `row`, [2 + frames], without consuming them.

    A frame has two; the second is for player two, which these games lack.
    """
    for k in range(count):
        row[2 + k] = peek(coins, 2 * k) * _SCALE


@kernel_part
def use_coins(rules, chance, count):  # type: ignore[no-untyped-def]
    """Consume the random numbers of `count` frames, if the game draws its own."""
    if rules.tosses_coins:
        chance.coins.used += 2 * count


@kernel_part
def start_episode(console, starts, row, game, chance, state, seed):  # type: ignore[no-untyped-def]
    """Start an episode of a game: the first one of `seed`, or the next one if it is −1.

    `row` is room for random numbers.
    """
    rules, now, machine = console.rules[0], console.now[0], console.machines[0]
    # 1. Seed the generators, or count the next episode.
    if seed >= 0:
        game.seed, game.episode, game.total_frames = seed, 0, rules.loading_frames
        seed_twister(chance.opening, seed)
        seed_twister(chance.coins, seed)
        seed_twister(chance.console, SEED)
        chance.console.used += rules.loading_draws
        use_coins(rules, chance, rules.coin_frames)
        for k in range(len(starts.memory)):
            state[_RAM + k] = starts.memory[k]
    else:
        game.episode += 1
    # 2. Start a game.
    clear(console, game)
    if seed >= 0 and rules.has_sticky_menu:
        _load(console, game, chance)
    _start(console, starts, game, chance, state)
    # 3. Play the opening frames, in which another game may have to start.
    fires = rules.first_action != 0
    below = max(rules.max_noops, 1)
    if rules.opens_as_on_macos:
        count = use_below_as_apple(chance.opening, below)
    else:
        count = use_below(chance.opening, below)
    count, played = max(count, fires), 0
    while played < count and not game.fault:
        is_fire = fires and played == 0
        now.moves[0] = rules.first_action if is_fire else rules.idle
        now.moves[1] = rules.idle
        wanted = 1 if is_fire else min(count - played, MOST_AT_ONCE)
        if rules.tosses_coins:
            toss_coins(chance.coins, wanted, row)
        else:
            row[:] = 1.0  # nothing sticks
        hold(rules, game, now.moves, row, wanted, console.actions)
        draws = rules.draws if played + wanted == count else np.int64(DRAW_NOTHING)
        done = emulate(
            rules, game, now, console.addresses[0], console.actions_address, wanted, draws
        )
        use_coins(rules, chance, done)
        played += done
        if game.is_over:  # then another game starts
            save(machine, state, rules.state_size)
            _start(console, starts, game, chance, state)
    # 4. What was played so far counts for no step.
    chance.lives = now.lives[1]
    game.reward = game.points[0] = game.points[1] = now.second = 0
    game.is_cut = game.num_frames >= rules.max_frames  # the first step reports it
    game.may_end |= game.num_frames + rules.most_frames >= rules.max_frames
    save(machine, state, rules.state_size)


@kernel_part
def _load(console, game, chance):  # type: ignore[no-untyped-def]
    """Play the start that loading includes, for the frames and the coins that it takes.

    It is a start of the first game, and depends on the coins alone.
    """
    rules, machine = console.rules[0], console.machines[0]
    copy(console.start, machine)
    machine[_MODE] = rules.first_mode
    _toss_in_menu(rules, chance, machine)
    stop, game.total_frames, _, _, _, _ = call_start_game(rules.start_game, console.addresses[0])
    if stop != FRAME_DONE:
        game.fault, game.is_on = stop, 0
    use_coins(rules, chance, machine[_ACTS])


@kernel_part
def _toss_in_menu(rules, chance, machine):  # type: ignore[no-untyped-def]
    """Tell the machine which actions will stick in a menu, without consuming the coins."""
    for k in range(MOST_ACTS):
        machine[_STICKS + k] = peek(chance.coins, 2 * k) * _SCALE < rules.sticky[0]


@kernel_part
def _start(console, starts, game, chance, state):  # type: ignore[no-untyped-def]
    """Start a game on the console, and begin to count its frames."""
    rules, machine, address = console.rules[0], console.machines[0], console.addresses[0]
    game.held[0] = game.held[1] = rules.idle
    number = use(chance.console) % TIMERS
    which = min(number, len(starts.is_known) - 1)
    copy(console.start, machine)
    function = rules.start_game
    if which >= 0 and starts.is_known[which]:
        function = 0  # nothing to play
        copy(starts.machines[which], machine)
        chance.console.used += rules.filled_bytes
    else:
        for k in range(MEMORY):
            machine[_RAM + k] = state[_RAM + k]
        machine[_TIMER] = SHORTEST + number
        for k in range(rules.filled_bytes):
            machine[_EXTRA_RAM + k] = use(chance.console) & 0xFF
        if rules.has_sticky_menu:
            _toss_in_menu(rules, chance, machine)
    stop, frames, _, game.is_over, game.may_end, console.now[0].lives[1] = call_start_game(
        function, address
    )
    if stop != FRAME_DONE:
        game.fault, game.is_on = stop, 0
    elif which >= 0 and not starts.is_known[which]:
        copy(machine, starts.machines[which])
        starts.is_known[which] = True
    game.episode_frames = frames
    game.num_frames = frames if rules.counts_start else 0
    game.total_frames += frames
    use_coins(rules, chance, rules.coin_frames + machine[_ACTS])
