"""A game in progress: how an episode starts and how a step is played. Parts of kernels.

All games are played by these two functions: games of training and evaluation
(`pixelpong.kernels.playing`) and games that other programs play (`pixelpong.kernels.stepping`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from pixelpong.atari.machine import FRAME_DONE
from pixelpong.env.field import FIELD_SIZE
from pixelpong.kernels.intrinsics import call_play_frames
from pixelpong.kernels.records import RULES

# A part of kernels, which is compiled with its callers. Each array argument costs some nanoseconds
# of reference counting, so the parts that run at every step take few arrays.
_part: Any = register_jitable(error_model="numpy")


class Console(NamedTuple):
    """The console on which one thread plays its games in turn; all arrays but `rules` change."""

    rules: NDArray[np.void]  # [1] `RULES`
    # [·] uint8 each. The second one plays the last frame of a step if two pictures are taken.
    machines: tuple[NDArray[np.uint8], NDArray[np.uint8]]
    addresses: tuple[int, int]  # addresses of the machines in this process
    start: NDArray[np.uint8]  # [·], the machine at the start of a game
    actions: NDArray[np.uint8]  # [≥ frames of a step, or of an opening]
    actions_address: int
    moves: NDArray[np.int64]  # [2], the sides' actions for a step
    field: NDArray[np.uint64]  # [80, 2], the field that the first machine draws


def no_console() -> Console:
    """A console without a machine, for decisions on fields drawn elsewhere."""
    nothing = np.zeros(0, np.uint8)
    return Console(
        np.zeros(1, RULES),
        machines=(nothing, nothing),
        addresses=(0, 0),
        start=nothing,
        actions=nothing,
        actions_address=0,
        moves=np.zeros(2, np.int64),
        field=np.zeros((FIELD_SIZE, 2), np.uint64),
    )


@_part
def copy(source, target):  # type: ignore[no-untyped-def]
    """Copy an array [N]; an assignment compiles for seconds and is slower."""
    for k in range(len(source)):
        target[k] = source[k]


@_part
def load(game, machine):  # type: ignore[no-untyped-def]
    """Copy the state of a game to a machine."""
    copy(game.console, machine)


@_part
def save(machine, game):  # type: ignore[no-untyped-def]
    """Copy the state of the machine that played the game's last frame to the game."""
    for k in range(len(game.console)):
        game.console[k] = machine[k]


@_part
def begin(console, game, waits):  # type: ignore[no-untyped-def]
    """Start an episode on the console; its opening frames, `waits` of them, do not count."""
    rules = console.rules[0]
    game.is_on = 1
    game.steps = game.num_frames = game.fault = 0
    game.held[0] = game.held[1] = rules.idle
    fires = rules.first_action != 0
    count = max(waits, fires)
    for k in range(count):
        console.actions[k] = rules.idle | rules.idle << 4 * (rules.num_sides - 1)
    if fires:
        console.actions[0] = rules.first_action
        game.held[0] = rules.first_action if count == 1 else rules.idle
    played, game.is_over = 0, 1
    while game.is_over:  # a game may end in the opening frames; then another starts, as in ALE
        copy(console.start, console.machines[0])
        game.is_over = game.may_end = game.episode_frames = 0
        actions = console.actions_address + played
        played += _emulate(rules, game, console.addresses[0], actions, count - played)
    game.reward = game.is_cut = 0
    game.points[0] = game.points[1] = 0
    game.may_end |= rules.max_frames <= rules.most_frames


@_part
def play_step(console, game, uniforms):  # type: ignore[no-untyped-def]
    """Play a step of the game on the console with ``console.moves``.

    Each side has its part of `uniforms`, numbers in [0, 1). The first is for the network. The
    second decides the number of frames; only the right side's is used. Each of the others decides
    at one frame whether the held action sticks.

    Returns how many pictures of the last two frames were taken before the game ended, and the
    index of the machine that played the last frame.
    """
    rules = console.rules[0]
    wanted = rules.fewest_frames + np.int64(
        uniforms[1] * (rules.most_frames - rules.fewest_frames + 1)
    )
    count = min(wanted, rules.max_frames - game.num_frames)
    _hold(rules, game, console.moves, uniforms, count, console.actions)
    game.reward = game.is_over = game.is_cut = game.fault = 0
    game.steps += 1
    takes_two = rules.takes_two and count == wanted and wanted > 1
    which = num_pictures = 0
    actions = console.actions_address
    game.num_frames += _emulate(rules, game, console.addresses[0], actions, count - takes_two)
    if takes_two and not game.is_over and not game.fault:
        which = num_pictures = 1
        first, second = console.machines
        for k in range(len(game.console)):
            second[k] = first[k]
        game.num_frames += _emulate(rules, game, console.addresses[1], actions + count - 1, 1)
    game.is_cut = game.num_frames >= rules.max_frames and not game.is_over
    game.is_on = not (game.is_over or game.is_cut or game.fault)
    game.may_end |= game.num_frames + rules.most_frames >= rules.max_frames
    return 2 if game.is_on else num_pictures, which


@_part
def _hold(rules, game, moves, uniforms, count, actions):  # type: ignore[no-untyped-def]
    """Decide for each of the next frames whether the held actions stick; write the `actions`."""
    width = len(uniforms) // rules.num_sides
    for k in range(count):
        actions[k] = 0
    for side in range(rules.num_sides):
        held, sticky = game.held[side], rules.sticky[side]
        for k in range(count):
            if uniforms[side * width + 2 + k] >= sticky:
                held = moves[side]
            actions[k] |= held << 4 * side
        game.held[side] = held


@_part
def _emulate(rules, game, machine, actions, count):  # type: ignore[no-untyped-def]
    """Emulate frames with the actions at an address; return how many frames were played."""
    if count <= 0:
        return 0
    stop, played, reward, is_over, may_end = call_play_frames(
        rules.play_frames, machine, actions, count, rules.draws
    )
    if stop != FRAME_DONE:
        game.fault, game.is_on = stop, 0
        return 0
    game.reward += reward
    game.points[np.int64(reward < 0)] += abs(reward)
    game.is_over, game.may_end = is_over, may_end
    game.episode_frames += played
    game.total_frames += played
    return played
