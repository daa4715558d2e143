"""The learner: order of sums, the step, the guards, the count."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pixelpong.engines import Engine
from pixelpong.errors import CheckpointError
from pixelpong.items import BUILTIN, NUM_PIXELS, Episode, Result
from pixelpong.learn.optimizer import rmsprop
from pixelpong.learners.progress import Progress
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.play.worker import make_worker
from pixelpong.run.arrays import fingerprint
from pixelpong.schema import convert


def play_batch(config, learner):
    return list(Engine(lambda: make_worker(config)).run(learner.items(), learner.params))


def dense_sum(results, params):
    total = {name: np.zeros_like(w) for name, w in params.items()}
    for result in results:
        total["W1"][result.grads.rows.astype(int)] += result.grads.W1
        total["W2"] += result.grads.W2
    return total


def test_items_name_everything_an_episode_depends_on(toy):
    learner = ReinforceLearner(toy)
    items = learner.items()
    assert [(item.purpose, item.seed, item.update, item.index) for item in items] == [
        ("train", 0, 1, 0), ("train", 0, 1, 1), ("train", 0, 1, 2),
    ]  # fmt: skip
    learner.apply(play_batch(toy, learner))
    assert {item.update for item in learner.items()} == {2}


def test_an_update_is_one_step_of_rmsprop_on_the_sum_over_the_batch(toy):
    learner = ReinforceLearner(toy)
    before = {name: w.copy() for name, w in learner.params.items()}
    zeros = {name: np.zeros_like(w) for name, w in before.items()}
    results = play_batch(toy, learner)
    total = dense_sum(results, before)
    wanted, wanted_cache = rmsprop(before, total, zeros, 3e-3, 0.99)
    stats = learner.apply(results)
    for name in before:
        np.testing.assert_allclose(learner.params[name], wanted[name], rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(learner.own[f"v.{name}"], wanted_cache[name], rtol=2e-6)
    norm = np.sqrt(sum(float((g.astype(float) ** 2).sum()) for g in total.values()))
    assert stats.figures["grad_norm"] == pytest.approx(norm, rel=1e-5)


def test_groups_as_items_give_the_bits_of_single_episodes(toy, monkeypatch):
    """Three groups, the last one smaller: added up by workers, and by the learner."""
    config = toy.updated({"batch_size": 45, "hidden": 5}, "test")
    one, two = ReinforceLearner(config), ReinforceLearner(config)
    one.apply(play_batch(config, one))
    monkeypatch.setattr("pixelpong.play.worker.LARGE_BATCH", 45)
    assert [item.games for item in two.items()] == [20, 20, 5]
    two.apply(play_batch(config, two))
    assert fingerprint(one.params) == fingerprint(two.params)
    assert fingerprint(one.own) == fingerprint(two.own)
    assert vars(one.progress) == vars(two.progress)


def test_episodes_an_item_follow_from_the_batch_alone(toy):
    for size, items in ((299, 299), (300, 15), (301, 16)):
        learner = ReinforceLearner(toy.updated({"batch_size": size, "hidden": 1}, "test"))
        assert len(learner.items()) == items
        assert sum(item.games for item in learner.items()) == size


def test_the_count_goes_on_over_a_saved_state(toy):
    learner = ReinforceLearner(toy)
    learner.apply(play_batch(toy, learner))
    other = ReinforceLearner(toy)
    learner.params["W1"][learner.get_state()[0]["rows"][:2]] = [[-0.0], [1e-45]]  # odd ones
    arrays, counters = learner.get_state()
    assert 2 < len(arrays["rows"]) < NUM_PIXELS
    other.set_state({name: array.copy() for name, array in arrays.items()}, counters)
    assert fingerprint(other.params) == fingerprint(learner.params)
    for each in (learner, other):
        each.apply(play_batch(toy, each))
    assert learner.progress == other.progress
    np.testing.assert_array_equal(learner.params["W1"], other.params["W1"])


@pytest.mark.parametrize("changes", [{"hidden": 21}, {"dtype": "float64"}])
def test_the_state_of_another_network_is_refused(toy, changes):
    other = ReinforceLearner(toy.updated(changes, "test"))
    with pytest.raises(CheckpointError, match=r"got W1 of shape .*; resume with the"):
        ReinforceLearner(toy).set_state(*other.get_state())


def test_running_mean_is_the_seeds():
    progress = Progress()
    for ends in ((-1,) * 21, (1, 1) + (-1,) * 21):
        episode = Episode(10, 40, 5.0, 5, (), ends)
        progress.count([Result((episode,), 40, 0.0)], [(BUILTIN, -1)], 10, 5.0, 5)
    assert progress.running_mean == pytest.approx(-21 * 0.99 - 19 * 0.01)
    assert progress.mean_return_100 == -20.0
    assert (progress.episodes, progress.steps, progress.frames) == (2, 20, 80)
    assert convert(dataclasses.asdict(progress), Progress) == progress
