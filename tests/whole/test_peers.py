"""Examples with stable-baselines3: their agent on our environment, ours in their world."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pixelpong

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = [EXAMPLES.parent / "docs/howto" / f"{it}.md" for it in ("python", "environment", "games")]
OURS = "pixelpong.envs:pixelpong/Pong-v0"

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(
        importlib.util.find_spec("stable_baselines3") is None,
        reason="no stable-baselines3: make peers",
    ),
    # Theirs, on the way in.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]

SHORTER = {
    "total_timesteps=1_000_000": "total_timesteps=1024",
    "TOTAL_TIMESTEPS = 128, 0.99, 0.95, 2_000_000": "TOTAL_TIMESTEPS = 128, 0.99, 0.95, 4096",
    "while not is_over:": "for _ in range(300):",
    "import gym\n": "import gymnasium as gym\n",
    f'make_vec_env("{OURS}", seed=0)':
        f'make_vec_env("{OURS}", seed=0, env_kwargs={{"max_frames": 600}})',
}  # fmt: skip
"""The page's figures, and what is a second instead of an hour; a library that is not installed."""


def run(*words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run_as_their_first_lines_say():
    """The first game that our agent plays there is that of our evaluation."""
    from stable_baselines3.common.env_checker import check_env

    check_env(pixelpong.make_env(max_frames=300).unwrapped)
    out = run(EXAMPLES / "their_agent_on_our_env.py", "--steps", "1024", "--episodes", "1")
    assert re.fullmatch(r"after 1024 steps: mean return -\d+\.0, deviation 0\.0\n", out)
    first, second = run(EXAMPLES / "our_agent_in_their_world.py").splitlines()
    (ours,) = pixelpong.evaluate("package", 1).returns
    assert first == f"{OURS}: mean return {ours:+.2f}, deviation 0.00"
    assert float(re.match(r"ALE/Pong-v5: mean return \+(\d+\.\d+)", second)[1]) > 0
    out = run(EXAMPLES / "policy_in_torch.py")
    assert float(re.match(r"1000 decisions, probabilities equal to (.*)", out)[1]) < 1e-5
    words = ("--total-timesteps", "4096", "--num-envs", "4", "--num-steps", "64", "--games", "1")
    *lines, last = map(json.loads, run(EXAMPLES / "ppo_torch.py", *words).splitlines())
    assert [line["steps"] for line in lines] == [2560, 4096]
    assert -21 <= last["mean"] < 21


def test_the_code_of_the_pages_runs(tmp_path, monkeypatch):
    """Every Python block about environments, one after another, in one process."""
    parts = [page.read_text("utf-8").split("## The game as an environment")[-1] for page in PAGES]
    blocks = re.findall(r"^```python\n(.*?)^```", "\n".join(parts), flags=re.S | re.M)
    assert len(blocks) >= 6
    text = "\n".join(blocks)
    assert "stable_baselines3" in text
    for long, short in SHORTER.items():
        assert long in text
        text = text.replace(long, short)
    monkeypatch.chdir(tmp_path)
    run("-c", text)
