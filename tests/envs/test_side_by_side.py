"""The comparison with ale-py finds each value that is another."""

from __future__ import annotations

import itertools

import gymnasium
import numpy as np
import pytest
from atari_vector import Comparison, OneSideBySide, SideBySide, choose_actions
from promises import promise

pytestmark = promise("the bytes of ale-py")


class Altered:
    """An environment of which one value of one result is another."""

    def __init__(self, envs, change):
        self._envs, self._change = envs, change

    def __getattr__(self, name):
        return getattr(self._envs, name)

    def step(self, actions):
        results = list(self._envs.step(actions))
        self._change(results)
        return tuple(results)


def flip(name):
    def change(results):
        place = results[-1] if isinstance(name, str) else results
        place[name] = place[name].copy()
        place[name].reshape(-1)[-1] ^= True

    return change


def retype(results):
    results[1] = results[1].astype(np.int64)


def forget(results):
    del results[-1]["lives"]


CHANGES = {
    **{str(name): flip(name) for name in (0, 1, 2, 3, "env_id", "lives", "frame_number")},
    "episode_frame_number": flip("episode_frame_number"), "a type": retype, "a key": forget,
}  # fmt: skip


@pytest.fixture(scope="module")
def many():
    both = SideBySide("pong", 2)
    both.reset(seed=0)
    yield both
    both.close()


@pytest.fixture(scope="module")
def alone():
    both = OneSideBySide("pong")
    both.reset(seed=0)
    yield both
    both.close()


@pytest.mark.parametrize("name", [0, 1, 2, 3, "lives", "frame_number"])
def test_one_value_of_one_game_that_is_another_is_found(name, alone, monkeypatch):
    alone.found = Comparison()
    alone.step(0)
    assert alone.found.differences == []

    def change(results):
        place = results[-1] if isinstance(name, str) else results
        place[name] = place[name] + (1 if isinstance(name, str) or name < 2 else True)

    monkeypatch.setattr(alone, "ours", Altered(alone.ours, change))
    alone.step(2)
    assert len(alone.found.differences) == 1


@pytest.mark.parametrize("what", CHANGES)
def test_one_value_that_is_another_is_found(what, many, monkeypatch):
    many.found = Comparison()
    many.step(np.array([0, 2]))
    assert many.found.differences == []
    monkeypatch.setattr(many, "ours", Altered(many.ours, CHANGES[what]))
    many.step(np.array([0, 2]))
    assert len(many.found.differences) == 1
    assert many.found.differences[0].startswith("step 2: ")


def test_last_observations_are_compared_in_the_games_that_ended():
    both = SideBySide("pong", 2, max_num_frames_per_episode=8, autoreset_mode="SameStep")
    both.reset(seed=0)
    both.step(np.array([0, 2]))
    both.ours = Altered(both.ours, flip("final_obs"))
    both.step(np.array([0, 2]))
    assert "final_obs of games [1], 1 values" in both.found.differences[0]
    both.close()


def test_the_actions_are_random_held_and_fired():
    space = gymnasium.spaces.Discrete(6)
    actions = np.array(list(itertools.islice(choose_actions(space, 8, 0), 600)))
    assert set(actions.flat) == set(range(6))
    is_held = (actions[1:] == actions[:-1]).mean()
    assert 0.3 < is_held < 0.7
    assert 0.2 < (actions == 1).mean() < 0.5
