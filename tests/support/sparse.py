"""Screens and steps for the kernels, networks and minibatches for the formulas."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pixelpong.learn import gated
from pixelpong.learn.ppo import Minibatch, add_parts, log_softmax

NO_PARTS = np.zeros((3, 0), np.int64)  # Pong's three actions


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


def draw_network(rng, hidden, dtype, num_outputs=4):
    name = np.dtype(dtype).name
    params = gated.init_params(rng, NUM_INPUTS, num_outputs, hidden, name, typical_inputs=100)
    params["W2"] *= dtype(100)
    params["b2"] += rng.standard_normal(num_outputs).astype(dtype)
    return params


def draw_parts(rng):
    """The parts of actions: none, as in Pong, or up to three of each of 2 to 18 actions."""
    if rng.random() < 0.3:
        return NO_PARTS
    actions = int(rng.integers(2, 19))
    each = int(rng.integers(1, 4))
    return actions + 1 + np.array([rng.permutation(8)[:each] for _ in range(actions)])


def count_outputs(parts):
    return int(max(parts.max(initial=0), len(parts))) + 1


def draw_row_type(rng):
    """Lists of rows have one of two types, see `row_type`."""
    return np.uint32 if rng.random() < 0.3 else np.uint16


def draw_steps(rng, steps, num_inputs=NUM_INPUTS):
    """Lists of active inputs as a trajectory has them, and the same as a matrix."""
    lists = [rng.permutation(num_inputs)[: rng.integers(0, 12)] for _ in range(steps)]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    x = np.zeros((steps, num_inputs))
    for t, each in enumerate(lists):
        x[t, each] = 1
    return np.concatenate(lists).astype(draw_row_type(rng)), offsets, x


def draw_minibatch(rng, size, parts=NO_PARTS, y=None):
    """Outputs, unless they are given, and a minibatch; games have preferences if actions do."""
    y = rng.standard_normal((size, count_outputs(parts))) if y is None else y
    actions = rng.integers(0, len(parts), size)
    preferences = rng.standard_normal((size, len(parts) if parts.size else 0))
    logits = add_parts(y, parts, preferences)
    played = log_softmax(logits + 0.5 * rng.standard_normal(logits.shape))
    log_probabilities = played[np.arange(size), actions]
    advantages, targets = rng.standard_normal((2, size))
    return y, Minibatch(actions, log_probabilities, advantages, targets, preferences)


def is_near_a_kink(y, batch, weights, parts=NO_PARTS):
    """Whether a ratio is so near to where it is clipped that no difference is a slope."""
    log_pi = log_softmax(add_parts(y, parts, batch.preferences))
    taken = log_pi[np.arange(len(y)), batch.actions]
    ratio = np.exp(taken - batch.log_probabilities)
    return np.abs(np.abs(ratio - 1) - weights.clip_coef).min() < 1e-4
