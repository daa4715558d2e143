"""The Gymnasium environment: as Gymnasium wants it, and exactly what our own rollouts play."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pixelpong
from pixelpong.agent.file import load_shipped
from pixelpong.agent.game import play_game
from pixelpong.engines import Engine
from pixelpong.env.preprocess import difference, preprocess
from pixelpong.errors import ConfigError
from pixelpong.evaluation import evaluate
from pixelpong.items import DOWN, UP
from pixelpong.play.worker import make_worker
from pixelpong.seeding import make_rng

NAME = "pixelpong.env.gym:pixelpong/Pong-v0"
SHORT = 300


def play(env, seed, actions, episodes=1):
    """What comes of `actions`, again and again: observations, rewards, ends, infos."""
    seen = []
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        seen.append((observation, None, info))
        for action in itertools.cycle(actions):
            observation, reward, terminated, truncated, info = env.step(action)
            seen.append((observation, (reward, terminated, truncated), info))
            if terminated or truncated:
                break
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "observation", "actions"),
    [("ALE/Pong-v5", "frame", "six"), ("Pong-v0", "pixels", "three")],
)
def test_gymnasiums_checker_finds_no_fault(environment, observation, actions):
    env = gymnasium.make(NAME, environment=environment, observation=observation, actions=actions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    assert env.spec.nondeterministic is False


@pytest.mark.slow
def test_the_same_actions_give_the_frames_and_rewards_of_an_agents_games():
    """The k-th episode after reset(seed=S) has the coins of the k-th of seed S."""
    env = pixelpong.make_env(environment="Pong-v0")  # which draws its frame skips as well
    agent = dataclasses.replace(load_shipped("beginner"), protocol=env.unwrapped.protocol)
    for index in range(2):
        observation, info = env.reset(seed=3) if index == 0 else env.reset()
        reward, is_over, steps = 0.0, False, 0
        for moment in play_game(agent, 3, index, is_greedy=False):
            np.testing.assert_array_equal(moment.frame, observation)
            assert (moment.reward, moment.action is None) == (reward, is_over)
            if not is_over:
                observation, reward, *ends, info = env.step(moment.action)
                is_over, steps = any(ends), steps + 1
        assert (info["points_lost"], info["points_won"]) == moment.points
        assert info["frames"] < 4 * steps


def test_the_same_seed_is_the_same_game_and_another_is_not():
    env = pixelpong.make_env(max_frames=SHORT, observation="pixels", actions="three")
    first, again, other = (play(env, seed, [1, 2, 2, 0], episodes=2) for seed in (1, 1, 2))
    for (a, *rest), (b, *same) in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
        assert rest == same
    assert [each[0].tolist() for each in other] != [each[0].tolist() for each in first]


@pytest.mark.slow
def test_without_a_seed_no_two_environments_play_the_same_game():
    games = [play(pixelpong.make_env(environment="Pong-v0"), None, [2, 3, 3])[:30] for _ in "ab"]
    assert [info["frames"] for *_, info in games[0]] != [info["frames"] for *_, info in games[1]]


def test_pixels_are_what_the_classic_network_sees_and_fewer_actions_some_of_the_six():
    names = (("six", [2, 3, 3]), ("three", [1, 2, 2]), ("two", [0, 1, 1]))
    six, three, two = (
        play(pixelpong.make_env(max_frames=SHORT, actions=name), 9, actions)
        for name, actions in names
    )
    pixels = play(pixelpong.make_env("pixels", max_frames=SHORT, actions="two"), 9, [0, 1, 1])
    before = None
    for (frame, *_), (a, *_), (b, *_), (seen, *_) in zip(six, three, two, pixels, strict=True):
        np.testing.assert_array_equal(a, frame)
        np.testing.assert_array_equal(b, frame)
        now = preprocess(frame)
        np.testing.assert_array_equal(seen.ravel(), difference(before, now))
        before = now


def test_a_game_that_is_cut_off_is_truncated(monkeypatch):
    env = pixelpong.make_env(max_frames=SHORT)
    short = dataclasses.replace(env.unwrapped.protocol, max_frames=20)
    for each in (env.unwrapped, env.unwrapped._emulator):
        monkeypatch.setattr(each, "protocol", short)
    *_, (_, (_, terminated, truncated), info) = play(env, 0, [0])
    assert (terminated, truncated, info["frames"]) == (False, True, 20)


def test_a_picture_is_the_newest_frame():
    env = pixelpong.make_env("pixels", max_frames=SHORT, render_mode="rgb_array")
    frames = play(pixelpong.make_env(max_frames=SHORT), 0, [2, 3, 2])
    env.reset(seed=0)
    for action, (frame, *_) in zip((2, 3, 2), frames[1:], strict=False):
        env.step(action)
        np.testing.assert_array_equal(env.render(), frame)
    assert env.unwrapped.metadata["render_fps"] == 15


VECTORS = {
    "sync": {"vectorization_mode": "sync"},
    "fork": {"vectorization_mode": "async", "vector_kwargs": {"context": "fork"}},
    "spawn": {"vectorization_mode": "async", "vector_kwargs": {"context": "spawn"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("how", VECTORS)
def test_many_at_once_are_each_as_one_alone(how):
    envs = gymnasium.make_vec(NAME, num_envs=2, max_frames=SHORT, actions="two", **VECTORS[how])
    alone = [pixelpong.make_env(max_frames=SHORT, actions="two") for _ in range(2)]
    seen, _ = envs.reset(seed=5)
    for index, env in enumerate(alone):
        np.testing.assert_array_equal(env.reset(seed=5 + index)[0], seen[index])
    for action in (0, 1, 1, 0, 1):
        seen, rewards, *_ = envs.step(np.full(2, action))
        for index, env in enumerate(alone):
            observation, reward, *_ = env.step(action)
            np.testing.assert_array_equal(observation, seen[index])
            assert reward == rewards[index]
    envs.close()


def test_a_deep_copy_plays_on_alone():
    env = pixelpong.make_env()
    env.reset(seed=1)
    env.step(UP)
    other = copy.deepcopy(env)
    first, second = ([each.step(DOWN)[0] for _ in range(40)] for each in (env, other))
    assert np.array_equal(first, second)


def test_what_is_no_action_and_a_step_after_the_end_are_refused_with_the_way_out():
    env = pixelpong.make_env(max_frames=20, actions="three").unwrapped
    env.reset()
    for action in (3, -1, 2.0, "up", None, [1], np.array([1])):  # 3: of one of our agents
        with pytest.raises(ConfigError, match=r"number below 3 .*, got .*make_env\(actions='six'"):
            env.step(action)
    assert [env.step(np.array(2))[3] for _ in range(5)] == [False, False, False, False, True]
    with pytest.raises(ConfigError, match=r"has ended; call reset\(\)"):
        env.step(0)
    env.reset()
    env.step(0)


# The agent on it.


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One of each algorithm, on the toy."""
    folder = tmp_path_factory.mktemp("runs")
    options = {"max_frames": SHORT, "hidden": 8, "engine": "serial", "quiet": True, "updates": 3}
    return {
        "classic": pixelpong.train("classic", run=folder / "a", batch_size=3, **options),
        "fast": pixelpong.train("fast", run=folder / "b", num_envs=4, num_steps=64, **options),
    }


@pytest.mark.parametrize("name", ["classic", "fast"])
@pytest.mark.parametrize("is_greedy", [True, False])
def test_a_policy_decides_bit_for_bit_as_an_evaluation_does(trained, name, is_greedy):
    """Five episodes, played by the workers and in a plain Gymnasium loop."""
    policy = pixelpong.Policy.load(trained[name])
    engine = Engine(lambda: make_worker(trained[name].config))
    wanted = evaluate(engine, policy.params, seed=2, episodes=5, is_greedy=is_greedy)
    env = pixelpong.make_env(max_frames=SHORT)
    returns = []
    for index in range(5):
        observation, _ = env.reset(seed=2) if index == 0 else env.reset()
        policy.reset()
        rows = iter(make_rng(2, "evaluate", 0, index).random((10_000, 6)))
        total, is_over = 0.0, False
        while not is_over:
            rng = None if is_greedy else FirstOf(next(rows))
            observation, reward, *ends, _ = env.step(policy.act(observation, rng))
            total, is_over = total + reward, any(ends)
        returns.append(total)
    assert tuple(returns) == wanted.returns


class FirstOf:
    """The generator of a rollout, whose first number of a row chooses the action."""

    def __init__(self, row):
        self._row = row

    def random(self):
        return self._row[0]


@pytest.mark.parametrize("name", ["classic", "fast"])
def test_probabilities_and_value_move_nothing_on(trained, name):
    policy, twin = (pixelpong.Policy.load(trained[name]) for _ in range(2))
    env = pixelpong.make_env(max_frames=SHORT)
    observation, _ = env.reset(seed=0)
    for _ in range(40):
        before = observation.copy()
        p, value = policy.probabilities(observation), policy.value(observation)
        assert (p.shape, p.sum()) == ((len(policy.actions),), pytest.approx(1))
        assert (value is None) == (name == "classic")
        action = policy.act(observation)
        assert p[policy.actions.index(action)] == p.max()
        assert action == twin.act(observation)
        np.testing.assert_array_equal(observation, before)
        observation, *_ = env.step(action)


@pytest.mark.parametrize("name", ["classic", "fast"])
def test_predict_for_many_is_act_for_each(trained, name):
    """As stable-baselines3 calls it: states go round, episodes begin at different times."""
    policy = pixelpong.Policy.load(trained[name])
    alone = [pixelpong.Policy.load(trained[name]) for _ in range(3)]
    envs = [pixelpong.make_env(max_frames=SHORT) for _ in range(3)]
    frames = [env.reset(seed=seed)[0] for seed, env in enumerate(envs)]
    state, starts = None, np.ones(3, bool)
    for step in range(60):
        actions, new = policy.predict(np.stack(frames), state, starts)
        if state is not None:  # the one that was given is not changed
            again, _ = policy.predict(np.stack(frames), state, starts)
            np.testing.assert_array_equal(again, actions)
        state = new
        for index, env in enumerate(envs):
            if starts[index]:
                alone[index].reset()
            assert alone[index].act(frames[index]) == actions[index]
            frames[index], _, *ends, _ = env.step(actions[index])
            starts[index] = any(ends) or step == 10 * (index + 1)
            if starts[index]:
                frames[index] = env.reset()[0]
    one, _ = policy.predict(frames[0])
    assert one.shape == ()
    assert one in policy.actions


def test_predict_that_is_not_deterministic_draws_from_the_policys_generator(trained):
    frame, _ = pixelpong.make_env(max_frames=SHORT).reset(seed=0)
    drawn = [
        [int(policy.predict(frame, deterministic=False)[0]) for _ in range(50)]
        for policy in (pixelpong.Policy.load(trained["fast"]) for _ in range(2))
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 3
