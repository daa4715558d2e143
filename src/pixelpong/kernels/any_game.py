"""How any game is played with the gated network, as the player's figure sees it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.record import MACHINE
from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.episode import clear
from pixelpong.atari.steps.opening import Starts, start_episode
from pixelpong.atari.steps.twister import seed_twister
from pixelpong.kernels.blobs import ViewScratch, ViewSight
from pixelpong.kernels.deciding import Layers, conclude, read_out
from pixelpong.kernels.playing import Parts, forget_nothing, make_play
from pixelpong.kernels.viewing import forget_view, observe_view, take_view


class Openings(NamedTuple):
    """What is needed to start episodes of any game; all but `starts.memory` change."""

    starts: Starts
    chance: NDArray[np.void]  # [1] `CHANCE`
    row: NDArray[np.float64]  # room for random numbers


class ViewedScratch(NamedTuple):
    """The arrays that the gated network needs to play any game."""

    sight: ViewSight
    seen: ViewScratch
    layers: Layers
    parts: NDArray[np.int64]  # [A, ·], the parts of the actions, see `pixelpong.learn.ppo`
    openings: Openings
    life_cost: float  # what a lost life costs, in rewards


_RAM = MACHINE.fields["ram"][1]  # type: ignore[index]


@kernel_part
def _take_picture(network, console, stream):  # type: ignore[no-untyped-def]
    """Take the console's newest picture into a stream."""
    scratch = network.scratch
    stream.is_new = 0
    take_view(console.drawn, scratch.sight, scratch.seen, stream)


@kernel_part
def _begin_any(network, console, stream, row):  # type: ignore[no-untyped-def]
    """Start an episode of a stream; the last number in `row` decides how it opens.

    It opens as an environment's second episode does, so not always with the same timer.
    """
    game, openings = stream.game, network.scratch.openings
    chance, starts = openings.chance[0], openings.starts
    if console.rules[0].play_frames == 0:
        clear(console, game)
    else:
        seed = np.int64(row[len(row) - 1] * 2.0**31)
        seed_twister(chance.opening, seed)
        seed_twister(chance.console, seed)
        for k in range(len(starts.memory)):
            stream.console[_RAM + k] = starts.memory[k]
        start_episode(console, starts, openings.row, game, chance, stream.console, np.int64(-1))
    stream.lives, stream.is_new = chance.lives, 1
    stream.last_actions[0] = 0
    forget_view(stream)
    stream.tally.entropy = 0.0


@kernel_part
def _reward_sign(network, console, stream, step, side):  # type: ignore[no-untyped-def]
    """Record the sign of the reward, less the cost of a lost life, which is an end."""
    game, before, now = stream.game, stream.lives, console.now[0].lives[1]
    stream.lives = now
    sign = np.int64(game.reward > 0) - np.int64(game.reward < 0)
    is_lost = 0 < now < before
    is_last = game.is_over and before > 0
    step.reward = sign - network.scratch.life_cost * (is_lost or is_last)
    step.is_end = is_lost or game.is_on == 0


@kernel_part
def _count_entropy(stream, step):  # type: ignore[no-untyped-def]
    """Count a step."""
    stream.tally.entropy += step.entropy


@kernel_part
def _decide_viewed(network, record, stream, side, uniform, t):  # type: ignore[no-untyped-def]
    """Observe any game and decide."""
    scratch, start, action = network.scratch, record.offsets[t], stream.last_actions[0]
    stop = observe_view(scratch.sight, scratch.seen, stream, action, record.indices, start)
    layers, parts, preferences = scratch.layers, scratch.parts, stream.preferences
    read_out(network.params, layers, record.indices, start, stop)
    y = layers.outputs
    for k in range(len(parts)):
        for n in range(parts.shape[1]):
            y[k] += y[parts[k, n]]
        y[k] += preferences[k]
    conclude(layers, record, stream, side, uniform, t, stop)


# Definition: `pixelpong.learn.gated.forward` with the logits of `pixelpong.learn.ppo.add_parts` and
# a softmax, on the inputs of `pixelpong.sight.view`.
play_viewed = make_play(
    Parts(_begin_any, _take_picture, forget_nothing, _decide_viewed, _reward_sign, _count_entropy)
)
