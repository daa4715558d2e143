"""The mathematics: hand numbers, slow oracles, gradient checks."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pixelpong.items import DOWN, NUM_PIXELS, UP
from pixelpong.learn.network import forward, init_params, sigmoid
from pixelpong.learn.optimizer import rmsprop
from pixelpong.learn.reinforce import entropy, episode_gradient, objective
from pixelpong.learn.returns import discounted_returns, standardize

REWARDS = st.lists(st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.0]), max_size=60).map(np.array)


def test_returns_over_five_steps_by_hand():
    returns = discounted_returns(np.array([0.0, 0.0, 1.0, 0.0, -1.0]), 0.9)
    np.testing.assert_allclose(returns, [0.81, 0.9, 1.0, -0.9, -1.0], rtol=1e-15)


@given(REWARDS, st.floats(0, 1))
def test_returns_equal_the_literal_double_loop(rewards, gamma):
    for t, value in enumerate(discounted_returns(rewards, gamma)):
        total = 0.0
        for k, reward in enumerate(rewards[t:]):
            total += gamma**k * reward
            if reward != 0:
                break
        assert value == pytest.approx(total, abs=1e-12)


@given(hnp.arrays(np.float64, st.integers(2, 50), elements=st.floats(-1, 1)))
def test_standardised_values_have_mean_zero_and_deviation_one(values):
    result = standardize(values)
    assert np.isfinite(result).all()
    if np.ptp(values) > 1e-6:
        assert result.mean() == pytest.approx(0, abs=1e-8)
        assert result.std() == pytest.approx(1)


@pytest.mark.parametrize("values", [[], [0.3], [-0.1] * 3, [-1.0] * 21])
def test_equal_returns_say_nothing_and_divide_by_nothing(values):
    with np.errstate(all="raise"):
        assert standardize(np.array(values)).tolist() == [0.0] * len(values)


def test_sigmoid_never_overflows():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert sigmoid(np.array([-1e4, 1e4])).tolist() == [0.0, 1.0]
    z = np.linspace(-20, 20, 81)
    np.testing.assert_allclose(sigmoid(z), 1 / (1 + np.exp(-z)), rtol=1e-14)


def test_entropy_of_choosing_by_hand():
    p = np.array([0.0, 0.25, 0.5, 1.0])
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    np.testing.assert_allclose(entropy(p), [0, quarter, math.log(2), 0], rtol=1e-14)


def test_initial_weights_are_scaled_by_the_number_of_inputs():
    params = init_params(np.random.default_rng(0), hidden=50)
    assert params["W1"].shape == (NUM_PIXELS, 50)
    assert params["W1"].dtype == np.float32
    assert params["W1"].std() * math.sqrt(NUM_PIXELS) == pytest.approx(1, rel=0.01)
    double = init_params(np.random.default_rng(0), hidden=50, dtype="float64")
    np.testing.assert_array_equal(double["W1"].astype(np.float32), params["W1"])


def test_gradient_equals_central_differences_for_every_parameter():
    """And no argument is written to."""
    rng = np.random.default_rng(9)
    params = {"W1": rng.standard_normal((8, 3)), "W2": rng.standard_normal(3)}
    x, actions = rng.choice([-1.0, 0.0, 1.0], (4, 8)), rng.choice([UP, DOWN], 4)
    problem = params, x, actions, rng.standard_normal(4)
    before = copy.deepcopy(problem)
    grads = episode_gradient(*problem)
    np.testing.assert_equal(problem, before)
    for name, w in params.items():
        for index in np.ndindex(w.shape):
            values = []
            for sign in (1, -1):
                moved = w.copy()
                moved[index] += sign * 1e-6
                values.append(objective({**params, name: moved}, *problem[1:]))
            assert (values[0] - values[1]) / 2e-6 == pytest.approx(grads[name][index], abs=1e-6)


@pytest.mark.parametrize(("action", "label"), [(UP, 1), (DOWN, 0)])
def test_one_step_gradient_is_label_minus_probability_times_hidden(action, label):
    rng = np.random.default_rng(3)
    params = {"W1": rng.standard_normal((30, 6)), "W2": rng.standard_normal(6)}
    x = rng.choice([-1.0, 0.0, 1.0], (1, 30))
    (p,), (h,) = forward(params, x)
    grads = episode_gradient(params, x, np.array([action]), np.array([2.0]))
    np.testing.assert_allclose(grads["W2"], 2 * (label - p) * h)


def test_rmsprop_takes_two_steps_as_by_hand():
    params, cache = {"w": np.array([1.0])}, {"w": np.array([0.0])}
    grads = {"w": np.array([2.0])}
    one, cache_one = rmsprop(params, grads, cache, 0.1, 0.9)
    assert cache_one["w"][0] == pytest.approx(0.4)
    assert one["w"][0] == pytest.approx(1 + 0.1 * 2 / (math.sqrt(0.4) + 1e-5))
    two, cache_two = rmsprop(one, grads, cache_one, 0.1, 0.9)
    assert cache_two["w"][0] == pytest.approx(0.9 * 0.4 + 0.1 * 4)
    assert two["w"][0] == pytest.approx(one["w"][0] + 0.1 * 2 / (math.sqrt(0.76) + 1e-5))
    assert params["w"][0] == 1.0
    assert cache["w"][0] == 0.0
