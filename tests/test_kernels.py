"""Every fast form equals its definition."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit

from pixelpong import kernels
from pixelpong.env.preprocess import difference, pack_field, preprocess
from pixelpong.items import DOWN, NUM_PIXELS, UP, Played
from pixelpong.kernels import playing
from pixelpong.learn import network, optimizer, reinforce, returns
from pixelpong.play.networks import parts

# Parts of kernels, each by itself.
compiled_alone = njit(error_model="numpy")
take_field = compiled_alone(playing.take_field)
list_pixels = compiled_alone(playing.list_pixels)
find_difference = compiled_alone(playing.find_difference)
up_probability = compiled_alone(playing.up_probability)

# The tolerance that `kernels` states, relative to the largest entry.
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-11}

# Palette index → red, as the emulator shows them.
REDS = {0: 0, 34: 144, 228: 109, 200: 92, 56: 213, 14: 236, 138: 101, 210: 53}


def assert_close(actual, wanted, dtype):
    scale = max(float(np.abs(wanted).max(initial=0)), 1e-30)
    assert actual.dtype == wanted.dtype == dtype
    assert float(np.abs(actual - wanted).max(initial=0)) <= TOLERANCE[dtype] * scale


FULL = np.full((210, 160), 14, np.uint8)
"""A screen that is on in all places, which the definitions take a second for."""


@st.composite
def screens(draw):
    """Screens with a background and some rectangles of other colours, also across its edges."""
    screen = np.full((210, 160), draw(st.sampled_from([34, 228, 0])), np.uint8)
    for _ in range(draw(st.integers(0, 6))):
        top, left = draw(st.integers(0, 209)), draw(st.integers(0, 159))
        height, width = draw(st.integers(1, 40)), draw(st.integers(1, 30))
        screen[top : top + height, left : left + width] = draw(st.sampled_from(list(REDS)))
    return screen


def colour(screen):
    frame = np.zeros((210, 160, 3), np.uint8)
    for index, red in REDS.items():
        frame[screen == index] = (red, 1, 2)
    return frame


def start_seeing():
    """A stream in which nothing has been seen yet, and its parts for the kernels."""
    stream = np.zeros(1, kernels.STREAM)
    return stream, parts(stream, 1)


def active_of(screen):
    pixels = np.zeros(NUM_PIXELS, np.uint16)
    return pixels[: list_pixels(pack_field(screen), 0, pixels)]


def random_trajectory(rng, steps, max_active=60):
    pixels = [
        np.sort(rng.choice(NUM_PIXELS, rng.integers(0, max_active), replace=False))
        for _ in range(steps)
    ]
    indices = [p + NUM_PIXELS * rng.integers(0, 2, len(p)) for p in pixels]
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in pixels])]).astype(np.int64)
    steps_of = np.zeros(steps, kernels.PLAIN_STEP)
    steps_of["action"] = rng.choice([UP, DOWN], steps)
    steps_of["up_probability"] = 0.5
    steps_of["reward"] = rng.choice([-1.0, 0.0, 1.0], steps)
    joined = np.concatenate([np.zeros(0), *indices]).astype(np.uint16)
    return Played(steps_of, joined, offsets, np.zeros((steps, 1)))


def as_played(trajectory, params):
    """With the probabilities and activations that `params` would have had."""
    p, h = network.forward(params, trajectory.dense(params["W1"].dtype))
    steps = trajectory.steps.copy()
    steps["up_probability"] = p
    return dataclasses.replace(trajectory, steps=steps, hidden=h)


@given(screens())
@example(FULL)
@pytest.mark.slow
def test_active_pixels_are_those_that_preprocessing_keeps(screen):
    np.testing.assert_array_equal(
        active_of(screen), np.flatnonzero(preprocess(colour(screen)).ravel())
    )


@pytest.mark.slow
@given(st.lists(screens(), min_size=1, max_size=4))
@example([FULL, np.zeros_like(FULL), FULL])
def test_frame_after_frame_gives_the_dense_differences(sequence):
    stream, (memory, _, fields) = start_seeing()
    indices, previous = np.zeros(5 + kernels.MAX_ACTIVE, np.uint16), None
    for screen in sequence:
        take_field(pack_field(screen), memory, fields)
        found = indices[5 : find_difference(memory, fields, indices, 5)]
        stream["memory"]["steps"] += 1
        current = preprocess(colour(screen))
        one_step = Played(
            np.zeros(1, kernels.PLAIN_STEP), found, np.array([0, len(found)]), np.zeros((1, 0))
        )
        np.testing.assert_array_equal(one_step.dense()[0], difference(previous, current))
        assert (np.diff(found.astype(int) % NUM_PIXELS) > 0).all()
        previous = current


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), hidden=st.integers(1, 64))
def test_up_probability_equals_the_networks(dtype, seed, hidden):
    rng = np.random.default_rng(seed)
    params = network.init_params(rng, hidden, np.dtype(dtype).name)
    params["W1"] *= dtype(40)  # far from one half too
    trajectory = random_trajectory(rng, steps=4)
    ours = np.ones((len(trajectory), hidden), dtype)
    wanted_p, wanted_h = network.forward(params, trajectory.dense(dtype))
    for t in range(len(trajectory)):
        start, stop = trajectory.offsets[t : t + 2]
        p = up_probability((params["W1"], params["W2"]), trajectory.indices, start, stop, ours, t)
        assert p == pytest.approx(float(wanted_p[t]), abs=TOLERANCE[dtype])
    assert_close(ours, wanted_h, dtype)


def test_up_probability_of_huge_logits_is_finite():
    W1, W2 = np.full((NUM_PIXELS, 3), 1e30), np.ones(3)
    h, one = np.zeros((1, 3)), np.zeros(1, np.uint16)
    assert up_probability((W1, W2), one, 0, 1, h, 0) == 1.0
    assert up_probability((W1, -W2), one, 0, 1, h, 0) == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 30),
    hidden=st.integers(1, 40),
)
@pytest.mark.slow
def test_sparse_gradient_equals_the_dense_one(dtype, seed, steps, hidden):
    rng = np.random.default_rng(seed)
    params = network.init_params(rng, hidden, np.dtype(dtype).name)
    trajectory = random_trajectory(rng, steps)
    weights = rng.standard_normal(steps)
    trajectory = as_played(trajectory, params)
    sparse = kernels.episode_gradient(params["W2"], trajectory, weights)
    dense = reinforce.episode_gradient(
        params, trajectory.dense(dtype), trajectory.steps["action"], weights
    )
    total = np.zeros_like(params["W1"])
    kernels.add_rows(total, sparse.rows, sparse.W1)
    assert_close(total, dense["W1"], dtype)
    assert_close(sparse.W2, dense["W2"], dtype)
    assert sparse.rows.tolist() == sorted(set(trajectory.indices.astype(int) % NUM_PIXELS))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.floats(0, 1),
    decay=st.floats(0, 1),
    size=st.integers(1, 50),
)
def test_rmsprop_on_some_rows_equals_its_definition_there(dtype, seed, rate, decay, size):
    rng = np.random.default_rng(seed)
    w, g = rng.standard_normal((2, 5, size)).astype(dtype)
    c = rng.random((5, size)).astype(dtype)
    rows = rng.permutation(5)[: rng.integers(0, 6)].astype(np.uint16)
    wanted, wanted_cache = optimizer.rmsprop({"w": w}, {"w": g}, {"w": c}, rate, decay)
    others = np.setdiff1d(np.arange(5), rows)
    wanted["w"][others], wanted_cache["w"][others] = w[others], c[others]
    kernels.rmsprop(w, g, c, rows, rate, decay)
    assert_close(w, wanted["w"], dtype)
    assert_close(c, wanted_cache["w"], dtype)


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0]), max_size=40),
    st.floats(0, 1),
)
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
