"""Playing in compiled code: observations, decisions and whole episodes.

`make_play` makes a kernel that plays streams until an episode ends, outside Python and without the
GIL. Without a machine it returns after each decision. The kernels are in `kernels.pong_game` and
`kernels.any_game`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.steps.compiling import kernel, kernel_part
from pixelpong.atari.steps.episode import copy, play_step, save
from pixelpong.items import Indices


class Record(NamedTuple):
    """One side's observations and actions, as in `pixelpong.items.Played`, with room for more.

    Changed in place.
    """

    indices: Indices  # [·], the inputs of step t start at ``offsets[t]``
    offsets: NDArray[np.int64]  # [T + 1]
    steps: NDArray[np.void]  # [T] `PLAIN_STEP` or `GATED_STEP`
    hidden: NDArray[Any]  # [T, H], or [T, 0]


class Network(NamedTuple):
    """One side's network."""

    params: Any  # `PlainParams` or `GatedParams`
    scratch: Any  # `GatedScratch`, or `ViewedScratch` for any game, with the gated network
    max_inputs: int  # the most inputs that a step can have
    actions: NDArray[np.int64]  # [A], what the console does for each action


@kernel_part
def _has_room(record, max_inputs, t):  # type: ignore[no-untyped-def]
    """Whether a record has room for step t, however many inputs that step has."""
    return t < len(record.steps) and record.offsets[t] + max_inputs <= len(record.indices)


@kernel_part
def forget_nothing(network):  # type: ignore[no-untyped-def]
    """Do nothing, because a stream has all that was seen in its game."""


class Parts(NamedTuple):
    """The parts of a kernel that differ between networks and games."""

    begin: Any  # ``(network, console, stream, row)``: start an episode
    take: Any  # ``(network, console, stream)``: take what the console has drawn into the stream
    forget: Any  # ``(network)``: forget what the network saw of another stream
    decide: Any  # ``(network, record, stream, side, uniform, t)``: observe, decide, record
    reward: Any  # ``(network, console, stream, step, side)``: record the reward of a step
    count: Any  # ``(stream, step)``: add a step of the learning side to the statistics


def make_play(parts: Parts) -> Any:
    """Make the kernel that plays by these parts."""
    begin_episode, take, forget, decide, reward, count = parts

    @kernel
    def play_streams(  # type: ignore[no-untyped-def]
        console, networks, records, streams, uniforms, first, t, learner
    ):
        """Play streams, one after the other, until an episode ends or a record is full.

        If the console has no machine, decide once and put the action in ``last_actions``.

        Args:
            console: `Console`.
            networks: the right side's `Network`; in the two-player game, also the left side's.
            records: `Record`, one for each network.
            streams: [N] `STREAM`; changed.
            uniforms: [N, T, ·], one row per step, see `play_step`. A side's first number chooses
                its action; if it is negative, the most probable action is taken. If the first
                number is above 1, the step is not played, and only its value is recorded. In games
                other than Pong, one more number decides how an episode opens.
            first: the index in the record of the first stream's first step.
            t: where to continue, up to ``first + N · T``.
            learner: the side whose statistics are recorded.

        Returns the index after the last step.
        """
        idle, has_machine = console.rules[0].idle, console.rules[0].play_frames != 0
        machine, max_inputs = console.machines[0], networks[0].max_inputs
        length, width = uniforms.shape[1], uniforms.shape[2] // len(networks)
        while t < first + len(streams) * length:
            number, index = (t - first) // length, (t - first) % length
            stream, row = streams[number], uniforms[number, index]
            game = stream.game
            for side in range(len(networks)):
                if not _has_room(records[side], max_inputs, t):
                    return t
            # 1. Load the game onto the console.
            if index == 0 and has_machine:
                copy(stream.console, machine)
            if game.is_on == 0:
                begin_episode(networks[0], console, stream, row)
            # 2. Decide.
            if index == 0 or game.steps == 0:
                for side in range(len(networks)):
                    forget(networks[side])
            if stream.is_new:
                take(networks[0], console, stream)
            for side in range(len(networks)):
                decide(networks[side], records[side], stream, side, row[side * width], t)
            t += 1
            if not has_machine:
                game.steps += 1
                return t
            # 3. Play, and record the reward.
            if row[0] <= 1:
                for side in range(len(networks)):
                    action = networks[side].actions[stream.last_actions[side]]
                    console.now[0].moves[side] = idle | action
                play_step(console, game, row)
                stream.is_new = 1
                for side in range(len(networks)):
                    reward(networks[side], console, stream, records[side].steps[t - 1], side)
                count(stream, records[learner].steps[t - 1])
            # 4. Leave the console to the next stream.
            if index == length - 1:
                save(machine, stream.console, len(stream.console))
            if game.is_on == 0 or game.fault:
                return t
        return t

    return play_streams
