"""How Pong is played with both networks: its fields, its two sides and its points."""

from __future__ import annotations

from typing import Any, NamedTuple

from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.episode import begin
from pixelpong.items import ACTIONS, DOWN, UP
from pixelpong.kernels.deciding import Layers, conclude, read_out, up_probability
from pixelpong.kernels.elementary import log
from pixelpong.kernels.observing import Geometry, Seen, find_difference, observe_features
from pixelpong.kernels.playing import Parts, forget_nothing, make_play


class GatedScratch(NamedTuple):
    """The arrays that the gated network needs for its decisions."""

    geometry: Geometry
    seen: Seen
    layers: Layers


@kernel_part
def _take_field(network, console, stream):  # type: ignore[no-untyped-def]
    """Copy the console's field [80, 2] to a stream as its newest field."""
    game, field = stream.game, console.drawn
    game.newest, stream.is_new = 1 - game.newest, 0
    newest = stream.fields[game.newest]
    for row in range(len(field)):
        newest[row, 0], newest[row, 1] = field[row, 0], field[row, 1]


@kernel_part
def _begin_pong(network, console, stream, row):  # type: ignore[no-untyped-def]
    """Start an episode of a stream."""
    begin(console, stream.game)
    stream.game.newest, stream.is_new = 0, 1
    stream.last_actions[0] = stream.last_actions[1] = 0
    for line in range(80):
        for word in range(2):
            stream.fields[0, line, word] = stream.fields[1, line, word] = 0
    tally = stream.tally
    tally.entropy = 0.0
    tally.ups = tally.points = 0


@kernel_part
def _reward_point(network, console, stream, step, side):  # type: ignore[no-untyped-def]
    """Record a side's reward; a point is an end."""
    game = stream.game
    step.reward = -game.reward if side else game.reward
    step.is_end = game.reward != 0 or game.is_on == 0


def _make_count(up: int) -> Any:
    """Make the part that counts a step of the learning side; `up` is UP in its record."""

    @kernel_part
    def count(stream, step):  # type: ignore[no-untyped-def]
        tally = stream.tally
        tally.entropy += step.entropy
        tally.ups += step.action == up
        if step.reward != 0 and 0 <= tally.points < len(tally.ends):  # unless state is invalid
            tally.ends[tally.points] = stream.game.steps - 1
            tally.rewards[tally.points] = step.reward
            tally.points += 1

    return count


# --- the classic network ----------------------------------------------------------------------

_UP_INDEX, _DOWN_INDEX = ACTIONS.index(UP), ACTIONS.index(DOWN)


@kernel_part
def _decide_plain(network, record, stream, side, uniform, t):  # type: ignore[no-untyped-def]
    """Observe, decide, and record the decision with its probability."""
    start = record.offsets[t]
    stop = find_difference(stream, record.indices, start)
    record.offsets[t + 1] = stop
    p = up_probability(network.params, record.indices, start, stop, record.hidden, t)
    goes_up = p >= 0.5 if uniform < 0 else uniform < p
    stream.last_actions[side] = _UP_INDEX if goes_up else _DOWN_INDEX
    step = record.steps[t]
    step.up_probability, step.action, step.entropy = p, UP if goes_up else DOWN, 0.0
    if 0 < p < 1:
        step.entropy = -(p * log(p) + (1 - p) * log(1 - p))


# --- the gated network ------------------------------------------------------------------------


@kernel_part
def _forget_gated(network):  # type: ignore[no-untyped-def]
    """Forget the features of the previous frame, which belong to another stream."""
    seen = network.scratch.seen
    seen.marks[:2] = 0
    seen.num_before[0] = -1


@kernel_part
def _decide_gated(network, record, stream, side, uniform, t):  # type: ignore[no-untyped-def]
    """Observe Pong and decide."""
    scratch, start = network.scratch, record.offsets[t]
    stop = observe_features(scratch.geometry, stream, side, scratch.seen, record.indices, start)
    read_out(network.params, scratch.layers, record.indices, start, stop)
    conclude(scratch.layers, record, stream, side, uniform, t, stop)


# Definitions: `pixelpong.learn.network.forward`; and `pixelpong.learn.gated.forward` with a
# softmax, on the inputs of `observe_features`.
play_plain = make_play(
    Parts(_begin_pong, _take_field, forget_nothing, _decide_plain, _reward_point, _make_count(UP))
)
_COUNT_GATED = _make_count(ACTIONS.index(UP))
play_gated = make_play(
    Parts(_begin_pong, _take_field, _forget_gated, _decide_gated, _reward_point, _COUNT_GATED)
)
