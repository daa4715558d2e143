"""Screens and trajectories for the kernels, and how close these come to their definitions."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import strategies as st
from numba import njit

from pixelpong import kernels
from pixelpong.env.preprocess import pack_field
from pixelpong.items import DOWN, NUM_PIXELS, UP, Played
from pixelpong.kernels import playing
from pixelpong.learn import gated, network
from pixelpong.learn.ppo import Minibatch, log_softmax
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


NUM_INPUTS = 30
"""In the tests of the gated network: its arithmetic does not know what they mean."""


def draw_network(rng, hidden, dtype):
    params = gated.init_params(rng, NUM_INPUTS, hidden, np.dtype(dtype).name)
    params["W2"] *= dtype(100)
    params["b2"] += rng.standard_normal(4).astype(dtype)
    return params


def draw_steps(rng, steps):
    """Lists of active inputs as a trajectory has them, and the same as a matrix."""
    lists = [rng.permutation(NUM_INPUTS)[: rng.integers(0, 12)] for _ in range(steps)]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    x = np.zeros((steps, NUM_INPUTS))
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
