"""What a program gives that is nothing: each refusal is one of ours, in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import fake_sb3
import numpy as np
import pytest

import pixelpong
from pixelpong.atari.envs.inputs import read_seeds
from pixelpong.errors import ConfigError

RAGGED = [[1], [1, 2]]


class NoArray:
    def __array__(self, *_, **__):
        raise RuntimeError("no array")


@pytest.mark.parametrize("odd", [RAGGED, NoArray()], ids=["ragged", "raises"])
def test_what_is_no_array_is_refused_in_a_sentence(odd):
    envs = pixelpong.make_vec(2, "field", num_threads=1)
    turning = pixelpong.make_vec(2, continuous=True, num_threads=1)
    env, two = pixelpong.make_env("field"), pixelpong.make_two("field")
    for each in (envs, turning, env, two):
        each.reset(seed=0)
    state = envs.clone_state()
    for call in (
        lambda: envs.step(odd),
        lambda: envs.send(odd),
        lambda: turning.step(odd),
        lambda: env.step(odd),
        lambda: two.step({"right": odd, "left": 0}),
        lambda: envs.reset(seed=odd),
        lambda: env.reset(seed=odd),
        lambda: envs.reset(options={"reset_mask": odd}),
        lambda: envs.restore_state([odd] * len(state)),
        lambda: env.restore_state([odd] * len(state)),
    ):
        with pytest.raises(ConfigError) as refusal:
            call()
        assert "\n" not in str(refusal.value)
    for ours, theirs in zip(envs.clone_state(), state, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_actions_of_two_learners_that_are_none_are_refused():
    two = pixelpong.make_two("field")
    two.reset(seed=0)
    for odd in (None, 3, [0, 1], {}, {"right": 0}):
        with pytest.raises(ConfigError, match="actions must be those of right and left"):
            two.step(odd)


def test_games_that_are_none_are_not_given_and_others_are_refused():
    assert pixelpong.make_vec(games=None).num_envs == 1
    for odd in (5, "pong", [1], object()):
        with pytest.raises(ConfigError, match="games must be a list of names"):
            pixelpong.make_vec(games=odd)


def test_a_huge_float_is_refused_without_a_warning():
    envs = pixelpong.make_vec(1, continuous=True)
    envs.reset(seed=0)
    with warnings.catch_warnings(), pytest.raises(ConfigError, match="finite numbers"):
        warnings.simplefilter("error")
        envs.step(np.array([[1e300, 0.0, 0.0]]))


def test_a_library_that_cannot_be_imported_is_named_with_the_reason(monkeypatch):
    module = fake_sb3.load(monkeypatch, nothing=None)
    with pytest.raises(ConfigError, match="which cannot be imported here: .*; repair it"):
        module.make_sb3(1)


def test_an_attribute_that_games_do_not_have_is_refused(monkeypatch):
    envs = fake_sb3.load(monkeypatch).make_sb3(2, "field")
    assert envs.get_attr("batch_size") == [2, 2]
    with pytest.raises(AttributeError, match="unknown attribute 'nope'") as refusal:
        envs.get_attr("nope")
    assert isinstance(refusal.value, ConfigError)


def test_a_long_seed_counts_with_all_of_its_bits():
    seeds = [read_seeds(seed, 1)[0] for seed in (3, 2**63 + 3, 2**64 + 3, 2**200 + 3)]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_reset_does_not_raise_the_failure_of_another_game():
    envs = pixelpong.make_vec(2, "field", autoreset_mode="Disabled", num_threads=1)
    envs.reset(seed=0)
    envs.games["fault"][0], envs.games["is_on"][0] = 1, 0
    _, infos = envs.reset(options={"reset_mask": np.array([False, True])})
    assert infos["env_id"].tolist() == [0, 1]


CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


@pytest.mark.skipif(CORES < 2, reason="threads cannot be told apart by their cores here")
def test_helpers_stay_on_the_cores_after_the_offset():
    before = {thread.native_id for thread in threading.enumerate()}
    envs = pixelpong.make_vec(4, "field", num_threads=3, thread_affinity_offset=0)
    envs.reset(seed=0)
    envs.step(np.zeros(4, int))
    allowed, count = os.sched_getaffinity(0), os.cpu_count()
    new = [it for it in threading.enumerate() if it.native_id not in before]
    cores = [os.sched_getaffinity(it.native_id) for it in new]
    wanted = [{core} if (core := share % count) in allowed else allowed for share in (1, 2)]
    assert sorted(map(sorted, cores)) == sorted(map(sorted, wanted))
    envs.close()


PLAY_AT_OFFSETS = """
import pixelpong
for offset in (10**6, 2**31 - 2, 2**31, 2**63, 2**100):
    print(offset, flush=True)
    envs = pixelpong.make_vec(4, "field", num_threads=2, thread_affinity_offset=offset)
    envs.reset(seed=0)
    envs.close()
"""


def test_any_offset_of_cores_plays():
    words = [sys.executable, "-c", PLAY_AT_OFFSETS]
    done = subprocess.run(words, timeout=600, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_whatever_fails_in_a_helper_reaches_the_caller(monkeypatch):
    def fail(*_):
        raise RuntimeError("no core")

    envs = pixelpong.make_vec(4, "field", num_threads=2)
    monkeypatch.setattr("pixelpong.atari.games.turns._stay_on", fail)
    with pytest.raises(RuntimeError, match="no core"):
        envs.reset(seed=0)
    monkeypatch.undo()
    envs.reset(seed=0)
