"""Segments of streams: pure functions of item and parameters, equal to the dense form."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator
from pixelpong.env.features import NUM_INPUTS, observe_features
from pixelpong.env.preprocess import preprocess
from pixelpong.items import ACTIONS, STAY
from pixelpong.learn import gated
from pixelpong.learn.ppo import log_softmax
from pixelpong.play.streams import StreamPlayer
from pixelpong.seeding import make_rng

GAMES = ["Pong-v0", "ALE/Pong-v5"]


@pytest.fixture(scope="module")
def params():
    made = gated.init_params(make_rng(0, "params"), NUM_INPUTS, hidden=8, dtype="float64")
    return made | {"W2": 100 * made["W2"]}  # so that the actions are not all as likely


def make_player(game):
    return StreamPlayer(make_emulator(find_protocol(game, max_frames=300)))


def replay_densely(game, params, actions, rng):
    """The literal form: colour frames, dense observations, dense network; restarts as streams do.

    Yields what the network gives at every step, and after the last one.
    """
    emulator = make_emulator(find_protocol(game, max_frames=300))
    previous, current = np.zeros((80, 80)), preprocess(emulator.frame())
    last_action, width = ACTIONS.index(STAY), 2 + emulator.protocol.max_frame_skip
    draws = rng.random((len(actions), width))
    for t, action in enumerate(actions):
        x = observe_features(previous, current, last_action)
        y, _ = gated.forward(params, x[None].astype(np.float64))
        reward = emulator.step(ACTIONS[action], draws[t, 1:].tolist())
        yield x, y[0], draws[t, 0], reward, emulator.is_over
        previous, current, last_action = current, preprocess(emulator.frame()), action
        if emulator.is_over:
            emulator.reset()
            previous, current = np.zeros((80, 80)), preprocess(emulator.frame())
            last_action = ACTIONS.index(STAY)
    x = observe_features(previous, current, last_action)
    yield x, gated.forward(params, x[None].astype(np.float64))[0][0], None, None, None


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_a_segment_is_what_the_dense_form_plays(game, params):
    """Across the ends of short episodes too."""
    steps = 400
    result = make_player(game).play_segment(params, None, steps, make_rng(4, "train", 1, 0))
    segment = result.segments[0]
    dense = list(replay_densely(game, params, segment.actions, make_rng(4, "train", 1, 0)))
    assert len(result.episodes) >= 1
    for t, (x, y, draw, reward, is_over) in enumerate(dense):
        assert segment.values[t] == pytest.approx(y[3], abs=1e-9)
        if t == steps:
            break
        indices = segment.indices[segment.offsets[t] : segment.offsets[t + 1]]
        assert sorted(indices.tolist()) == np.flatnonzero(x).tolist()
        log_pi = log_softmax(y[None, :3])[0]
        assert segment.log_probabilities[t] == pytest.approx(log_pi[segment.actions[t]], abs=1e-9)
        assert segment.actions[t] == np.searchsorted(np.exp(log_pi).cumsum()[:2], draw, "right")
        assert segment.rewards[t] == reward
        assert segment.is_end[t] == (reward != 0 or is_over)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_an_episode_is_counted_whole_however_it_is_cut(game, params):
    player, lengths = make_player(game), (1, 2, 61, 300)
    stats = {}
    for horizon in lengths:
        state, ended, update = None, [], 0
        # One generator for all segments: then cutting changes nothing that is played.
        rng = make_rng(3, "train", 1, 0)
        steps = 0
        while not ended and steps < 4000:
            result = player.play_segment(params, state, horizon, rng)
            state, ended, update = result.state, [*result.episodes], update + 1
            steps += horizon
        stats[horizon] = ended[0].to_dict()
    one = stats.pop(1)
    for horizon, other in stats.items():
        entropy = pytest.approx(one["entropy"], rel=1e-9)  # its sum is taken in other parts
        assert other == one | {"entropy": entropy}, horizon


@pytest.mark.parametrize("game", GAMES)
def test_frames_and_points_add_up(game, params):
    player, state, frames, rewards = make_player(game), None, 0, []
    episodes = []
    for update in range(12):
        result = player.play_segment(params, state, 100, make_rng(5, "train", update, 0))
        state, frames = result.state, frames + result.frames
        rewards += result.segments[0].rewards.tolist()
        episodes += result.episodes
    assert frames == sum(stats.frames for stats in episodes) + player.emulator.num_frames
    going_on = state.tally.point_rewards
    counted = [r for stats in episodes for r in stats.point_rewards] + going_on
    assert counted == [int(r) for r in rewards if r]
    assert sum(stats.steps for stats in episodes) + state.tally.steps == 1200


def test_greedy_play_takes_the_most_probable_action(params):
    player = make_player("ALE/Pong-v5")
    always_up = {name: np.zeros_like(w) for name, w in params.items()}
    always_up["b2"][1] = 0.1
    stats = player.play_episode(always_up, make_rng(0, "evaluate", 0, 0), is_greedy=True)
    assert stats.up_share == 1.0
    sampled = player.play_episode(always_up, make_rng(0, "evaluate", 0, 0))
    assert 0.1 < sampled.up_share < 0.8
    assert stats.episode_return == sum(stats.point_rewards)


def test_a_state_is_not_changed_by_playing_from_it(params):
    player = make_player("ALE/Pong-v5")
    first = player.play_segment(params, None, 20, make_rng(0, "train", 1, 0))
    before = vars(first.state.tally.copy())
    player.play_segment(params, first.state, 20, make_rng(0, "train", 2, 0))
    assert vars(first.state.tally) == before
