"""Every fast form equals its definition."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sparse import (
    FULL,
    TOLERANCE,
    active_of,
    as_played,
    assert_close,
    colour,
    compiled_alone,
    draw_minibatch,
    draw_network,
    draw_steps,
    find_difference,
    is_near_a_kink,
    random_trajectory,
    screens,
    start_seeing,
    take_field,
    up_probability,
)

from pixelpong import kernels
from pixelpong.env import features
from pixelpong.env.preprocess import difference, pack_field, preprocess
from pixelpong.items import ACTIONS, NUM_PIXELS, Played
from pixelpong.kernels import playing
from pixelpong.learn import gated, network, reinforce, returns
from pixelpong.learn.optimizer import ADAM_DECAYS, adam, rmsprop
from pixelpong.learn.ppo import LossWeights, log_softmax, loss_gradient
from pixelpong.play.networks import GatedNetwork

DTYPES = [np.float32, np.float64]
SEEDS = st.integers(0, 2**32 - 1)

find_inputs = compiled_alone(playing.observe_features)


# --- what is seen -----------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(
    frames=st.lists(screens(), min_size=1, max_size=4),
    last_action=st.integers(0, 2),
    is_kept=st.booleans(),
)
@example(frames=[FULL, np.zeros_like(FULL), FULL], last_action=1, is_kept=True)
def test_frame_after_frame_gives_the_dense_observations(frames, last_action, is_kept):
    """Pixels, differences, and features: those of the frame before are kept, or found again."""
    stream, parts = start_seeing()
    memory, _, fields = parts
    marks, count = np.zeros((4, kernels.NUM_MARKS), np.uint16), np.zeros(1, np.int64)
    seen = marks, count, np.zeros(6400, np.uint16)
    indices = np.zeros(7 + max(kernels.MAX_INPUTS, kernels.MAX_ACTIVE), np.uint16)
    sight = features.list_cells_of_pixels(), features.list_geometry()
    stream["sides"]["last_action"] = last_action
    previous = None
    for screen in frames:
        current = preprocess(colour(screen))
        np.testing.assert_array_equal(active_of(screen), np.flatnonzero(current))
        take_field(pack_field(screen), memory, fields)
        if not is_kept:
            marks[:2], count[:] = 0, -1
        end = find_inputs(sight, parts, 0, seen, indices, 7)
        before = np.zeros((80, 80)) if previous is None else previous
        wanted = np.flatnonzero(features.observe_features(before, current, last_action))
        assert sorted(indices[7:end].tolist()) == wanted.tolist()
        assert not marks[1 - memory["newest"][0]].any()
        found = indices[7 : find_difference(memory, fields, indices, 7)]
        assert (np.diff(found.astype(int) % NUM_PIXELS) > 0).all()
        one_step = np.zeros(1, kernels.PLAIN_STEP), found, np.array([0, len(found)])
        played = Played(*one_step, np.zeros((1, 0)))
        np.testing.assert_array_equal(played.dense()[0], difference(previous, current))
        stream["memory"]["steps"] += 1
        previous = current


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=30)
@given(
    frames=st.lists(screens(), min_size=1, max_size=3),
    draws=st.lists(st.floats(-1, 1, exclude_max=True), min_size=3, max_size=3),
    seed=SEEDS,
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


def test_up_probability_of_huge_logits_is_finite():
    W1, W2 = np.full((NUM_PIXELS, 3), 1e30), np.ones(3)
    h, one = np.zeros((1, 3)), np.zeros(1, np.uint16)
    assert up_probability((W1, W2), one, 0, 1, h, 0) == 1.0
    assert up_probability((W1, -W2), one, 0, 1, h, 0) == 0.0


# --- what is learned --------------------------------------------------------------------------


def decide(rng, dtype, size, hidden):
    params = network.init_params(rng, hidden, np.dtype(dtype).name)
    params["W1"] *= dtype(40)  # far from one half too
    trajectory = random_trajectory(rng, min(size, 4))
    h = np.ones((len(trajectory), hidden), dtype)
    wanted_p, wanted_h = network.forward(params, trajectory.dense(dtype))
    for t in range(len(trajectory)):
        start, stop = trajectory.offsets[t : t + 2]
        p = up_probability((params["W1"], params["W2"]), trajectory.indices, start, stop, h, t)
        assert p == pytest.approx(float(wanted_p[t]), abs=TOLERANCE[dtype])
    yield h, wanted_h


def add_up_an_episode(rng, dtype, size, hidden):
    params = network.init_params(rng, hidden, np.dtype(dtype).name)
    trajectory, weights = random_trajectory(rng, size), rng.standard_normal(size)
    trajectory = as_played(trajectory, params)
    sparse = kernels.episode_gradient(params["W2"], trajectory, weights)
    actions = trajectory.steps["action"]
    dense = reinforce.episode_gradient(params, trajectory.dense(dtype), actions, weights)
    total = np.zeros_like(params["W1"])
    kernels.add_rows(total, sparse.rows, sparse.W1)
    assert sparse.rows.tolist() == sorted(set(trajectory.indices.astype(int) % NUM_PIXELS))
    yield total, dense["W1"]
    yield sparse.W2, dense["W2"]


def step_by_rmsprop(rng, dtype, size, hidden):
    """On some rows; the others stay."""
    w, g = rng.standard_normal((2, size, hidden)).astype(dtype)
    c, (rate, decay) = rng.random((size, hidden)).astype(dtype), rng.random(2)
    rows = rng.permutation(size)[: rng.integers(0, size + 1)].astype(np.uint16)
    wanted, wanted_cache = (it["w"] for it in rmsprop({"w": w}, {"w": g}, {"w": c}, rate, decay))
    others = np.setdiff1d(np.arange(size), rows)
    wanted[others], wanted_cache[others] = w[others], c[others]
    kernels.rmsprop(w, g, c, rows, rate, decay)
    np.testing.assert_array_equal(w[others], wanted[others])
    yield w, wanted
    yield c, wanted_cache


def step_by_adam(rng, dtype, size, hidden):
    """On some rows; the others stay."""
    w, g, m = rng.standard_normal((3, size, hidden)).astype(dtype)
    v, rate, step = rng.random((size, hidden)).astype(dtype), rng.random(), rng.integers(1, 10_000)
    wanted = adam(w, g, m, v, rate, step)
    rows = rng.permutation(size)[: rng.integers(0, size + 1)].astype(np.uint16)
    ours, squares = [array.copy() for array in (w, m, v)], np.full(hidden, np.nan, dtype)
    scales = np.array([rate / (1 - ADAM_DECAYS[0] ** step), 1 / (1 - ADAM_DECAYS[1] ** step)])
    kernels.adam_rows(ours[0], g[rows], ours[1], ours[2], rows, scales, squares)
    wanted_squares = (g[rows].astype(float) ** 2).sum(axis=0)
    np.testing.assert_allclose(squares, wanted_squares, rtol=TOLERANCE[dtype])
    others = np.setdiff1d(np.arange(size), rows)
    for got, before, after in zip(ours, (w, m, v), wanted, strict=True):
        np.testing.assert_array_equal(got[others], before[others])
        yield got[rows], after[rows]


def add_rows_of_inputs(rng, dtype, size, hidden):
    """Those of each step, as a product of matrices; and the steps of each input."""
    indices, offsets, x = draw_steps(rng, size)
    W1, totals = rng.standard_normal((x.shape[1], hidden)), np.full((size, hidden), np.nan, dtype)
    offsets = offsets.astype(np.int32)
    kernels.sum_rows(W1.astype(dtype), indices, offsets[:-1], offsets[1:], totals)
    yield totals, (x @ W1).astype(dtype)
    chosen = np.sort(rng.permutation(size)[: rng.integers(1, size + 1)])
    rows, numbers = (np.full(length, 999, np.uint16) for length in (x.shape[1], len(indices)))
    place, starts = (np.full(x.shape[1] + more, -1, np.int32) for more in (0, 1))
    count = kernels.list_steps(indices, offsets, chosen, place, rows, starts, numbers)
    assert rows[:count].tolist() == np.flatnonzero(x[chosen].any(axis=0)).tolist()
    found = np.split(numbers[: starts[count]], starts[1:count])
    for row, steps in zip(rows[:count], found, strict=bool(count)):
        assert steps.tolist() == np.flatnonzero(x[chosen, row]).tolist()
    assert starts[count] == x[chosen].sum()


def differentiate(rng, dtype, size, hidden):
    """Outputs, loss, gradient in the outputs, and back: one kernel, three definitions."""
    params, weights = draw_network(rng, hidden, dtype), LossWeights(*rng.random(3))
    z = rng.standard_normal((size, hidden, 2)).astype(dtype)
    y = gated.read_out(params, z).astype(np.float64)
    _, batch = draw_minibatch(rng, size)
    wanted_dy, wanted = loss_gradient(y, batch, weights)
    # Every step is a line of the unit matrix: then its gradient in W1 is that in z.
    unit = params | {"W1": np.zeros((size, hidden, 2), dtype)}
    grads = gated.backward(unit, np.eye(size, dtype=dtype), z, wanted_dy.astype(dtype))
    W2, dW2 = output_layer(params), np.full((4, 2 * hidden + 1), np.nan, dtype)
    h = np.ones((2, 2 * hidden + 1), dtype)
    played = np.column_stack([*dataclasses.astuple(batch)])
    numbers, sums = np.array([*dataclasses.astuple(weights), size]), np.full(5, np.nan)
    flat = z.reshape(size, -1).copy()
    kernels.differentiate(W2, flat, played, numbers, h, np.zeros(4), dW2, sums)
    if is_near_a_kink(y, batch, weights):
        return  # rounding decides on which side
    yield flat, grads["W1"].reshape(size, -1)
    yield dW2, output_layer(grads)
    close = {"rtol": 100 * TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    np.testing.assert_allclose(sums / size, dataclasses.astuple(wanted), **close)


def output_layer(params):
    """As the kernels have it: weights of max(a, 0), of max(a, 0) b, the bias."""
    W2 = params["W2"]
    return np.concatenate([W2[..., 0], W2[..., 1], params["b2"][:, None]], axis=1)


CASES = [
    decide, add_up_an_episode, step_by_rmsprop, step_by_adam, add_rows_of_inputs, differentiate,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(1, 30), hidden=st.integers(1, 70))
def test_a_kernel_equals_its_definition(case, dtype, seed, size, hidden):
    for ours, definition in case(np.random.default_rng(seed), dtype, size, hidden):
        assert_close(ours, definition, dtype)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=40), st.floats(0, 1))
def test_returns_equal_their_definition_to_the_bit(rewards, gamma):
    array = np.array(rewards, np.float32)
    np.testing.assert_array_equal(
        kernels.discounted_returns(array, gamma), returns.discounted_returns(array, gamma)
    )


@given(
    hnp.arrays(
        np.float32, st.tuples(st.integers(0, 9), st.integers(1, 20)),
        elements=st.floats(-(2.0**60), 2.0**60, width=32),
    ),
    st.data(),
)  # fmt: skip
def test_sum_of_squares_is_the_sum_of_squares(g, data):
    rows = [row for row in range(len(g)) if data.draw(st.booleans())]
    wanted = math.fsum(float(value) ** 2 for value in g[rows].ravel())
    assert kernels.sum_of_squares(g, np.array(rows, np.uint16)) == pytest.approx(wanted, rel=1e-12)
