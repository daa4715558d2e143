"""A state that games cannot be in is refused before a byte is written.

`make test` runs these once more with bounds checked, as those of `test_bounds`:

    NUMBA_BOUNDSCHECK=1 pytest tests/envs/test_states.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hostile_states
import numpy as np
import pytest
from environments import KINDS, make, state_of
from promises import promise

import pixelpong
from pixelpong.errors import ConfigError, EmulatorError

pytestmark = promise("bounds")


def odd_states(state):
    """States as no environment has them."""
    rules, games, chances, states, remembered, frames, *observed = state
    rest = remembered, frames, *observed
    front = chances, states
    for name, value in {
        "newest": [-1, 64, 2**40], "num_frames": [-1, 109_000], "steps": [-1, 2**62],
        "seed": [-1], "episode": [-2, 2**40], "held": [-1, 18], "is_on": [2, -1],
        "total_frames": [-1, 2**63 - 1], "may_end": [2], "points": [-1],
    }.items():  # fmt: skip
        for each in value:
            odd = games.copy()
            odd[name][-1] = each
            yield rules, odd, *front, *rest
    for name, part, value in (
        ("coins", "used", -1), ("opening", "used", 2**63 - 1), ("console", "made", 2**40),
    ):  # fmt: skip
        odd = chances.copy()
        odd[name][part][-1] = value
        yield rules, games, odd, states, *rest
    for row in (0, 79) if observed and observed[0].dtype == np.uint64 else ():
        odd = observed[0].copy()
        odd[-1, 1, row, 1] |= np.uint64(1 << 16)
        yield rules, games, *front, remembered, frames, odd
    if remembered.size:
        for set_it in (
            lambda it: it["game"]["newest"].__setitem__(0, 2),
            lambda it: it["last_actions"].__setitem__((0, 0), 3),
            lambda it: it["last_actions"].__setitem__((0, 1), -1),
            lambda it: it["fields"].__setitem__((0, 0, 79, 1), 2**63),
        ):
            odd = remembered.copy()
            set_it(odd)
            yield rules, games, *front, odd, frames, *observed
    for number, each in enumerate(state):
        if each.size:
            shorter = each[:, :-1] if each.ndim > 1 and number else each[:-1]
            for odd in (shorter, each.view(np.uint8)[..., :0]):
                yield *state[:number], odd, *state[number + 1 :]
    yield state[:-1]
    yield (*state, state[-1])
    yield None
    yield "state"
    yield tuple(None for _ in state)
    yield tuple(each[:0] for each in state)
    yield tuple(np.repeat(each, 2, axis=0) for each in state)


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_state_is_refused_and_nothing_has_changed(kind):
    envs, other = make(kind)
    before, count = state_of(envs), 0
    for odd in odd_states(envs.clone_state()):
        with pytest.raises(ConfigError) as refusal:
            envs.restore_state(odd)
        assert "\n" not in str(refusal.value)
        assert state_of(envs) == before
        count += 1
    assert count > 30
    size = envs.num_envs
    for ours, theirs in zip(*(it.step(np.ones(size, int)) for it in (envs, other)), strict=True):
        if isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)


def test_games_with_other_options_exchange_no_states():
    """One by one, each option that a game's future depends on."""
    base = {"num_envs": 2, "observation": "atari", "num_threads": 1}
    envs = pixelpong.make_vec(**base)
    envs.reset(seed=0)
    state = envs.clone_state()
    for options in (
        {"stack_num": 8}, {"observation": "pixels"}, {"frameskip": 3}, {"max_frameskip": 5},
        {"repeat_action_probability": 0.5}, {"max_num_frames_per_episode": 400}, {"noop_max": 3},
        {"use_fire_reset": False}, {"full_action_space": True}, {"actions": "two"},
        {"img_height": 50}, {"grayscale": False}, {"maxpool": False}, {"opponent": "club"},
        {"opponent": "self"}, {"autoreset_mode": "SameStep"}, {"render_mode": "rgb_array"},
        {"coins": "pixelpong"}, {"episodic_life": True}, {"life_loss_info": True},
        {"game": "breakout"}, {"mode": 1}, {"difficulty": 1},
    ):  # fmt: skip
        with pytest.raises(ConfigError, match="belongs to games with other options"):
            pixelpong.make_vec(**base | options).restore_state(state)
    first, second = (pixelpong.make_vec(1, "field", opponent=it) for it in ("club", "strong"))
    first.reset(seed=0)
    with pytest.raises(ConfigError, match="the same opponent"):
        second.restore_state(first.clone_state())
    free = {"num_threads": 2, "copy": False, "reward_clipping": False}
    pixelpong.make_vec(**base | free).restore_state(state)


def test_a_state_may_be_repeated_and_any_console_is_safe():
    one = pixelpong.make_vec(1, "field", num_threads=1)
    one.reset(seed=0)
    state = tuple(np.repeat(each, 3, axis=0) for each in one.clone_state())
    envs = pixelpong.make_vec(3, "field", num_threads=1)
    envs.restore_state(state)
    seen, *_ = envs.step(np.full(3, 2))
    np.testing.assert_array_equal(seen, np.repeat(one.step(np.full(1, 2))[0], 3, axis=0))
    rng, failed = np.random.default_rng(0), 0
    for _ in range(200):
        consoles = state[3]
        consoles[:] = rng.integers(256, size=consoles.shape)
        envs.restore_state(state)
        for _ in range(1 + len(envs.games)):
            try:
                envs.step(np.full(3, 2))
                break
            except EmulatorError:  # those that failed begin anew
                failed += 1
        else:
            raise AssertionError("a game that began anew failed")
    assert failed > 0


@pytest.mark.parametrize("sticky", [0.0, 0.25])
@pytest.mark.parametrize("game", ["pong", "elevator_action"])  # which has memory of its own
def test_a_state_after_many_episodes_is_one(game, sticky):
    options = {"game": game, "max_num_frames_per_episode": 1, "repeat_action_probability": sticky}
    envs, other = (pixelpong.make_vec(1, **options) for _ in range(2))
    envs.reset(seed=0)
    for _ in range(150):
        envs.step(np.array([1]))
    other.restore_state(envs.clone_state())
    for ours, theirs in zip(*(it.step(np.array([1])) for it in (envs, other)), strict=True):
        if isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)


def test_a_state_of_another_number_of_games_is_refused_with_the_way_out():
    one, four = (pixelpong.make_vec(n, "field") for n in (1, 4))
    one.reset(seed=0)
    with pytest.raises(ConfigError, match=r"has 1 game, not 4; repeat or select rows"):
        four.restore_state(one.clone_state())


def test_one_game_refuses_what_is_not_its_state():
    env, other = pixelpong.make_env("field"), pixelpong.make_env("field", frame_skip=2)
    env.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(ConfigError, match="other options"):
        env.restore_state(other.clone_state())
    env.restore_state(env.clone_state())


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_of_a_state_can_make_a_call_endless(kind):
    """Each field of each record in turn: the state is refused, or it plays on and ends."""
    script = Path(hostile_states.__file__)
    call = [sys.executable, str(script), kind]
    done = subprocess.run(call, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    refused, played = map(int, done.stdout.split())
    assert refused > 20
    assert played > 15


def test_rows_of_a_game_that_was_never_reset_are_refused_beside_others():
    one, never, both = (pixelpong.make_vec(n, "field") for n in (1, 1, 2))
    one.reset(seed=0)
    pairs = zip(one.clone_state(), never.clone_state(), strict=True)
    with pytest.raises(ConfigError, match="Game 1 of the state was never reset"):
        both.restore_state(tuple(np.concatenate(pair) for pair in pairs))
    both.restore_state(tuple(np.repeat(it, 2, axis=0) for it in never.clone_state()))
    with pytest.raises(ConfigError, match="call reset"):
        both.step(np.zeros(2, int))
    both.reset()


def test_a_state_belongs_to_its_cartridge():
    options = {"full_action_space": True, "num_threads": 1}
    envs = pixelpong.make_vec(games=["breakout", "seaquest", "breakout"], **options)
    envs.reset(seed=1)
    state = envs.clone_state()
    for rows, says in (([1, 0, 2], "Row 0"), ([0, 0, 0], "Row 1")):
        with pytest.raises(ConfigError, match=f"{says} of the state belongs to another game"):
            envs.restore_state(tuple(each[rows] if len(each) else each for each in state))
    envs.restore_state(tuple(each[[2, 1, 0]] if len(each) else each for each in state))
    single = pixelpong.make_vec(2, game="breakout", **options)
    single.reset(seed=3)
    pixelpong.make_vec(games=["breakout"] * 2, **options).restore_state(single.clone_state())


def test_a_generator_of_zeros_draws_a_number():
    """No seed gives one; a state may."""
    envs = pixelpong.make_vec(1, "field", noop_max=30, num_threads=1)
    envs.reset(seed=0)
    state = envs.clone_state()
    state[2]["opening"]["words"] = 0
    envs.restore_state(state)
    envs.reset()
