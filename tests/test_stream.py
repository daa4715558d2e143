"""Segments of streams: pure functions of item and parameters, equal to the dense form."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.config.protocols import find_protocol
from pixelpong.env.features import NUM_INPUTS, observe_features
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import ACTIONS, STAY, Item
from pixelpong.learn import gated
from pixelpong.learn.ppo import log_softmax
from pixelpong.play.player import Player
from pixelpong.seeding import make_rng

GAMES = ["Pong-v0", "ALE/Pong-v5"]


@pytest.fixture(scope="module")
def params():
    made = gated.init_params(make_rng(0, "params"), NUM_INPUTS, hidden=8, dtype="float64")
    return made | {"W2": 100 * made["W2"]}  # so that the actions are not all as likely


def make_player(game):
    return Player(find_protocol(game, max_frames=300), "ppo")


def next_steps(steps, update=1, stream=None, seed=0):
    return Item("train", seed, update, 0, steps=steps, stream=stream)


def replay_densely(game, params, actions, rng):
    """The literal form: colour frames, dense observations, dense network; restarts as streams do.

    Yields what the network gives at every step, and after the last one.
    """
    emulator = Emulator(find_protocol(game, max_frames=300))
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
    result = make_player(game).play(next_steps(steps, seed=4), params)
    (played,) = result.sides
    actions = played.steps["action"][:steps]
    dense = list(replay_densely(game, params, actions, make_rng(4, "train", 1, 0)))
    assert len(result.episodes) >= 1
    for t, (x, y, draw, reward, is_over) in enumerate(dense):
        step = played.steps[t]
        assert step["value"] == pytest.approx(y[3], abs=1e-9)
        if t == steps:
            break
        indices = played.indices[played.offsets[t] : played.offsets[t + 1]]
        assert sorted(indices.tolist()) == np.flatnonzero(x).tolist()
        log_pi = log_softmax(y[None, :3])[0]
        assert step["log_probability"] == pytest.approx(log_pi[actions[t]], abs=1e-9)
        assert actions[t] == np.searchsorted(np.exp(log_pi).cumsum()[:2], draw, "right")
        assert step["reward"] == reward
        assert step["is_end"] == (reward != 0 or is_over)


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
            result = player.play(next_steps(horizon, stream=state), params, rng)
            state, ended, update = result.stream, [*result.episodes], update + 1
            steps += horizon
        stats[horizon] = ended[0].line()
    one = stats.pop(1)
    for horizon, other in stats.items():
        entropy = pytest.approx(one["entropy"], rel=1e-9)  # its sum is taken in other parts
        assert other == one | {"entropy": entropy}, horizon


@pytest.mark.parametrize("game", GAMES)
def test_frames_and_points_add_up(game, params):
    player, state, frames, rewards = make_player(game), None, 0, []
    episodes = []
    for update in range(12):
        result = player.play(next_steps(100, update, state, seed=5), params)
        state, frames = result.stream, frames + result.frames
        rewards += result.sides[0].steps["reward"][:100].tolist()
        episodes += result.episodes
    (going_on,) = state
    unfinished = going_on["memory"]
    assert frames == sum(each.frames for each in episodes) + unfinished["num_frames"]
    counted = [r for each in episodes for r in each.rewards]
    counted += going_on["rewards"][: going_on["points"]].tolist()
    assert counted == [int(r) for r in rewards if r]
    assert sum(each.steps for each in episodes) + unfinished["steps"] == 1200


def test_greedy_play_takes_the_most_probable_action(params):
    player = make_player("ALE/Pong-v5")
    always_up = {name: np.zeros_like(w) for name, w in params.items()}
    always_up["b2"][1] = 0.1
    (greedy,), (sampled,) = (
        player.play(Item("evaluate", 0, 0, 0, is_greedy), always_up).episodes
        for is_greedy in (True, False)
    )
    assert greedy.ups == greedy.steps
    assert 0.1 < sampled.ups / sampled.steps < 0.8


def test_a_stream_is_not_changed_by_playing_from_it(params):
    player = make_player("ALE/Pong-v5")
    stream = player.play(next_steps(20), params).stream
    before = stream.tobytes()
    player.play(next_steps(20, update=2, stream=stream), params)
    assert stream.tobytes() == before
