"""Screens and steps for the kernels, networks and minibatches for the formulas."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pixelpong.learn import gated
from pixelpong.learn.ppo import Minibatch, log_softmax


@st.composite
def screens(draw):
    """Screens with a background and some rectangles of other colours, also across its edges."""
    screen = np.full((210, 160), draw(st.sampled_from([34, 228, 0])), np.uint8)
    for _ in range(draw(st.integers(0, 6))):
        top, left = draw(st.integers(0, 209)), draw(st.integers(0, 159))
        height, width = draw(st.integers(1, 40)), draw(st.integers(1, 30))
        colour = draw(st.sampled_from([0, 34, 228, 200, 56, 14, 138, 210]))
        screen[top : top + height, left : left + width] = colour
    return screen


NUM_INPUTS = 30  # in the tests of the gated network: its arithmetic does not know what they mean


def draw_network(rng, hidden, dtype):
    params = gated.init_params(rng, NUM_INPUTS, hidden, np.dtype(dtype).name)
    params["W2"] *= dtype(100)
    params["b2"] += rng.standard_normal(4).astype(dtype)
    return params


def draw_steps(rng, steps, num_inputs=NUM_INPUTS):
    """Lists of active inputs as a trajectory has them, and the same as a matrix."""
    lists = [rng.permutation(num_inputs)[: rng.integers(0, 12)] for _ in range(steps)]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    x = np.zeros((steps, num_inputs))
    for t, each in enumerate(lists):
        x[t, each] = 1
    return np.concatenate(lists).astype(np.uint16), offsets, x


def draw_minibatch(rng, size, dtype=np.float64):
    y = rng.standard_normal((size, 4)).astype(dtype)
    actions = rng.integers(0, 3, size)
    played = log_softmax(y[:, :3] + 0.5 * rng.standard_normal((size, 3)))
    log_probabilities = played[np.arange(size), actions]
    return y, Minibatch(actions, log_probabilities, *rng.standard_normal((2, size)))


def is_near_a_kink(y, batch, weights):
    """Whether a ratio is so near to where it is clipped that no difference is a slope."""
    taken = log_softmax(y[:, :3])[np.arange(len(y)), batch.actions]
    ratio = np.exp(taken - batch.log_probabilities)
    return np.abs(np.abs(ratio - 1) - weights.clip_coef).min() < 1e-4
