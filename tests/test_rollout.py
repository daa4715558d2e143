"""The fast rollout against a slow, dense one written out here."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.config.protocols import find_protocol
from pixelpong.env import make_emulator
from pixelpong.env.preprocess import difference, preprocess
from pixelpong.items import DOWN, UP, Trajectory
from pixelpong.learn.network import forward, init_params
from pixelpong.play.episodes import Player, summarize
from pixelpong.seeding import make_rng


def play_densely(emulator, params, rng, is_greedy=False):
    """One episode, literally: colours, dense observations, a fresh row of draws a step."""
    emulator.reset()
    previous, xs, actions, probabilities, rewards = None, [], [], [], []
    while not emulator.is_over:
        current = preprocess(emulator.frame())
        x = difference(previous, current)
        previous = current
        p = float(forward(params, x[None].astype(params["W1"].dtype))[0][0])
        draws = rng.random(2 + emulator.protocol.max_frame_skip)
        is_up = p >= 0.5 if is_greedy else draws[0] < p
        xs.append(x)
        actions.append(UP if is_up else DOWN)
        probabilities.append(p)
        rewards.append(emulator.step(actions[-1], draws[1:].tolist()))
    return np.array(xs), np.array(actions), np.array(probabilities), np.array(rewards)


@pytest.mark.slow
@pytest.mark.parametrize("is_greedy", [False, True])
@pytest.mark.parametrize("name", ["Pong-v0", "ALE/Pong-v5"])
def test_fast_rollout_equals_the_dense_one(name, is_greedy):
    protocol = find_protocol(name)
    params = init_params(make_rng(0, "params"), hidden=20, dtype="float64")
    fast = Player(make_emulator(protocol)).play(
        params, make_rng(5, "train", 1, 2), is_greedy=is_greedy
    )
    xs, actions, probabilities, rewards = play_densely(
        make_emulator(protocol), params, make_rng(5, "train", 1, 2), is_greedy
    )
    np.testing.assert_array_equal(fast.dense(), xs)
    np.testing.assert_array_equal(fast.actions, actions)
    np.testing.assert_array_equal(fast.rewards, rewards)
    np.testing.assert_allclose(fast.up_probabilities, probabilities, atol=1e-11)
    np.testing.assert_allclose(fast.hidden, forward(params, xs)[1], atol=1e-11)
    assert abs(rewards.sum()) in range(1, 22)


def test_an_episode_does_not_depend_on_what_was_played_before():
    params = init_params(make_rng(0, "params"), hidden=5)
    used, fresh = (
        Player(make_emulator(find_protocol("ALE/Pong-v5", max_frames=300))) for _ in range(2)
    )
    for index in range(4):
        used.play(params, make_rng(1, "train", 1, index))
    one = used.play(params, make_rng(2, "train", 1, 0))
    two = fresh.play(params, make_rng(2, "train", 1, 0))
    for name in ("indices", "offsets", "actions", "up_probabilities", "hidden", "rewards"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_statistics_of_an_episode_by_hand():
    trajectory = Trajectory(
        indices=np.zeros(0, np.uint16),
        offsets=np.zeros(6, np.int64),
        actions=np.array([UP, DOWN, UP, UP, DOWN], np.int8),
        up_probabilities=np.array([0.5, 0.5, 1.0, 1.0, 0.0]),
        hidden=np.zeros((5, 1)),
        rewards=np.array([0, 1, 0, -1, -1], np.float32),
        num_frames=20,
    )
    stats = summarize(trajectory, 0.5)
    assert (stats.episode_return, stats.steps, stats.frames) == (-1.0, 5, 20)
    assert (stats.points_won, stats.points_lost) == (1, 2)
    assert stats.point_ends == (1, 3, 4)
    assert stats.point_rewards == (1, -1, -1)
    assert stats.up_share == pytest.approx(0.6)
    assert stats.entropy == pytest.approx(2 * np.log(2) / 5)
    assert "play_seconds" not in stats.to_dict()


def test_no_two_purposes_or_places_share_their_numbers():
    first = {
        make_rng(seed, purpose, update, index).random()
        for seed in (0, 1)
        for purpose in ("train", "evaluate")
        for update in (1, 2)
        for index in (0, 1)
    }
    assert len(first) == 16
