"""Some games continue from a state while the others play on."""

from __future__ import annotations

import numpy as np
import pytest
from environments import KINDS, make, state_of

import pixelpong
from pixelpong.atari.steps.records import GENERATORS
from pixelpong.errors import ConfigError

SEVERAL = [kind for kind, (size, _, _) in KINDS.items() if size > 1]


def rows_of(state, rows):
    return tuple(array[rows] for array in state)


def steps_of(envs, count):
    return [envs.step(np.full(envs.num_envs, step % 3)) for step in range(count)]


@pytest.mark.parametrize("kind", SEVERAL)
def test_one_game_continues_from_anothers_state_and_the_others_play_on(kind):
    envs, other = make(kind)
    size, saved = envs.num_envs, envs.clone_state()
    for each in (envs, other):
        steps_of(each, 3)
    last, rest = size - 1, np.arange(size - 1)
    envs.restore_state(rows_of(saved, [0]), games=[last])
    for ours, before, theirs in zip(envs.clone_state(), saved, other.clone_state(), strict=True):
        np.testing.assert_array_equal(ours[rest], theirs[rest])
        np.testing.assert_array_equal(ours[last], before[0])
    for ours, theirs in zip(*(steps_of(each, 4) for each in (envs, other)), strict=True):
        for our, their in zip(ours[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(our[rest], their[rest])


@pytest.mark.parametrize("kind", SEVERAL)
def test_without_the_generators_each_game_keeps_its_own(kind):
    envs, _ = make(kind)
    size, saved = envs.num_envs, envs.clone_state()
    steps_of(envs, 3)
    now = envs.clone_state()
    envs.restore_state(rows_of(saved, [0] * size), include_rng=False)
    after = envs.clone_state()
    for number, (ours, before, own) in enumerate(zip(after, saved, now, strict=True)):
        kept = {1: ("seed", "episode"), 2: GENERATORS}.get(number, ())
        for name in ours.dtype.names or [...]:
            wanted = own[name] if name in kept else before[name][[0] * size]
            np.testing.assert_array_equal(ours[name], wanted)


@pytest.mark.parametrize("coins", ["ale", "pixelpong"])
def test_two_games_from_one_row_meet_the_same_sticky_frames_or_each_its_own(coins):
    options = {"game": "breakout", "repeat_action_probability": 0.5, "coins": coins}
    envs = pixelpong.make_vec(4, "ram", num_threads=1, **options)
    envs.reset(seed=0)
    moves = np.random.default_rng(0).integers(4, size=40)
    for move in moves[:8]:
        envs.step(np.full(4, move))
    state = envs.clone_state()

    def are_equal(games, **given):
        envs.restore_state(rows_of(state, [3, 3]), games=games, **given)
        seen = [envs.step(np.full(4, move))[0][games] for move in moves]
        return all((first == second).all() for first, second in seen)

    assert are_equal([2, 0])
    assert not are_equal([3, 1], include_rng=False)


def test_what_no_games_can_continue_from_is_refused_and_nothing_has_changed():
    envs = pixelpong.make_vec(3, "field", num_threads=1)
    with pytest.raises(ConfigError, match=r"No game was reset yet.*call reset\(\)"):
        fresh = pixelpong.make_vec(1, "field")
        fresh.reset(seed=0)
        envs.restore_state(fresh.clone_state(), games=[1])
    envs.reset(seed=0)
    state, before = envs.clone_state(), state_of(envs)
    two = rows_of(state, [0, 1])
    for games, given, message in (
        ([0], two, "The state has 2 games, not 1"), ([0, 1, 2], two, "has 2 games, not 3"),
        ([1, 1], two, "games must be different whole numbers from 0 to 2"),
        ([0, 3], two, "from 0 to 2"), ([-1, 0], two, "from 0 to 2"), ([0.0, 1.0], two, "whole"),
        ("field", two, "whole"), ([[0, 1]], two, "whole"), (object(), two, "games must be"),
        ([True, False, True], two, "whole"), ([0, 1], None, "one from clone_state"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            envs.restore_state(given, games=games)
        assert state_of(envs) == before
    envs.restore_state(rows_of(state, []), games=[])
    assert state_of(envs) == before
    batches = pixelpong.make_vec(2, "field", batch_size=1)
    with pytest.raises(ConfigError, match="there are no states"):
        batches.restore_state(two, games=[0, 1])


def test_several_cartridges_exchange_rows_of_the_same_one():
    options = {"full_action_space": True, "num_threads": 1}
    envs = pixelpong.make_vec(
        observation="ram", games=["breakout", "seaquest", "breakout"], **options
    )
    envs.reset(seed=0)
    state = envs.clone_state()
    envs.restore_state(rows_of(state, [2, 1]), games=[0, 1])
    with pytest.raises(ConfigError, match="Row 0 of the state belongs to another game"):
        envs.restore_state(rows_of(state, [1]), games=[2])
