"""The program in one file: short, runs, and has the gradient of `pixelpong.learn`."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pixelpong.items import DOWN, UP
from pixelpong.learn import reinforce

EXAMPLE = Path(__file__).parent.parent / "examples" / "pong_in_one_file.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("pong_in_one_file", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_short_and_needs_numpy_and_the_emulator_alone():
    text = EXAMPLE.read_text("utf-8")
    assert len(text.splitlines()) <= 150
    imports = {line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))}
    assert imports == {"argparse", "ale_py", "numpy"}


@pytest.mark.slow
def test_its_gradient_is_that_of_the_package_on_the_same_episode(example):
    rng = np.random.default_rng(0)
    params = example.init_params(rng)
    xs, hs, ps, ups, rewards = example.play_episode(example.make_game(0), params, rng)
    advantages = example.compute_advantages(rewards)
    np.testing.assert_allclose(advantages, reinforce.advantages(rewards, 0.99), atol=1e-12)
    ours = reinforce.episode_gradient(params, xs, np.where(ups, UP, DOWN), advantages)
    theirs = example.episode_gradient(params, xs, hs, ps, ups, advantages)
    assert rewards.sum() < 0
    for name in ours:
        scale = np.abs(ours[name]).max()
        np.testing.assert_allclose(theirs[name], ours[name], atol=1e-10 * scale)


def test_its_step_is_that_of_the_package(example):
    from pixelpong.learn.optimizer import rmsprop

    rng = np.random.default_rng(1)
    w, g, c = rng.standard_normal((2, 5)), rng.standard_normal((2, 5)), rng.random((2, 5))
    wanted, wanted_cache = rmsprop({"w": w}, {"w": g}, {"w": c}, example.RATE, example.DECAY)
    params, cache = {"w": w.copy()}, {"w": c.copy()}
    example.rmsprop(params, {"w": g}, cache)
    np.testing.assert_allclose(params["w"], wanted["w"], rtol=1e-14)
    np.testing.assert_allclose(cache["w"], wanted_cache["w"], rtol=1e-14)


@pytest.mark.slow
def test_it_runs_as_its_first_lines_say():
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--updates", "2", "--batch", "1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.fullmatch(
        r"update 1: mean return -\d+\.0\nupdate 2: mean return -\d+\.0\n", done.stdout
    )
