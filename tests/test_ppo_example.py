"""PPO in one file: short, with the gradient and the step of `pixelpong.learn`, and it learns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import ppo_in_one_file as example
import pytest

from pixelpong.env.features import NUM_INPUTS
from pixelpong.items import ACTIONS
from pixelpong.learn import gated, ppo
from pixelpong.learn.optimizer import adam

EXAMPLE = Path(example.__file__)


def test_it_is_short_and_needs_numpy_and_the_game_alone():
    text = EXAMPLE.read_text("utf-8")
    assert len(text.splitlines()) <= 250
    outside = {
        line.split()[1].partition(".")[0]
        for line in text.splitlines()
        if line.startswith(("import", "from"))
    }
    assert outside <= {"numpy", "pixelpong"} | sys.stdlib_module_names
    assert not re.search(r"pixelpong\.(learn|learners|kernels)\b", text)


@pytest.fixture(scope="module")
def played():
    """Parameters in float64, and some steps of Pong that they have played in the package."""
    params = example.init_params(np.random.default_rng(0), np.float64)
    params["W2"] *= 30  # so that policy and value differ from step to step
    segment = example.Streams("ALE/Pong-v5", seed=0).play(params, update=1)[0]
    return params, segment


def test_it_decides_as_the_package_that_plays_for_it(played):
    params, segment = played
    y, _ = example.forward(params, *example.spread(segment.indices, segment.offsets[:-1]))
    log_pi = ppo.log_softmax(y[:, :3])[np.arange(example.HORIZON), segment.actions]
    np.testing.assert_allclose(log_pi, segment.log_probabilities, rtol=1e-9)
    np.testing.assert_allclose(y[:, 3], segment.values[:-1], rtol=1e-9)


@pytest.mark.slow
def test_its_gradient_is_that_of_the_package_on_the_same_steps(played):
    """Actions whose probability has changed much are among them, both ways."""
    params, segment = played
    rng, size = np.random.default_rng(1), example.HORIZON
    some = rng.permutation(size)
    rows, used = example.spread(*example.pick(segment.indices, segment.offsets, some))
    x = np.zeros((size, NUM_INPUTS))
    for line, step in zip(x, some, strict=True):
        line[segment.indices[slice(*segment.offsets[step : step + 2])]] = 1
    assert len(rows) < NUM_INPUTS / 10
    log_played = segment.log_probabilities[some] + rng.normal(0, 0.3, size)
    gain, targets = rng.standard_normal(size), rng.standard_normal(size)

    y, z = gated.forward(params, x)
    batch = ppo.Minibatch(segment.actions[some], log_played, gain, targets)
    weights = ppo.LossWeights(example.CLIP_RATIO, example.VALUE_WEIGHT, 0.02)
    dy, stats = ppo.loss_gradient(y, batch, weights)
    wanted = gated.backward(params, x, z, dy)
    assert 0.1 < stats.clip_share < 0.9

    y, z = example.forward(params, rows, used)
    dy = example.loss_gradient(y, segment.actions[some], log_played, gain, targets, 0.02)
    grads = example.backward(params, used, z, dy)
    whole = grads | {"W1": np.zeros_like(params["W1"])}
    whole["W1"][rows] = grads["W1"]
    for name, g in wanted.items():
        np.testing.assert_allclose(whole[name], g, atol=1e-10 * np.abs(g).max())


def test_its_advantages_and_its_step_are_those_of_the_package():
    rng = np.random.default_rng(2)
    rewards, values = rng.integers(-1, 2, (3, 40)), rng.standard_normal((3, 41))
    args = rewards, rewards != 0, values
    np.testing.assert_allclose(
        example.compute_advantages(*args, 0.9),
        ppo.generalized_advantages(*args, example.DISCOUNT, 0.9),
    )
    w, g, m = rng.standard_normal((3, 5))
    v = rng.random(5)
    wanted = adam(w, g, m, v, example.RATE, 7)
    example.adam(w, g, m, v, example.RATE, 7)
    for ours, theirs in zip((w, m, v), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert ACTIONS == (0, 2, 3), "the order of its outputs"


def test_a_pass_over_a_round_makes_good_actions_more_probable(monkeypatch):
    """The advantages are given: up is good and down is bad."""
    monkeypatch.setattr(example, "STREAMS", 8)
    rng = np.random.default_rng(0)
    params, streams = example.init_params(rng), example.Streams("ALE/Pong-v5", seed=0)
    before = streams.play(params, 1)
    memory = {name: {key: np.zeros_like(w) for key, w in params.items()} for name in "mv"}
    monkeypatch.setattr(
        example,
        "compute_advantages",
        lambda rewards, *_: np.array([(s.actions == 1) * 1.0 - (s.actions == 2) for s in before]),
    )
    example.learn(params, memory | {"step": 0}, before, 1.0, rng)
    ups, downs = (
        np.mean([segment.actions == action for segment in streams.play(params, 2)])
        for action in (1, 2)
    )
    assert ups > downs + 0.1


@pytest.mark.slow
def test_it_runs_as_its_first_lines_say():
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--steps", "8192", "--seed", "0"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.fullmatch(r" +8,192 steps, +\d+ s: +\d% of points won\n", done.stdout)
