"""The fast rollout against a slow, dense one written out here."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.config.protocols import find_protocol
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import difference, preprocess
from pixelpong.items import DOWN, UP, Episode, Item
from pixelpong.learn.network import forward, init_params
from pixelpong.learn.reinforce import entropy
from pixelpong.play.player import Player
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
    item = Item("train", seed=5, update=1, index=2, is_greedy=is_greedy)
    result = Player(protocol, "reinforce").play(item, params)
    (fast,), (episode,) = result.sides, result.episodes
    xs, actions, probabilities, rewards = play_densely(
        Emulator(protocol), params, make_rng(5, "train", 1, 2), is_greedy
    )
    np.testing.assert_array_equal(fast.dense(), xs)
    np.testing.assert_array_equal(fast.steps["action"], actions)
    np.testing.assert_array_equal(fast.steps["reward"], rewards)
    np.testing.assert_allclose(fast.steps["up_probability"], probabilities, atol=1e-11)
    np.testing.assert_allclose(fast.steps["entropy"], entropy(probabilities), atol=1e-11)
    np.testing.assert_allclose(fast.hidden, forward(params, xs)[1], atol=1e-11)
    ends = np.flatnonzero(rewards)
    assert (episode.ends, episode.rewards) == (tuple(ends), tuple(rewards[ends]))
    assert (episode.steps, episode.ups) == (len(actions), np.count_nonzero(actions == UP))
    assert episode.entropy == pytest.approx(entropy(probabilities).sum())
    assert abs(episode.episode_return) in range(1, 22)


def test_an_episode_does_not_depend_on_what_was_played_before():
    params = init_params(make_rng(0, "params"), hidden=5)
    used, fresh = (
        Player(find_protocol("ALE/Pong-v5", max_frames=300), "reinforce") for _ in range(2)
    )
    for index in range(4):
        used.play(Item("train", 1, 1, index), params)
    (one,), (two,) = (each.play(Item("train", 2, 1, 0), params).sides for each in (used, fresh))
    for name, array in vars(one).items():
        np.testing.assert_array_equal(array, getattr(two, name))


def test_statistics_of_an_episode_by_hand():
    episode = Episode(5, 20, entropy=2 * np.log(2), ups=3, ends=(1, 3, 4), rewards=(1, -1, -1))
    line = episode.line()
    assert (line["episode_return"], line["points_won"], line["points_lost"]) == (-1.0, 1, 2)
    assert (line["up_share"], line["entropy"]) == (0.6, pytest.approx(2 * np.log(2) / 5))
    assert "opponent" not in line


def test_no_two_purposes_or_places_share_their_numbers():
    first = {
        make_rng(seed, purpose, update, index).random()
        for seed in (0, 1)
        for purpose in ("train", "evaluate")
        for update in (1, 2)
        for index in (0, 1)
    }
    assert len(first) == 16
