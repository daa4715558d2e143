"""The fast mode's mathematics: its definitions against literal loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparse import draw_minibatch, draw_network, draw_steps, is_near_a_kink

from pixelpong.env import features
from pixelpong.learn import gated
from pixelpong.learn.ppo import (
    LossWeights,
    Minibatch,
    generalized_advantages,
    log_softmax,
    loss_gradient,
)

# --- what is seen -----------------------------------------------------------------------------


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


# --- advantages -------------------------------------------------------------------------------


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


# --- loss -------------------------------------------------------------------------------------


def literal_loss(y, batch, weights):
    """The formulas of the module, step by step, in plain floats."""
    total = 0.0
    for m, outputs in enumerate(y.tolist()):
        exps = [np.exp(logit) for logit in outputs[:3]]
        pi = [e / sum(exps) for e in exps]
        ratio = pi[batch.actions[m]] / np.exp(batch.log_probabilities[m])
        clipped = min(max(ratio, 1 - weights.clip_coef), 1 + weights.clip_coef)
        gain = batch.advantages[m]
        total -= min(ratio * gain, clipped * gain)
        total += weights.vf_coef * (outputs[3] - batch.targets[m]) ** 2 / 2
        total += weights.ent_coef * sum(p * np.log(p) for p in pi)
    return total / len(y)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 12))
def test_the_loss_is_the_formulas_and_its_gradient_theirs(seed, size):
    rng = np.random.default_rng(seed)
    y, batch = draw_minibatch(rng, size)
    weights = LossWeights(*rng.random(3))
    dy, stats = loss_gradient(y, batch, weights)
    assert stats.loss == pytest.approx(literal_loss(y, batch, weights), abs=1e-12)
    direction, step = rng.standard_normal(y.shape), 1e-6
    up, down = (literal_loss(y + s * direction, batch, weights) for s in (step, -step))
    if not is_near_a_kink(y, batch, weights):
        slope = (up - down) / (2 * step)
        assert slope == pytest.approx(float((dy * direction).sum()), abs=1e-7, rel=1e-6)


def test_at_the_first_step_ppo_is_reinforce():
    """Ratio 1, no value, no entropy: the gradient is −(label − π) A / M."""
    rng = np.random.default_rng(3)
    y, batch = draw_minibatch(rng, 20)
    log_pi = log_softmax(y[:, :3])
    played = Minibatch(
        batch.actions, log_pi[np.arange(20), batch.actions], batch.advantages, batch.targets
    )
    dy, stats = loss_gradient(y, played, LossWeights(0.2, 0.0, 0.0))
    labels = np.eye(3)[batch.actions]
    wanted = -(labels - np.exp(log_pi)) * batch.advantages[:, None] / 20
    np.testing.assert_allclose(dy[:, :3], wanted)
    assert not dy[:, 3].any()
    assert (stats.clip_share, stats.kl) == (0.0, pytest.approx(0.0, abs=1e-15))


# --- network ----------------------------------------------------------------------------------


def test_the_networks_gradient_is_its_slope():
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


def test_inputs_fit_the_type_of_the_indices():
    assert np.iinfo(np.uint16).max >= features.NUM_INPUTS
