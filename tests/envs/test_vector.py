"""Many games at once: the bytes of AtariVectorEnv, the games of trainings, Gymnasium's rules."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from atari_vector import compare
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test

import pixelpong
from pixelpong.agent.file import load_shipped
from pixelpong.atari.envs.plug import find_observations
from pixelpong.config.protocols import find_protocol
from pixelpong.envs.plugs import PLUGS
from pixelpong.errors import ConfigError
from pixelpong.items import Item
from pixelpong.play.player import Player
from pixelpong.pong.preprocess import BACKGROUND_REDS, mirror, preprocess
from pixelpong.seeding import make_rng

NAME = "pixelpong.envs:pixelpong/Pong-v0"


def held_actions(seed, size, count=6):
    """For ever, actions [size] that are kept for a while."""
    rng, actions = np.random.default_rng(seed), np.zeros(size, np.int64)
    while True:
        is_new = rng.random(size) < 0.1
        actions[is_new] = rng.integers(count, size=is_new.sum())
        yield actions.copy()


@pytest.mark.parametrize("game", ["breakout", "seaquest"])  # with a paddle, with a joystick
@pytest.mark.parametrize("sticky", [0.0, 0.5])
def test_continuous_actions_are_atari_vector_envs(game, sticky):
    """With sticky frames, a paddle turns as far as the action that is held says."""
    options = {
        "continuous": True, "continuous_action_threshold": 0.3, "num_threads": 1,
        "repeat_action_probability": sticky,
    }  # fmt: skip
    theirs, ours = AtariVectorEnv(game, 3, **options), pixelpong.make_vec(3, game=game, **options)
    assert ours.single_action_space == theirs.single_action_space
    for envs in (theirs, ours):
        envs.reset(seed=1)
    rng, least, most = np.random.default_rng(0), [0, -np.pi, 0], [1, np.pi, 1]
    for _ in range(80):
        actions = rng.uniform(least, most, (3, 3)).astype(np.float32)
        for a, b in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(a, b)
    for odd in (actions + 1e5, actions * np.nan, np.zeros((3, 3), int), actions[0]):
        with pytest.raises(ConfigError, match="actions must be"):
            ours.step(odd)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_fifty_whole_games_are_atari_vector_envs(mode):
    found = compare("pong", 77, num_envs=8, episodes=10_000, steps=6500, autoreset_mode=mode)
    assert (found.differences, found.ends >= 50) == ([], True)


SHORT = {"noop_max": 0, "use_fire_reset": False, "max_num_frames_per_episode": 120}


@pytest.mark.parametrize("observation", find_observations(PLUGS, "pong"))
def test_each_game_is_make_envs_whatever_the_threads(observation):
    options = SHORT | {"repeat_action_probability": 0.25, "autoreset_mode": "SameStep"}
    options["coins"] = "pixelpong"
    several = [pixelpong.make_vec(3, observation, num_threads=n, **options) for n in (1, 3)]
    alone = [pixelpong.make_env(observation, max_frames=120) for _ in range(3)]
    seen = [envs.reset(seed=7)[0] for envs in several]
    seen.append(np.stack([env.reset(seed=7 + i)[0] for i, env in enumerate(alone)]))
    for step, actions in zip(range(100), held_actions(1, 3), strict=False):
        np.testing.assert_array_equal(seen[0], seen[1], f"step {step}")
        np.testing.assert_array_equal(seen[0], seen[2], f"step {step}")
        (first, *ours), (second, *others) = (envs.step(actions) for envs in several)
        results = [env.step(action) for env, action in zip(alone, actions, strict=True)]
        single = [[it[k] for it in results] for k in (1, 2, 3)]
        lists = [[each.tolist() for each in it[:3]] for it in (ours, others)]
        assert lists == [single, single]
        if any(single[2]):
            np.testing.assert_array_equal(ours[3]["final_obs"], [it[0] for it in results])
            results = [env.reset() for env in alone]
        seen = [first, second, np.stack([it[0] for it in results])]


@pytest.mark.parametrize(("option", "count"), [("episodic_life", 8), ("continuous", 1)])
def test_the_newest_frame_is_that_in_which_an_episode_ends(option, count):
    """Also in the middle of a step; frame by frame there is no middle."""
    options = {"game": "seaquest", "noop_max": 0, "autoreset_mode": "Disabled", option: True}
    whole, single = (pixelpong.make_vec(1, "frame", frameskip=n, **options) for n in (7, 1))
    for envs in (whole, single):
        envs.reset(seed=0)
        envs.action_space.seed(0)
    ended = []
    while len(ended) < count:
        actions, frames, is_over = whole.action_space.sample(), 0, False
        frame, _, over, *_ = whole.step(actions)
        while frames < 7 and not is_over:
            wanted, _, (is_over,), *_ = single.step(actions)
            frames += 1
        np.testing.assert_array_equal(frame, wanted)
        assert over[0] == is_over
        if is_over:
            ended.append(frames)
            for envs in (whole, single):
                envs.reset()
    assert min(ended) < 7


def test_at_the_start_of_an_episode_nothing_is_held():
    """Whichever actions there are: with sticky frames alone, the paddle stays where it is."""
    envs = [pixelpong.make_env("field", actions=each, sticky=1.0) for each in ("two", "six")]
    for env in envs:
        env.reset(seed=0)
    for _ in range(30):
        first, second = (env.step(action)[0] for env, action in zip(envs, (0, 3), strict=True))
        np.testing.assert_array_equal(first, second)


def test_some_games_are_reset_by_a_mask_with_seeds_of_their_own():
    envs = pixelpong.make_vec(3, "field", **SHORT | {"repeat_action_probability": 0.9})
    envs.reset(seed=[5, 6, 7])
    for _, actions in zip(range(8), held_actions(3, 3), strict=False):
        before = envs.step(actions)[0]
    mask = np.array([True, False, True])
    after, infos = envs.reset(seed=np.array([6, 7]), options={"reset_mask": mask})
    np.testing.assert_array_equal(after[1], before[1])
    assert infos["episode_frame_number"].tolist() == [0, 32, 0]
    other = pixelpong.make_vec(2, "field", **SHORT | {"repeat_action_probability": 0.9})
    np.testing.assert_array_equal(other.reset(seed=6)[0], after[mask])
    for _, actions in zip(range(20), held_actions(4, 3), strict=False):
        np.testing.assert_array_equal(other.step(actions[mask])[0], envs.step(actions)[0][mask])


@pytest.mark.parametrize(
    ("observation", "opponent"),
    [("atari", "builtin"), ("pixels", "builtin"), ("frame", "builtin"), ("field", "club")],
)
def test_a_state_a_copy_and_a_pickle_play_on_as_the_games_did(observation, opponent):
    options = {"opponent": opponent, "repeat_action_probability": 0.25, "render_mode": "rgb_array"}
    envs = pixelpong.make_vec(2, observation, **options)
    envs.reset(seed=3)
    past, future = (list(zip(range(150), held_actions(k, 2), strict=False)) for k in (5, 6))
    for _, actions in past:
        envs.step(actions)
    state, others = envs.clone_state(), [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
    wanted = [envs.step(actions)[:4] for _, actions in future]
    envs.restore_state(state)
    for each in (envs, *others):
        for (_, actions), step in zip(future, wanted, strict=True):
            for ours, theirs in zip(each.step(actions)[:4], step, strict=True):
                np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(each.render(), envs.render())
    assert np.shape(envs.render()) == (2, 210, 160, 3)


def test_observations_are_new_arrays_unless_one_is_to_be_reused():
    for copies in (True, False):
        envs = pixelpong.make_vec(2, "pixels", copy=copies)
        first, _ = envs.reset(seed=0)
        assert (envs.step(np.array([2, 3]))[0] is not first) == copies


@pytest.mark.slow
def test_an_agent_on_the_left_plays_as_in_a_training():
    """The club's agent against the strong one, here and by the player of trainings."""
    right, left = load_shipped("club"), load_shipped("strong")
    protocol = find_protocol("ALE/Pong-v5", max_frames=3000)
    player = Player(protocol, "ppo", left.params)
    result = player.play(Item("evaluate", 2, 0, 0, opponent="strong"), right.params)
    env = pixelpong.make_env(opponent="strong", max_frames=3000)
    frame, _ = env.reset(seed=2)
    network, rewards, is_over = right.make_network(), [], False
    draws = iter(make_rng(2, "evaluate", 0, 0).random((1000, 12)))
    while not is_over:
        screen = np.where(~np.isin(frame[..., 0], BACKGROUND_REDS), 14, 0).astype(np.uint8)
        frame, reward, *ends, _ = env.step(network.act(screen, next(draws)[0]))
        rewards.append(reward)
        is_over = any(ends)
    (episode,) = result.episodes
    assert [reward for reward in rewards if reward] == list(episode.rewards)
    assert (len(rewards), any(rewards)) == (episode.steps, True)


def test_each_of_two_learners_sees_itself_on_the_right():
    kinds = ("frame", "field", "pixels", "atari")
    envs = {kind: pixelpong.make_two(kind, render_mode="rgb_array", noop_max=0) for kind in kinds}
    for env in envs.values():
        parallel_api_test(env, num_cycles=20)
    seen = {kind: env.reset(seed=1)[0] for kind, env in envs.items()}
    for _, (right, left) in zip(range(150), held_actions(1, 2), strict=False):
        before = {side: preprocess(seen["frame"][side]) for side in ("right", "left")}
        steps = {kind: env.step({"right": right, "left": left}) for kind, env in envs.items()}
        assert {sum(step[1].values()) for step in steps.values()} == {0}
        seen = {kind: step[0] for kind, step in steps.items()}
        frames = seen["frame"]
        np.testing.assert_array_equal(frames["left"], mirror(frames["right"]))
        np.testing.assert_array_equal(frames["right"], envs["field"].render())
        for side in ("right", "left"):
            now = preprocess(frames[side])
            np.testing.assert_array_equal(seen["field"][side], now)
            np.testing.assert_array_equal(seen["pixels"][side], now - before[side])
        np.testing.assert_array_equal(seen["atari"]["left"], seen["atari"]["right"][..., ::-1])


def test_what_cannot_be_is_refused_in_a_sentence():
    envs = pixelpong.make_vec(2, "field", autoreset_mode="Disabled", max_num_frames_per_episode=4)
    with pytest.raises(ConfigError, match="call reset"):
        envs.step(np.array([0, 0]))
    with pytest.raises(ConfigError, match="must reset every game"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=np.int64(1))
    for actions in (np.array([0, 6]), np.array([0, -1]), np.zeros(3, int), np.zeros(2), [0, None]):
        with pytest.raises(ConfigError, match="actions must be"):
            envs.step(actions)
    envs.step([0, 1])
    with pytest.raises(ConfigError, match="has ended: call reset"):
        envs.step([0, 1])
    for seed in (-1, "one", [1, 2, 3]):
        with pytest.raises(ConfigError, match="seed"):
            envs.reset(seed=seed)
    for options in (
        {"observation": "rgb"}, {"episodic_lives": True}, {"frameskip": 0}, {"img_width": 161},
        {"img_height": 105, "img_width": 80}, {"sticky": 0.1}, {"num_envs": 0}, {"stack_num": "4"},
        {"autoreset_mode": "never"}, {"render_mode": "human"}, {"continuous": 2},
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=next(iter(options))):
            pixelpong.make_vec(**options)
    assert envs.reset(seed=2**70)[0].shape == (2, 80, 80)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"actions": "three", "full_action_space": True}, "full_action_space has all actions"),
        ({"observation": "pixels", "stack_num": 7}, "stack_num has no effect .+'pixels'"),
        ({"observation": "field", "grayscale": False}, "grayscale has no effect"),
        ({"observation": "frame", "img_height": 50}, "img_height has no effect"),
        ({"observation": "frame", "img_width": 50}, "img_width has no effect"),
        ({"observation": "field", "maxpool": False}, "maxpool has no effect"),
        (
            {"frameskip": 5, "max_frameskip": 2},
            "must be at least frameskip, 5, not 2",
        ),
        ({"img_height": 42, "img_width": 40}, "img_height 42 and img_width 40 divide 210 and 160"),
        ({"continuous_action_threshold": 0.3}, "no effect without continuous actions"),
        ({"continuous": True, "opponent": "self"}, "without an opponent"),
        ({"coins": "ale", "max_frameskip": 5}, "for make_env alone; give coins='pixelpong'"),
        (
            {"game": "breakout", "opponent": "club"},
            "breakout has no second player; leave out opponent",
        ),
        (
            {"game": "breakout", "actions": "two"},
            "breakout has no actions by name; leave out actions",
        ),
        (
            {"game": "breakout", "observation": "pixels"},
            "breakout has no observation 'pixels'; use 'atari', 'frame', 'grayscale' or 'ram'",
        ),
        ({"game": "breakout", "img_height": 211}, "at most 210, the rows of breakout"),
        ({"game": "double_dunk", "repeat_action_probability": 0.8}, "in a menu before a game"),
        ({"num_envs": 2.5}, "make_vec: num_envs must be"),
        ({"num_env": 2}, "make_vec: .+ did you mean num_envs"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(options, says):
    with pytest.raises(ConfigError, match=says):
        pixelpong.make_vec(**options)


@pytest.mark.parametrize("options", [{"typo": 1}, {"reset_masks": [True]}, [1], "mask"])
def test_unknown_options_of_reset_are_refused(options):
    envs = pixelpong.make_vec(1, "field")
    with pytest.raises(ConfigError, match="option"):
        envs.reset(options=options)


def test_seeds_of_any_size_count_on_from_game_to_game():
    options = {"repeat_action_probability": 0.5, "max_num_frames_per_episode": 200}
    many = pixelpong.make_vec(3, "field", **options)
    alone = pixelpong.make_vec(1, "field", **options)
    for first in (0, 2**53, 2**63 - 2, 2**64 - 1, 10**30):
        many.reset(seed=first)
        for i in range(3):
            alone.reset(seed=[first + i])
            np.testing.assert_array_equal(alone.games["seed"][0], many.games["seed"][i])
        assert len(set(many.games["seed"].tolist())) == 3
    for seed in (True, -1, 1.5, "one", [1, 2, -3], [1, 2]):
        with pytest.raises(ConfigError, match="seed"):
            many.reset(seed=seed)


def test_gymnasium_makes_the_same_environments():
    envs = gymnasium.make_vec(NAME, num_envs=3, observation="field")
    assert type(envs.unwrapped) is pixelpong.make_vec
    assert envs.reset(seed=0)[0].shape == (3, 80, 80)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert gymnasium.make(NAME, observation="atari").observation_space.shape == (4, 84, 84)
