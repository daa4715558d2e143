"""Numbers of opening frames: those of ale-py's build for this system, or Linux's everywhere.

ale-py's AtariVectorEnv draws them with C++'s ``uniform_int_distribution``, which each C++ library
does in its own way. ``draws_of_macos.txt`` has the numbers of LLVM's library, which Apple ships, as
``support/draws.cpp`` prints them; here clang 14 on Linux made them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pixelpong
from pixelpong.errors import ConfigError

HERE = Path(__file__).parent
SOURCE, DRAWN = HERE.parent / "support/draws.cpp", HERE / "draws_of_macos.txt"
SEEDS = (0, 1, 2, 3, 7, 2**32 - 1)
NOOPS = (16, 12, 13, 16)  # of 30, in the first episodes of seeds 0 to 3, as GNU's library draws


def read_draws(text: str) -> dict[int, np.ndarray]:
    """n → four numbers below it for each seed, [6, 4]."""
    rows = [list(map(int, line.split())) for line in text.splitlines()]
    return {n: np.reshape(numbers, (len(SEEDS), 4)) for n, *numbers in rows}


def open_episodes(**options) -> np.ndarray:
    """The numbers of opening frames of four episodes for each seed, [6, 4]."""
    envs = pixelpong.make_vec(len(SEEDS), game="breakout", use_fire_reset=False, **options)
    found = []
    for k in range(4):
        _, infos = envs.reset(seed=list(SEEDS) if k == 0 else None)
        found.append(infos["episode_frame_number"])
    envs.close()
    return np.stack(found, axis=1)


def test_on_a_mac_openings_are_those_of_apples_library(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    for n, draws in read_draws(DRAWN.read_text()).items():
        assert (open_episodes(noop_max=n) == draws).all(), n


def test_an_option_has_linuxs_openings_everywhere(monkeypatch):
    on_linux = open_episodes(noop_max=30)
    assert on_linux[:4, 0].tolist() == list(NOOPS)
    assert (open_episodes(noop_max=30, coins="ale_linux") == on_linux).all()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (open_episodes(noop_max=30, coins="ale_linux") == on_linux).all()
    assert (open_episodes(noop_max=30) != on_linux).any()
    assert (open_episodes(noop_max=30, coins="pixelpong") == on_linux).all(), "ours are the same"


def test_a_state_of_a_mac_is_not_for_linux(monkeypatch):
    """Its next episode would open otherwise."""
    options = {"num_envs": 1, "game": "breakout"}
    plain, named = pixelpong.make_vec(**options), pixelpong.make_vec(**options, coins="ale_linux")
    plain.reset(seed=0)
    named.reset(seed=1)
    named.restore_state(plain.clone_state())  # on Linux they are the same
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        on_mac = pixelpong.make_vec(**options)
    on_mac.reset(seed=0)
    with pytest.raises(ConfigError, match="other options"):
        plain.restore_state(on_mac.clone_state())


@pytest.mark.soak
def test_the_recorded_draws_are_those_of_llvms_library(tmp_path):
    if not shutil.which("clang++"):
        pytest.skip("needs clang++ and libc++: apt-get install clang libc++-dev libc++abi-dev")
    command = ["clang++", "-stdlib=libc++", SOURCE, "-o", tmp_path / "draws"]
    subprocess.run(command, check=True)
    assert subprocess.check_output([tmp_path / "draws"], text=True) == DRAWN.read_text()
