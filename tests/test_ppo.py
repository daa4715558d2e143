"""The fast mode's mathematics: its definitions against literal loops, its kernels against those."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_kernels import (
    FULL,
    TOLERANCE,
    assert_close,
    colour,
    compiled_alone,
    screens,
    start_seeing,
    take_field,
)

from pixelpong import kernels
from pixelpong.env import features
from pixelpong.env.preprocess import pack_field, preprocess
from pixelpong.items import ACTIONS
from pixelpong.kernels import playing
from pixelpong.learn import gated
from pixelpong.learn.optimizer import ADAM_DECAYS, adam
from pixelpong.learn.ppo import (
    LossWeights,
    Minibatch,
    generalized_advantages,
    log_softmax,
    loss_gradient,
)
from pixelpong.play.networks import GatedNetwork

DTYPES = [np.float32, np.float64]

find_inputs = compiled_alone(playing.observe_features)
D = 30  # inputs in the tests of the network: its arithmetic does not know what they mean


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


@pytest.mark.slow
@settings(max_examples=50)
@given(
    frames=st.lists(screens(), min_size=1, max_size=4),
    last_action=st.integers(0, 2),
    is_kept=st.booleans(),
)
@example(frames=[FULL, np.zeros_like(FULL)], last_action=1, is_kept=True)
def test_sparse_features_equal_their_definition(frames, last_action, is_kept):
    """Whether the features of the frame before were kept, or have to be found again."""
    stream, parts = start_seeing()
    marks, count = np.zeros((4, kernels.NUM_MARKS), np.uint16), np.zeros(1, np.int64)
    seen = marks, count, np.zeros(6400, np.uint16)
    indices = np.zeros(7 + kernels.MAX_INPUTS, np.uint16)
    before = np.zeros((80, 80))
    sight = features.list_cells_of_pixels(), features.list_geometry()
    stream["sides"]["last_action"] = last_action
    for screen in frames:
        take_field(pack_field(screen), parts[0], parts[2])
        if not is_kept:
            marks[:2], count[:] = 0, -1
        end = find_inputs(sight, parts, 0, seen, indices, 7)
        now = preprocess(colour(screen))
        wanted = np.flatnonzero(features.observe_features(before, now, last_action))
        assert sorted(indices[7:end].tolist()) == wanted.tolist()
        assert not marks[1 - stream["memory"]["newest"][0]].any()
        before = now


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


def draw_minibatch(rng, size, dtype=np.float64):
    y = rng.standard_normal((size, 4)).astype(dtype)
    actions = rng.integers(0, 3, size)
    played = log_softmax(y[:, :3] + 0.5 * rng.standard_normal((size, 3)))
    log_probabilities = played[np.arange(size), actions]
    return y, Minibatch(actions, log_probabilities, *rng.standard_normal((2, size)))


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
    # The loss has a kink where a ratio is clipped; so near to one no difference is a slope.
    ratio = np.exp(log_softmax(y[:, :3])[np.arange(size), batch.actions] - batch.log_probabilities)
    if np.abs(np.abs(ratio - 1) - weights.clip_coef).min() > 1e-4:
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


def draw_network(rng, hidden, dtype):
    params = gated.init_params(rng, D, hidden, np.dtype(dtype).name)
    params["W2"] *= dtype(100)
    params["b2"] += rng.standard_normal(4).astype(dtype)
    return params


def draw_steps(rng, steps):
    """Lists of active inputs as a trajectory has them, and the same as a matrix."""
    lists = [rng.permutation(D)[: rng.integers(0, 12)] for _ in range(steps)]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    x = np.zeros((steps, D))
    for t, each in enumerate(lists):
        x[t, each] = 1
    return np.concatenate(lists).astype(np.uint16), offsets, x


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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=30)
@given(
    frames=st.lists(screens(), min_size=1, max_size=3),
    draws=st.lists(st.floats(-1, 1, exclude_max=True), min_size=3, max_size=3),
    seed=st.integers(0, 2**32 - 1),
    hidden=st.integers(1, 40),
)
@example(frames=[FULL], draws=[0.5], seed=0, hidden=3)
def test_a_decision_is_the_networks_policy_and_value(dtype, frames, draws, seed, hidden):
    rng = np.random.default_rng(seed)
    params = gated.init_params(rng, features.NUM_INPUTS, hidden, np.dtype(dtype).name)
    params["W2"] *= dtype(100)
    player = GatedNetwork(params)
    before, last_action = np.zeros((80, 80)), 0
    for screen, draw in zip(frames, draws, strict=False):
        asked = player.act(screen, draw)
        now = preprocess(colour(screen))
        x = features.observe_features(before, now, last_action)
        y = gated.forward(params, x[None].astype(dtype))[0].astype(np.float64)
        log_pi = log_softmax(y[:, :3])[0]
        # A logit's rounding error is as large as its largest summand's.
        error = TOLERANCE[dtype] * max(float(np.abs(y).max()), 1.0) * 10
        (step,) = player.steps
        action = step["action"]
        assert sorted(player.inputs().tolist()) == np.flatnonzero(x).tolist()
        ends = np.exp(log_pi).cumsum()
        if draw < 0:
            assert log_pi[action] >= log_pi.max() - error
        elif np.abs(ends - draw).min() > error:
            assert action == np.searchsorted(ends[:2], draw, "right")
        assert step["log_probability"] == pytest.approx(log_pi[action], abs=error)
        assert step["value"] == pytest.approx(y[0, 3], abs=error)
        assert step["entropy"] == pytest.approx(-(np.exp(log_pi) * log_pi).sum(), abs=error)
        assert asked == ACTIONS[action]
        before, last_action = now, action
        assert player.stream["sides"]["last_action"][0, 0] == last_action


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 20))
def test_the_steps_of_each_input_are_those_at_which_it_is_1(seed, steps):
    rng = np.random.default_rng(seed)
    indices, offsets, x = draw_steps(rng, steps)
    chosen = np.sort(rng.permutation(steps)[: rng.integers(1, steps + 1)])
    rows, numbers = (np.full(size, 999, np.uint16) for size in (D, len(indices)))
    place, starts = (np.full(size, -1, np.int32) for size in (D, D + 1))
    count = kernels.list_steps(
        indices, offsets.astype(np.int32), chosen, place, rows, starts, numbers
    )
    assert rows[:count].tolist() == np.flatnonzero(x[chosen].any(axis=0)).tolist()
    for k in range(count):
        wanted = np.flatnonzero(x[chosen, rows[k]])
        assert numbers[starts[k] : starts[k + 1]].tolist() == wanted.tolist()
    assert starts[count] == x[chosen].sum()


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 20), columns=st.integers(1, 70))
def test_sums_of_rows_are_a_product_of_matrices(dtype, seed, steps, columns):
    rng = np.random.default_rng(seed)
    indices, offsets, x = draw_steps(rng, steps)
    W1, totals = rng.standard_normal((D, columns)), np.full((steps, columns), np.nan, dtype)
    starts, stops = offsets[:-1].astype(np.int32), offsets[1:].astype(np.int32)
    kernels.sum_rows(W1.astype(dtype), indices, starts, stops, totals)
    assert_close(totals, (x @ W1).astype(dtype), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), hidden=st.integers(1, 20), steps=st.integers(1, 20))
def test_a_piece_is_differentiated_as_the_definitions_say(dtype, seed, hidden, steps):
    """Outputs, loss, gradient in the outputs, and back: one kernel, three definitions."""
    rng = np.random.default_rng(seed)
    params, weights = draw_network(rng, hidden, dtype), LossWeights(*rng.random(3))
    z = rng.standard_normal((steps, hidden, 2)).astype(dtype)
    y = gated.read_out(params, z).astype(np.float64)
    _, batch = draw_minibatch(rng, steps)
    wanted_dy, wanted = loss_gradient(y, batch, weights)
    # Every step is a line of the unit matrix: then its gradient in W1 is that in z.
    unit = params | {"W1": np.zeros((steps, hidden, 2), dtype)}
    grads = gated.backward(unit, np.eye(steps, dtype=dtype), z, wanted_dy.astype(dtype))
    W2, dW2 = output_layer(params), np.full((4, 2 * hidden + 1), np.nan, dtype)
    h = np.ones((2, 2 * hidden + 1), dtype)
    played = np.column_stack([*dataclasses.astuple(batch)])
    numbers, sums = np.array([*dataclasses.astuple(weights), steps]), np.full(5, np.nan)
    flat = z.reshape(steps, -1).copy()
    kernels.differentiate(W2, flat, played, numbers, h, np.zeros(4), dW2, sums)
    ratio = np.exp(log_softmax(y[:, :3])[np.arange(steps), batch.actions] - batch.log_probabilities)
    if np.abs(np.abs(ratio - 1) - weights.clip_coef).min() < 1e-4:
        return  # so near to the kink that rounding decides on which side
    assert_close(flat, grads["W1"].reshape(steps, -1), dtype)
    assert_close(dW2, output_layer(grads), dtype)
    np.testing.assert_allclose(
        sums / steps,
        dataclasses.astuple(wanted),
        rtol=100 * TOLERANCE[dtype],
        atol=TOLERANCE[dtype],
    )


def output_layer(params):
    """As the kernels have it: weights of max(a, 0), of max(a, 0) b, the bias."""
    W2 = params["W2"]
    return np.concatenate([W2[..., 0], W2[..., 1], params["b2"][:, None]], axis=1)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), rate=st.floats(0, 1), step=st.integers(1, 10_000))
def test_adam_on_some_rows_equals_its_definition_there(dtype, seed, rate, step):
    rng = np.random.default_rng(seed)
    w, g, m = rng.standard_normal((3, D, 9)).astype(dtype)
    v = rng.random((D, 9)).astype(dtype)
    wanted = adam(w, g, m, v, rate, step)
    rows = rng.permutation(D)[: rng.integers(0, D + 1)].astype(np.uint16)
    ours, squares = [array.copy() for array in (w, m, v)], np.full(9, np.nan, dtype)
    scales = np.array([rate / (1 - ADAM_DECAYS[0] ** step), 1 / (1 - ADAM_DECAYS[1] ** step)])
    kernels.adam_rows(ours[0], g[rows], ours[1], ours[2], rows, scales, squares)
    np.testing.assert_allclose(
        squares, (g[rows].astype(float) ** 2).sum(axis=0), rtol=TOLERANCE[dtype]
    )
    others = np.setdiff1d(np.arange(D), rows)
    for got, before, after in zip(ours, (w, m, v), wanted, strict=True):
        np.testing.assert_array_equal(got[others], before[others])
        assert_close(got[rows], after[rows], dtype)


def test_inputs_fit_the_type_of_the_indices():
    assert np.iinfo(np.uint16).max >= features.NUM_INPUTS
