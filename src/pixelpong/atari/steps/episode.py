"""A game in progress: how an episode starts and how a step is played. Parts of kernels.

All games are played by these two functions: games of training and evaluation
(`pixelpong.kernels.playing`) and games that other programs play (`atari.steps.stepping`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.record import DRAW_NOTHING, FRAME_DONE
from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.intrinsics import call_play_frames, get_second, set_turn
from pixelpong.atari.steps.records import NOW, RULES

# Each array argument costs some nanoseconds of reference counting, so the parts that run at every
# step take few arrays.


class Console(NamedTuple):
    """The console on which one thread plays its games in turn; all arrays but `rules` change."""

    rules: NDArray[np.void]  # [1] `RULES`
    # [·] uint8 each. The second one plays the last frame of a step if two pictures are taken.
    machines: tuple[NDArray[np.uint8], NDArray[np.uint8]]
    addresses: tuple[int, int]  # addresses of the machines in this process
    start: NDArray[np.uint8]  # [·], the machine at the start of a game, or just switched on
    actions: NDArray[np.uint8]  # [≥ frames of a step], and perhaps as many of the second side
    actions_address: int
    now: NDArray[np.void]  # [1] `NOW`
    # What the first machine draws if the cartridge draws in its own form too, else [0, 0].
    drawn: NDArray[np.uint64]


def no_console(drawn: NDArray[np.uint64]) -> Console:
    """A console without a machine, for decisions on what was drawn elsewhere."""
    nothing = np.zeros(0, np.uint8)
    return Console(
        np.zeros(1, RULES),
        machines=(nothing, nothing),
        addresses=(0, 0),
        start=nothing,
        actions=nothing,
        actions_address=0,
        now=np.zeros(1, NOW),
        drawn=drawn,
    )


@kernel_part
def copy(source, target):  # type: ignore[no-untyped-def]
    """Copy all of an array [N]; an assignment compiles for seconds and is slower."""
    for k in range(len(source)):
        target[k] = source[k]


@kernel_part
def save(machine, state, size):  # type: ignore[no-untyped-def]
    """Copy the state, `size` bytes, of the machine that played a game's last frame."""
    for k in range(size):
        state[k] = machine[k]


@kernel_part
def begin(console, game):  # type: ignore[no-untyped-def]
    """Begin an episode at the console's `start`."""
    clear(console, game)
    copy(console.start, console.machines[0])


@kernel_part
def clear(console, game):  # type: ignore[no-untyped-def]
    """Reset an episode's counts."""
    rules = console.rules[0]
    game.is_on = 1
    game.steps = game.num_frames = game.episode_frames = game.fault = 0
    game.reward = game.is_over = game.is_cut = 0
    game.held[0] = game.held[1] = rules.idle
    game.points[0] = game.points[1] = 0
    game.may_end = rules.max_frames <= rules.most_frames


@kernel_part
def play_step(console, game, uniforms):  # type: ignore[no-untyped-def]
    """Play a step of the game on the console with the moves in ``console.now``.

    Each side has its part of `uniforms`, numbers in [0, 1). The first is for the network. The
    second decides the number of frames, unless ``console.now`` has it; only the right side's is
    used. Each of the others decides at one frame whether the held action sticks.

    Returns how many pictures of the last two frames were taken before the game ended, and the
    index of the machine that played the last frame.
    """
    rules, now = console.rules[0], console.now[0]
    # 1. Choose the number of frames, and the actions that the console holds in them.
    wanted = now.count
    if wanted == 0:
        wanted = rules.fewest_frames + np.int64(
            uniforms[1] * (rules.most_frames - rules.fewest_frames + 1)
        )
    count = min(wanted, rules.max_frames - game.num_frames)
    hold(rules, game, now.moves, uniforms, count, console.actions)
    game.reward = game.is_cut = game.fault = now.second = 0
    game.steps += 1
    # 2. Play them, in as few calls as pictures, paddles and lives allow.
    takes_two = rules.takes_two and count == wanted and wanted > 1
    which = num_pictures = played = 0
    actions, machine = console.actions_address, console.addresses[0]
    goes_on = not game.is_over  # as on ALE, a few games are over when they start
    while goes_on and played < count:
        rest = count - played
        if takes_two and rest == 1:
            which = num_pictures = 1
            first, second = console.machines
            for k in range(rules.state_size):
                second[k] = first[k]
            machine = console.addresses[1]
        if rules.is_continuous:
            if uniforms[2 + played] >= rules.sticky[0]:
                now.turns[0] = now.turns[1]
            set_turn(machine, now.turns[0])
        if rules.ends_at_lost_life or rules.is_continuous:  # every frame must be looked at
            rest = 1
        else:
            rest -= takes_two and rest > 1
        is_drawn = rules.draws_all or played + rest >= count - takes_two
        draws = rules.draws if is_drawn else np.int64(DRAW_NOTHING)
        played += emulate(rules, game, now, machine, actions + played, rest, draws)
        is_lost = rules.ends_at_lost_life and 0 < now.lives[1] < now.lives[0]
        goes_on = not (game.is_over or game.fault or is_lost)
    # 3. Decide whether the episode goes on.
    game.num_frames += played
    game.is_cut = game.num_frames >= rules.max_frames and not game.is_over
    game.is_on = goes_on and not game.is_cut
    game.may_end |= game.num_frames + rules.most_frames >= rules.max_frames
    return 2 if game.is_on else num_pictures, which


@kernel_part
def hold(rules, game, moves, uniforms, count, actions):  # type: ignore[no-untyped-def]
    """Decide for each frame whether the previous actions stick, and write `actions`."""
    width = len(uniforms) // rules.num_sides
    for k in range(count):
        actions[k] = actions[rules.second_at + k] = 0
    for side in range(rules.num_sides):
        held, sticky = game.held[side], rules.sticky[side]
        for k in range(count):
            if uniforms[side * width + 2 + k] >= sticky:
                held = moves[side]
            actions[rules.second_at * side + k] |= held << rules.second_shift * side
        game.held[side] = held


@kernel_part
def emulate(rules, game, now, machine, actions, count, draws):  # type: ignore[no-untyped-def]
    """Emulate frames with the actions at an address; return how many frames were played."""
    stop, played, reward, is_over, may_end, now.lives[1] = call_play_frames(
        rules.play_frames, machine, actions, count, draws
    )
    if stop != FRAME_DONE:
        game.fault, game.is_on = stop, 0
        return 0
    game.reward += reward
    now.second += get_second(machine) if rules.pays_second else -reward
    game.points[np.int64(reward < 0)] += abs(reward)
    game.is_over, game.may_end = is_over, may_end
    game.episode_frames += played
    game.total_frames += played
    return played
