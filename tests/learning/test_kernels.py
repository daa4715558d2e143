"""Every fast form equals its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dense import PONG, Step, decide, make_params, record
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sparse import (
    count_outputs,
    draw_minibatch,
    draw_network,
    draw_parts,
    draw_row_type,
    draw_steps,
    is_near_a_kink,
    screens,
)

from pixelpong.atari.machine.palette import PALETTE
from pixelpong.items import DOWN, NUM_PIXELS, STAY, UP, Played
from pixelpong.kernels import optimizer, ppo
from pixelpong.kernels.optimizer import AdamArrays
from pixelpong.kernels.records import PLAIN_STEP
from pixelpong.kernels.reinforce import add_rows, episode_gradient
from pixelpong.learn import gated, network, reinforce
from pixelpong.learn.optimizer import adam, adam_scales, rmsprop
from pixelpong.learn.ppo import LossWeights, log_softmax, loss_gradient
from pixelpong.play.networks import NETS, PlainNetwork
from pixelpong.pong.preprocess import preprocess

# The tolerance that `kernels` states, relative to the largest entry.
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-11}
SEEDS = st.integers(0, 2**32 - 1)
EMPTY = np.zeros((210, 160), np.uint8)
FULL = np.full_like(EMPTY, 14)  # on in all places, which the definitions take a second for


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("algorithm", NETS)
@settings(max_examples=30)
@given(
    frames=st.lists(screens(), min_size=1, max_size=4),
    draws=st.lists(st.floats(-1, 1, exclude_max=True), min_size=4, max_size=4),
    seed=SEEDS,
    hidden=st.integers(1, 40),
)
@example(frames=[FULL, EMPTY, FULL], draws=[0.5] * 3, seed=0, hidden=3)
def test_a_decision_on_a_screen_is_the_networks_on_the_dense_observation(
    algorithm, dtype, frames, draws, seed, hidden
):
    params = make_params(algorithm, hidden, np.dtype(dtype).name, seed)
    player, before, last = NETS[algorithm](PONG, params), None, STAY
    for screen, draw in zip(frames, draws, strict=False):
        action, now = player.act(screen, draw), preprocess(PALETTE[screen])
        x, logits, value = decide(algorithm, params, before, now, last)
        log_pi, place = log_softmax(logits[None])[0], player.actions.index(action)
        # A logit's rounding error is as large as its largest summand's.
        error = TOLERANCE[dtype] * max(float(np.abs(logits).max()), abs(value or 0), 1) * 10
        wanted = record(Step(x, log_pi, value, place, 0.0, is_over=False), algorithm)
        found = {name: float(player.steps[name][0]) for name in wanted}
        assert found == pytest.approx(wanted, abs=error)
        ends = np.exp(log_pi).cumsum()
        if draw < 0:
            assert log_pi[place] >= log_pi.max() - error
        elif np.abs(ends - draw).min() > error:
            assert place == np.searchsorted(ends[:-1], draw, "right")
        if algorithm == "ppo":
            assert sorted(player.inputs().tolist()) == np.flatnonzero(x).tolist()
        else:
            assert (np.diff(player.inputs()) > 0).all()
            np.testing.assert_array_equal(player.played(1).dense()[0], x)
        before, last = now, action


@pytest.mark.parametrize("sign", [1, -1])
def test_the_probability_of_a_huge_logit_is_finite(sign):
    player = PlainNetwork(
        PONG, {"W1": np.full((NUM_PIXELS, 3), 1e30), "W2": np.full(3, 1.0 * sign)}
    )
    actions = [player.act(screen) for screen in (EMPTY, FULL)]
    assert (actions[1], max(player.answer()[0])) == (UP if sign == 1 else DOWN, 1.0)


def add_up_an_episode(rng, dtype, size, hidden):
    params = network.init_params(rng, hidden, np.dtype(dtype).name)
    params["W1"] *= dtype(40)  # far from one half too
    indices, offsets, _ = draw_steps(rng, size, NUM_PIXELS)
    indices += (NUM_PIXELS * rng.integers(0, 2, len(indices))).astype(indices.dtype)
    steps, weights = np.zeros(size, PLAIN_STEP), rng.standard_normal(size)
    x = Played(steps, indices, offsets, np.zeros((size, 0))).dense(dtype)
    steps["action"] = rng.choice([UP, DOWN], size)
    steps["up_probability"], h = network.forward(params, x)
    played = Played(steps, indices, offsets, h)
    sparse = episode_gradient(params["W2"], played, weights)
    dense = reinforce.episode_gradient(params, x, steps["action"], weights)
    total = np.zeros_like(params["W1"])
    add_rows(total, sparse.rows, sparse.W1)
    assert sparse.rows.tolist() == np.flatnonzero(x.any(axis=0)).tolist()
    yield total, dense["W1"]
    yield sparse.W2, dense["W2"]


def step_by_rmsprop(rng, dtype, size, hidden):
    """On some rows; the others stay."""
    w, g = rng.standard_normal((2, size, hidden)).astype(dtype)
    c, (rate, decay) = rng.random((size, hidden)).astype(dtype), rng.random(2)
    rows = rng.permutation(size)[: rng.integers(0, size + 1)].astype(draw_row_type(rng))
    wanted, wanted_cache = (it["w"] for it in rmsprop({"w": w}, {"w": g}, {"w": c}, rate, decay))
    others = np.setdiff1d(np.arange(size), rows)
    wanted[others], wanted_cache[others] = w[others], c[others]
    optimizer.rmsprop(w, g, c, rows, rate, decay)
    np.testing.assert_array_equal(w[others], wanted[others])
    yield w, wanted
    yield c, wanted_cache


def step_by_adam(rng, dtype, size, hidden):
    """On some rows; the others stay."""
    w, g, m = rng.standard_normal((3, size, hidden)).astype(dtype)
    v, rate, step = rng.random((size, hidden)).astype(dtype), rng.random(), rng.integers(1, 10_000)
    wanted = adam(w, g, m, v, rate, step)
    rows = rng.permutation(size)[: rng.integers(0, size + 1)].astype(draw_row_type(rng))
    ours, squares = [array.copy() for array in (w, m, v)], np.full(hidden, np.nan, dtype)
    optimizer.adam_rows(AdamArrays(*ours), g[rows], rows, adam_scales(rate, int(step)), squares)
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
    ppo.sum_rows(W1.astype(dtype), indices, offsets[:-1], offsets[1:], totals)
    yield totals, (x @ W1).astype(dtype)
    chosen = np.sort(rng.permutation(size)[: rng.integers(1, size + 1)])
    inputs = np.full(x.shape[1], 999, indices.dtype)
    positions = np.full(len(indices), 999, np.uint16)
    slots, starts = (np.full(x.shape[1] + more, -1, np.int32) for more in (0, 1))
    count = ppo.list_steps(indices, offsets, chosen, slots, inputs, starts, positions)
    assert inputs[:count].tolist() == np.flatnonzero(x[chosen].any(axis=0)).tolist()
    lists = np.split(positions[: starts[count]], starts[1:count])
    for index, steps in zip(inputs[:count], lists, strict=bool(count)):
        assert steps.tolist() == np.flatnonzero(x[chosen, index]).tolist()
    assert starts[count] == x[chosen].sum()


def differentiate(rng, dtype, size, hidden):
    """Outputs, loss, gradient in the outputs, and back: one kernel, three definitions."""
    parts = draw_parts(rng)
    num_outputs = count_outputs(parts)
    params, weights = draw_network(rng, hidden, dtype, num_outputs), LossWeights(*rng.random(3))
    z = rng.standard_normal((size, hidden, 2)).astype(dtype)
    y = gated.read_out(params, z).astype(np.float64)
    _, batch = draw_minibatch(rng, size, parts, y)
    wanted_dy, wanted = loss_gradient(y, batch, weights, parts)
    # Every step is a line of the unit matrix: then its gradient in W1 is that in z.
    unit = params | {"W1": np.zeros((size, hidden, 2), dtype)}
    grads = gated.backward(unit, np.eye(size, dtype=dtype), z, wanted_dy.astype(dtype))
    W2, dW2 = output_layer(params), np.full((num_outputs, 2 * hidden + 1), np.nan, dtype)
    room = ppo.Scratch(np.ones((2, 2 * hidden + 1), dtype), np.zeros((3, num_outputs)))
    flat = z.reshape(size, -1).copy()
    sums = ppo.differentiate(W2, flat, batch, weights, size, parts, room, dW2)
    if is_near_a_kink(y, batch, weights, parts):
        return  # rounding decides on which side
    yield flat, grads["W1"].reshape(size, -1)
    yield dW2, output_layer(grads)
    close = {"rtol": 100 * TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    np.testing.assert_allclose(np.divide(sums, size), wanted, **close)


def output_layer(params):
    """As the kernels have it: weights of max(a, 0), of max(a, 0) b, the bias."""
    W2 = params["W2"]
    return np.concatenate([W2[..., 0], W2[..., 1], params["b2"][:, None]], axis=1)


def add_up_squares(rng, dtype, size, hidden):
    g = (2.0**60 * rng.standard_normal((size, hidden))).astype(dtype)
    rows = rng.permutation(size)[: rng.integers(0, size + 1)].astype(draw_row_type(rng))
    wanted = math.fsum(float(value) ** 2 for value in g[rows].ravel())
    assert optimizer.sum_of_squares(g, rows) == pytest.approx(wanted, rel=1e-12)
    return []


CASES = [
    add_up_an_episode, step_by_rmsprop, step_by_adam, add_rows_of_inputs, differentiate,
    add_up_squares,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=30)
@given(seed=SEEDS, size=st.integers(1, 30), hidden=st.integers(1, 70))
def test_a_kernel_equals_its_definition(case, dtype, seed, size, hidden):
    for ours, wanted in case(np.random.default_rng(seed), dtype, size, hidden):
        scale = max(float(np.abs(wanted).max(initial=0)), 1e-30)
        assert ours.dtype == wanted.dtype == dtype
        assert float(np.abs(ours - wanted).max(initial=0)) <= TOLERANCE[dtype] * scale
