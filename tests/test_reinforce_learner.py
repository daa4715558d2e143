"""The learner: order of sums, the step, the guards, the count."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pixelpong.engines.serial import SerialEngine
from pixelpong.errors import CheckpointError, NumericsError
from pixelpong.items import NUM_PIXELS, SparseGrads
from pixelpong.learn.optimizer import rmsprop
from pixelpong.learners.progress import Progress
from pixelpong.learners.reinforce import ReinforceLearner
from pixelpong.play import sums
from pixelpong.play.sums import GradientSum
from pixelpong.play.worker import make_worker
from pixelpong.run.checkpoints import fingerprint


def play_batch(config, learner):
    return list(SerialEngine(lambda: make_worker(config)).run(learner.items(), learner.params))


def dense_sum(results, params):
    total = {name: np.zeros_like(w) for name, w in params.items()}
    for result in results:
        total["W1"][result.grads.rows.astype(int)] += result.grads.W1
        total["W2"] += result.grads.W2
    return total


def test_items_name_everything_an_episode_depends_on(catch):
    learner = ReinforceLearner(catch)
    items = learner.items()
    assert [(item.purpose, item.seed, item.update, item.index) for item in items] == [
        ("train", 0, 1, 0), ("train", 0, 1, 1), ("train", 0, 1, 2),
    ]  # fmt: skip
    learner.apply(play_batch(catch, learner))
    assert {item.update for item in learner.items()} == {2}


def test_an_update_is_one_step_of_rmsprop_on_the_sum_over_the_batch(catch):
    learner = ReinforceLearner(catch)
    before = {name: w.copy() for name, w in learner.params.items()}
    zeros = {name: np.zeros_like(w) for name, w in before.items()}
    results = play_batch(catch, learner)
    total = dense_sum(results, before)
    wanted, wanted_cache = rmsprop(before, total, zeros, 3e-3, 0.99)
    stats = learner.apply(results)
    for name in before:
        np.testing.assert_allclose(learner.params[name], wanted[name], rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(learner.cache[name], wanted_cache[name], rtol=2e-6)
    norm = np.sqrt(sum(float((g.astype(float) ** 2).sum()) for g in total.values()))
    assert stats.grad_norm == pytest.approx(norm, rel=1e-5)


def test_groups_as_items_give_the_bits_of_single_episodes(catch, monkeypatch):
    """Three groups, the last one smaller: added up by workers, and by the learner."""
    config = catch.updated({"batch_size": 45, "hidden": 5}, "test")
    one, two = ReinforceLearner(config), ReinforceLearner(config)
    one.apply(play_batch(config, one))
    monkeypatch.setattr(sums, "LARGE_BATCH", 45)
    assert [item.games for item in two.items()] == [20, 20, 5]
    two.apply(play_batch(config, two))
    assert fingerprint(one.params) == fingerprint(two.params)
    assert fingerprint(one.cache) == fingerprint(two.cache)
    assert vars(one.progress) == vars(two.progress)


def test_episodes_an_item_follow_from_the_batch_alone(catch):
    for size, items in ((299, 299), (300, 15), (301, 16)):
        learner = ReinforceLearner(catch.updated({"batch_size": size, "hidden": 1}, "test"))
        assert len(learner.items()) == items
        assert sum(item.games for item in learner.items()) == size


def test_a_batch_of_one_group_is_added_up_episode_after_episode(catch):
    """As in the originals, and as in every run from before there were groups."""
    results = play_batch(catch, ReinforceLearner(catch))
    total = GradientSum(catch.network.hidden, catch.network.dtype)
    for result in results:
        total.add(result.grads)
    wanted = dense_sum(results, ReinforceLearner(catch).params)
    for name, w in total.arrays.items():
        np.testing.assert_array_equal(w, wanted[name])


def test_gradients_do_not_leak_into_the_next_update(catch):
    one, two = ReinforceLearner(catch), ReinforceLearner(catch)
    results = play_batch(catch, one)
    one.apply(results)
    two.apply(results)
    silent = [
        dataclasses.replace(r, grads=SparseGrads(r.grads.rows[:0], r.grads.W1[:0], 0 * r.grads.W2))
        for r in results
    ]
    before = one.params["W1"].copy()
    one.apply(silent)
    np.testing.assert_array_equal(one.params["W1"], before)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["W1", "W2"])
def test_a_number_that_is_not_finite_stops_before_anything_is_changed(catch, value, name):
    learner = ReinforceLearner(catch)
    results = play_batch(catch, learner)
    getattr(results[1].grads, name)[..., 0] = value
    before = [w.copy() for w in (*learner.params.values(), *learner.cache.values())]
    with pytest.raises(NumericsError, match=rf"in {name} of the gradient of update 1, got \d+"):
        learner.apply(results)
    after = (*learner.params.values(), *learner.cache.values())
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
    assert learner.progress.update == learner.progress.episodes == 0


def test_parameters_that_overflow_are_named(catch):
    learner = ReinforceLearner(catch)
    learner.params["W2"][3] = np.inf
    with pytest.raises(NumericsError, match="W2 of the parameters after update 0, got 1 that are"):
        learner.get_state()


def test_a_gradient_whose_squares_do_not_fit_is_refused(catch):
    """Its square is no float32: RMSProp's memory would be infinite, and stay so."""
    learner = ReinforceLearner(catch)
    results = play_batch(catch, learner)
    results[0].grads.W2[0] = 1e30
    with pytest.raises(NumericsError, match=r"in W2 of the gradient of update 1, got .* to 1e\+60"):
        learner.apply(results)


@settings(max_examples=200)
@given(
    g=st.floats(-(2.0**64), 2.0**64, width=32),
    c=st.floats(0, 2.0**126, width=32),
    decay=st.floats(0, 1),
    rate=st.floats(0, 10),
)
def test_what_passes_the_guard_keeps_parameters_and_memory_finite(g, c, decay, rate):
    from pixelpong import kernels

    w, g, c = (np.array([[value]], np.float32) for value in (1.0, g, c))
    row, squares = np.zeros(1, np.uint16), np.zeros(1)
    kernels.sum_of_squares(g, row, squares)
    if squares.sum() < float(np.finfo(np.float32).max):
        kernels.rmsprop(w, g, c, row, rate, decay)
        assert np.isfinite(w).all()
        assert np.isfinite(c).all()


def test_the_count_goes_on_over_a_saved_state(catch):
    learner = ReinforceLearner(catch)
    learner.apply(play_batch(catch, learner))
    other = ReinforceLearner(catch)
    params, cache, counters = learner.get_state()
    other.set_state(
        {name: w.copy() for name, w in params.items()},
        {name: c.copy() for name, c in cache.items()},
        counters,
    )
    for each in (learner, other):
        each.apply(play_batch(catch, each))
    assert learner.progress == other.progress
    np.testing.assert_array_equal(learner.params["W1"], other.params["W1"])


@pytest.mark.parametrize("changes", [{"hidden": 21}, {"dtype": "float64"}])
def test_the_state_of_another_network_is_refused(catch, changes):
    other = ReinforceLearner(catch.updated(changes, "test"))
    with pytest.raises(CheckpointError, match=r"expected arrays .*W1.*; resume with the"):
        ReinforceLearner(catch).set_state(*other.get_state())


def test_running_mean_is_the_seeds():
    from pixelpong.items import EpisodeStats

    progress = Progress()
    for value in (-21.0, -19.0):
        progress.count(10, 40, [-1, 1, -1])
        progress.end_episode(EpisodeStats(value, 10, 40, 0, 21, (), (), 0.5, 0.5, 0.0))
    assert progress.running_mean == pytest.approx(-21 * 0.99 - 19 * 0.01)
    assert progress.mean_return_100 == -20.0
    assert (progress.episodes, progress.steps, progress.frames) == (2, 20, 80)
    assert Progress.from_dict(dataclasses.asdict(progress)) == progress


def test_the_mean_is_over_the_last_hundred_episodes():
    from pixelpong.items import EpisodeStats

    progress = Progress()
    for value in [21.0] * 50 + [-21.0] * 100:
        progress.end_episode(EpisodeStats(value, 1, 4, 0, 0, (), (), 0.0, 0.0, 0.0))
    assert progress.mean_return_100 == -21.0
    assert Progress().mean_return_100 is None


def test_sparse_gradient_of_an_early_episode_is_below_a_megabyte():
    """The seeds move 10.2 MB an episode."""
    from pixelpong.config.presets import load_preset

    config = load_preset("classic").updated({"batch_size": 1}, "test")
    learner = ReinforceLearner(config)
    (result,) = play_batch(config, learner)
    assert len(result.grads.rows) < NUM_PIXELS / 4
    assert result.grads.W1.nbytes < 1_000_000
