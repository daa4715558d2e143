"""The mathematics: hand numbers, slow oracles, gradient checks."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sparse import draw_minibatch, draw_network, draw_parts, draw_steps, is_near_a_kink

from pixelpong.items import DOWN, NUM_PIXELS, UP
from pixelpong.kernels import reinforce
from pixelpong.learn import gated
from pixelpong.learn.network import forward, init_params, sigmoid
from pixelpong.learn.optimizer import adam, rmsprop
from pixelpong.learn.ppo import LossWeights, generalized_advantages, loss_gradient
from pixelpong.learn.reinforce import entropy, episode_gradient, objective
from pixelpong.learn.returns import discounted_returns, standardize
from pixelpong.pong import features

# --- the classic mode -------------------------------------------------------------------------


@pytest.mark.parametrize("form", [discounted_returns, reinforce.discounted_returns])
@given(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.0]), max_size=60), st.floats(0, 1))
def test_returns_equal_the_literal_double_loop(form, rewards, gamma):
    returns = form(np.array(rewards, np.float32), gamma)
    assert len(returns) == len(rewards)
    for t, value in enumerate(returns):
        total = 0.0
        for k, reward in enumerate(rewards[t:]):
            total += gamma**k * reward
            if reward != 0:
                break
        assert value == pytest.approx(total, abs=1e-12)


@given(hnp.arrays(np.float64, st.integers(0, 50), elements=st.floats(-1, 1)))
@example(np.zeros(0))
@example(np.full(3, -0.1))
def test_standardised_values_have_mean_zero_and_deviation_one_or_are_all_zero(values):
    result = standardize(values)
    assert np.isfinite(result).all()
    if len(set(values.tolist())) < 2:
        assert result.tolist() == [0.0] * len(values)
    elif np.ptp(values) > 1e-6:
        assert result.mean() == pytest.approx(0, abs=1e-8)
        assert result.std() == pytest.approx(1)


def test_sigmoid_never_overflows():
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


def test_gradient_is_the_slope_of_the_formula_in_every_parameter():
    """Central differences of Σ A log π; no argument is written to."""
    rng = np.random.default_rng(9)
    params = {"W1": rng.standard_normal((8, 3)), "W2": rng.standard_normal(3)}
    x, actions = rng.choice([-1.0, 0.0, 1.0], (4, 8)), np.array([UP, DOWN, DOWN, UP])
    problem = params, x, actions, rng.standard_normal(4)
    p, _ = forward(params, x)
    logs = np.log([p[0], 1 - p[1], 1 - p[2], p[3]])
    assert objective(*problem) == pytest.approx(float(problem[3] @ logs))
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


def test_rmsprop_takes_two_steps_as_by_hand():
    params, cache, grads = ({"w": np.array([value])} for value in (1.0, 0.0, 2.0))
    one, cache_one = rmsprop(params, grads, cache, 0.1, 0.9)
    assert cache_one["w"][0] == pytest.approx(0.4)
    assert one["w"][0] == pytest.approx(1 + 0.1 * 2 / (math.sqrt(0.4) + 1e-5))
    two, cache_two = rmsprop(one, grads, cache_one, 0.1, 0.9)
    assert cache_two["w"][0] == pytest.approx(0.9 * 0.4 + 0.1 * 4)
    assert two["w"][0] == pytest.approx(one["w"][0] + 0.1 * 2 / (math.sqrt(0.76) + 1e-5))
    assert (params["w"][0], cache["w"][0]) == (1.0, 0.0)


# --- the fast mode ----------------------------------------------------------------------------


def test_a_cell_is_on_where_any_of_its_pixels_is():
    """A literal loop over shapes, cells and pixels."""
    field = np.random.default_rng(0).random((80, 80)) < 0.01
    wanted = [
        any(field[row + i, column + j] for i in range(rows) for j in range(columns))
        for rows, columns in features.CELL_SHAPES
        for row in range(0, 80, rows)
        for column in range(0, 80, columns)
    ]
    assert features.find_cells(field).tolist() == wanted
    assert len(wanted) == features.NUM_CELLS


def test_what_stays_appears_and_vanishes_has_inputs_of_its_own():
    previous, current = np.zeros((80, 80)), np.zeros((80, 80))
    previous[0, 0] = current[0, 0] = 1  # stays
    current[40, 40] = 1  # appears
    previous[79, 79] = 1  # vanishes
    x = features.observe_features(previous, current, last_action=1)
    parts = x[:-3].reshape(3, features.NUM_FEATURES)
    assert parts[:, : features.NUM_CELLS].sum(axis=1).tolist() == [len(features.CELL_SHAPES)] * 3
    # One pair each: what stays with what appears, and with what vanishes.
    assert parts[:, features.NUM_CELLS :].sum(axis=1).tolist() == [0, 1, 1]
    assert x[-3:].tolist() == [0, 1, 0]


def test_a_pair_is_a_displacement_of_two_cells_and_the_rights_band():
    """A literal loop over bands and displacements."""
    field = np.random.default_rng(0).random((80, 80)) < 0.0005
    rows, columns = features.PAIR_SHAPE
    cells = {(y // rows, x // columns) for y, x in np.argwhere(field).tolist()}
    wanted = []
    for band in range(0, features.PAIR_COLUMNS, features.PAIR_BAND):
        for left in range(1, band + features.PAIR_BAND):
            for below in range(1 - features.PAIR_ROWS, features.PAIR_ROWS):
                others = [(row + below, column - left) for row, column in cells
                          if band <= column < band + features.PAIR_BAND]  # fmt: skip
                wanted.append(any(other in cells for other in others))
    assert any(wanted)
    assert features.find_pairs(field).tolist() == wanted
    assert len(wanted) == features.NUM_PAIRS


@given(seed=st.integers(0, 2**32 - 1), gamma=st.floats(0, 1), gae_lambda=st.floats(0, 1))
def test_advantages_are_weighted_sums_of_errors(seed, gamma, gae_lambda):
    """A literal double loop: A_t = Σ_k (gamma λ)ᵏ δ_{t+k}, up to the end of the point."""
    rng = np.random.default_rng(seed)
    rewards = rng.choice([0.0, 0.0, 1.0, -1.0], (2, 9))
    is_end, values = rewards != 0, rng.standard_normal((2, 10))
    got = generalized_advantages(rewards, is_end, values, gamma, gae_lambda)
    for n in range(2):
        for t in range(9):
            wanted, weight = 0.0, 1.0
            for k in range(t, 9):
                following = 0.0 if is_end[n, k] else gamma * values[n, k + 1]
                wanted += weight * (rewards[n, k] + following - values[n, k])
                if is_end[n, k]:
                    break
                weight *= gamma * gae_lambda
            assert got[n, t] == pytest.approx(wanted, abs=1e-12)


def literal_losses(y, batch, weights, parts):
    """The formulas of the module, step by step, in plain floats; in the order of `LossStats`."""
    for m, outputs in enumerate(y.tolist()):
        logits = [outputs[a] + sum(outputs[k] for k in each) for a, each in enumerate(parts)]
        for a, preference in enumerate(batch.preferences[m]):
            logits[a] += preference
        exps = [np.exp(logit) for logit in logits]
        pi = [e / sum(exps) for e in exps]
        ratio = pi[batch.actions[m]] / np.exp(batch.log_probabilities[m])
        clipped = min(max(ratio, 1 - weights.clip_coef), 1 + weights.clip_coef)
        gain = batch.advantages[m]
        error = outputs[len(parts)] - batch.targets[m]
        entropy = -sum(p * np.log(p) for p in pi)
        loss = -min(ratio * gain, clipped * gain)
        loss += weights.vf_coef * error**2 / 2 - weights.ent_coef * entropy
        yield loss, error**2, entropy, ratio - 1 - np.log(ratio), clipped * gain < ratio * gain


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 12))
def test_the_loss_is_the_formulas_and_its_gradient_theirs(seed, size):
    rng = np.random.default_rng(seed)
    parts = draw_parts(rng)
    y, batch = draw_minibatch(rng, size, parts)
    weights = LossWeights(*rng.random(3))

    def literal(y):
        return np.mean([*literal_losses(y, batch, weights, parts)], axis=0)

    dy, stats = loss_gradient(y, batch, weights, parts)
    assert list(stats) == pytest.approx(literal(y).tolist(), abs=1e-12)
    direction, step = rng.standard_normal(y.shape), 1e-6
    up, down = (literal(y + s * direction)[0] for s in (step, -step))
    if not is_near_a_kink(y, batch, weights, parts):
        slope = (up - down) / (2 * step)
        assert slope == pytest.approx(float((dy * direction).sum()), abs=1e-7, rel=1e-6)


def test_the_gated_networks_gradient_is_its_slope():
    """Central differences in random directions, float64, every parameter."""
    rng = np.random.default_rng(5)
    params, (_, _, x) = draw_network(rng, 7, np.float64), draw_steps(rng, 6)
    weights = rng.standard_normal((6, 4))
    _, z = gated.forward(params, x)
    grads = gated.backward(params, x, z, weights)
    for name, w in params.items():
        direction, step = rng.standard_normal(w.shape), 1e-6
        up, down = (
            float((gated.forward(params | {name: w + s * direction}, x)[0] * weights).sum())
            for s in (step, -step)
        )
        slope = float((grads[name] * direction).sum())
        assert (up - down) / (2 * step) == pytest.approx(slope, rel=1e-6)


def test_adam_takes_two_steps_as_by_hand():
    w, m, v = (np.array([value]) for value in (1.0, 0.0, 0.0))
    one, m1, v1 = adam(w, np.array([2.0]), m, v, 0.1, 1)
    assert (m1[0], v1[0]) == (pytest.approx(0.1 * 2), pytest.approx(0.001 * 4))
    assert one[0] == pytest.approx(1 - 0.1 * 2 / (2 + 1e-5)), "both means are corrected"
    two, m2, v2 = adam(one, np.array([4.0]), m1, v1, 0.1, 2)
    assert (m2[0], v2[0]) == (pytest.approx(0.58), pytest.approx(0.019996))
    mean, square = 0.58 / 0.19, 0.019996 / 0.001999
    assert two[0] == pytest.approx(one[0] - 0.1 * mean / (math.sqrt(square) + 1e-5))
    assert (w[0], m[0], v[0]) == (1.0, 0.0, 0.0)


def test_the_constants_of_both_optimizers_halve_a_step_of_their_own_size():
    """A gradient as small as the constant; it is added outside the root."""
    tiny, nothing = np.array([1e-5]), np.zeros(1)
    assert adam(nothing, tiny, nothing, nothing, 1.0, 1)[0][0] == pytest.approx(-0.5)
    one, _ = rmsprop({"w": nothing}, {"w": tiny}, {"w": nothing}, 1.0, 0.0)
    assert one["w"][0] == pytest.approx(0.5)


def test_initial_outputs_are_near_zero_and_pre_activations_near_one():
    """With a hundred inputs that are 1 in the fast network."""
    params = gated.init_params(
        np.random.default_rng(0), 3000, 4, 100, "float64", typical_inputs=100
    )
    x = (np.random.default_rng(1).random((200, 3000)) < 100 / 3000).astype(np.float64)
    y, z = gated.forward(params, x)
    assert z.std() == pytest.approx(1, rel=0.05)
    assert params["W2"].std() == pytest.approx(0.01, rel=0.05)
    assert (np.abs(y).max() < 1, params["b2"].tolist()) == (True, [0, 0, 0, 0])
    plain = init_params(np.random.default_rng(0), hidden=400)["W2"]
    assert plain.std() * math.sqrt(400) == pytest.approx(1, rel=0.1)
