"""The Gymnasium environment: as Gymnasium wants it, and exactly what our own rollouts play."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pixelpong
from pixelpong import Policy
from pixelpong.agent.choice import open_agent
from pixelpong.agent.game import play_game
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.errors import ConfigError
from pixelpong.pong.preprocess import difference, preprocess
from pixelpong.seeding import make_rng

NAME = "pixelpong.envs:pixelpong/Pong-v0"
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
def test_the_same_seed_is_the_same_game_another_is_not_and_none_is_new_each_time():
    env, *fresh = (
        pixelpong.make_env("pixels", environment="Pong-v0", actions="three", max_frames=SHORT)
        for _ in range(3)
    )
    asked = [(env, 1), (env, 1), (env, 2), *((each, None) for each in fresh)]
    first, again, *others = (play(each, seed, [1, 2, 2, 0], episodes=2) for each, seed in asked)
    for (a, *rest), (b, *same) in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
        assert rest == same
    games = {tuple(info["frames"] for *_, info in each) for each in (first, *others)}
    assert len(games) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_greedy", "max_frames", "episodes"),
    [
        *itertools.product(("classic", "fast"), (True, False), (SHORT,), (2,)),
        ("beginner", False, None, 1),
    ],
)
def test_a_policy_on_the_environment_plays_its_agents_games_and_looking_moves_nothing_on(
    toy_runs, name, is_greedy, max_frames, episodes
):
    """The k-th episode after ``reset(seed=S)`` has the coins of the k-th of seed S."""
    rules = {"environment": "Pong-v0", "max_frames": max_frames}  # frame skips are drawn as well
    env = pixelpong.make_env(**rules, render_mode="rgb_array")
    assert env.metadata["render_fps"] == 15
    _, agent = open_agent(str(toy_runs.get(name, name)))
    agent = dataclasses.replace(agent, protocol=env.protocol)
    policy = Policy(agent)
    for index in range(episodes):
        observation, info = env.reset(seed=3) if index == 0 else env.reset()
        policy.reset()
        draws = make_rng(3, "evaluate", 0, index)
        reward, ends = 0.0, [False, False]
        for moment in play_game(agent, 3, index, is_greedy=is_greedy):
            np.testing.assert_array_equal(moment.frame, observation)
            np.testing.assert_array_equal(moment.frame, env.render())
            assert (moment.reward, moment.action is None) == (reward, any(ends))
            if moment.action is None:
                break
            if moment.step % 7 == 0:
                p, value = policy.probabilities(observation), policy.value(observation)
                assert (p.shape, p.sum()) == ((len(policy.actions),), pytest.approx(1))
                assert (value is None) == (name == "classic")
                assert not is_greedy or p[policy.actions.index(moment.action)] == p.max()
            first, *_ = draws.random(6)  # a step's row: for the action, the skip and four frames
            rng = None if is_greedy else SimpleNamespace(random=lambda first=first: first)
            assert policy.act(observation, rng) == moment.action
            np.testing.assert_array_equal(moment.frame, observation)
            observation, reward, *ends, info = env.step(moment.action)
        assert ends == [max_frames is None, max_frames is not None]
        assert (info["points_lost"], info["points_won"]) == moment.points
        assert info["frames"] < 4 * moment.step


def test_pixels_are_what_the_classic_network_sees_and_fewer_actions_some_of_the_six():
    def seen(observation, name, actions):
        env = pixelpong.make_env(observation, max_frames=SHORT, actions=name)
        return [each for each, *_ in play(env, 9, actions)]

    frames = seen("frame", "six", [2, 3, 3])
    np.testing.assert_array_equal(seen("frame", "three", [1, 2, 2]), frames)
    pairs = itertools.pairwise([None, *map(preprocess, frames)])
    wanted = [difference(*pair).reshape(80, 80) for pair in pairs]
    np.testing.assert_array_equal(seen("pixels", "two", [0, 1, 1]), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("context", [None, "fork", "spawn"])
def test_many_at_once_are_each_as_one_alone(context):
    how = {"vectorization_mode": "sync"}
    if context:
        how = {"vectorization_mode": "async", "vector_kwargs": {"context": context}}
    envs = gymnasium.make_vec(NAME, num_envs=2, max_frames=SHORT, actions="two", **how)
    alone = [pixelpong.make_env(max_frames=SHORT, actions="two") for _ in range(2)]
    first = [env.reset(seed=5 + index)[0] for index, env in enumerate(alone)]
    np.testing.assert_array_equal(first, envs.reset(seed=5)[0])
    for action in (0, 1, 1, 0, 1):
        seen, rewards, *_ = envs.step(np.full(2, action))
        steps = [env.step(action) for env in alone]
        np.testing.assert_array_equal([each[0] for each in steps], seen)
        assert [each[1] for each in steps] == rewards.tolist()
    envs.close()


def test_what_is_no_action_and_a_step_after_the_end_are_refused_with_the_way_out():
    env = pixelpong.make_env(max_frames=20, actions="three")
    env.reset()
    for action, says in (
        (3, r"must be from 0 to 2, not \[3\]; leave out actions to have all 6"),
        (-1, r"from 0 to 2, not \[-1\]$"),
        *((odd, "action must be a whole number") for odd in (2.0, "up", None, [1], np.array([1]))),
    ):
        with pytest.raises(ConfigError, match=says):
            env.step(action)
    *_, last = steps = [env.step(np.array(2)) for _ in range(5)]
    assert [truncated for *_, truncated, _ in steps] == [False, False, False, False, True]
    assert (last[2], last[4]["frames"]) == (False, 20)
    with pytest.raises(ConfigError, match=r"has ended: call reset\(\)"):
        env.step(0)
    env.reset()
    env.step(0)


def test_one_game_is_as_atari_programs_expect_it():
    env = pixelpong.make_env("field")
    assert env.get_action_meanings() == make_theirs("pong").unwrapped.get_action_meanings()
    assert env.metadata.keys() == pixelpong.make_env.metadata.keys()
    with pytest.raises(ConfigError, match=r"reset\(\) has no option 'typo'"):
        env.reset(options={"typo": 1})
    with pytest.raises(ConfigError, match=r"make_env: observation must be .+ not 'rgb'"):
        pixelpong.make_env("rgb")
    env.reset(seed=0)
    first = env.clone_state()
    seen, *_ = env.step(1)
    env.restore_state(first)
    np.testing.assert_array_equal(env.step(True)[0], seen)
    for seed in (np.int64(3), np.uint64(2**63), 2**53, 2**64 + 5, 10**40):
        first, again = (
            play(pixelpong.make_env("pixels", max_frames=SHORT), each, [2, 2, 3])
            for each in (seed, int(seed))
        )
        for (a, *rest), (b, *same) in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
            assert rest == same


def test_predict_for_many_is_act_for_each_and_can_draw_its_actions(toy_runs, mode):
    """As stable-baselines3 calls it: states go round, episodes begin at different times."""
    policy, *alone = (Policy.load(toy_runs[mode]) for _ in range(4))
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
    drawn = [
        [int(each.predict(frames[0], deterministic=False)[0]) for _ in range(50)]
        for each in alone  # each with a generator of its own
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    assert {*drawn[0]} == {*policy.actions}


@pytest.mark.slow
def test_predict_forgets_the_last_frame_where_an_episode_starts():
    """Where that makes a difference: the champion, at many of the first steps of a game."""
    policy, fresh = Policy.load("package"), Policy.load("package")
    env = pixelpong.make_env()
    frame, _ = env.reset(seed=0)
    state, differ = None, []
    for _ in range(60):
        begun, _ = policy.predict(frame, state, np.array([True]))
        fresh.reset()
        assert begun == fresh.act(frame)
        many, _ = policy.predict(np.stack([frame] * 2), state and state * 2, [False, True])
        action, state = policy.predict(frame, state, np.array([False]))
        assert many.tolist() == [action, begun]
        differ.append(action != begun)
        frame, *_ = env.step(action)
    assert 10 < sum(differ) < 50
