"""Every option of every function that makes environments: it works as described, or is refused."""

from __future__ import annotations

import importlib.util
import inspect
import re

import gymnasium
import numpy as np
import pytest

import pixelpong
from pixelpong.atari.envs.gym import id_of
from pixelpong.envs import AtariVectorEnv
from pixelpong.envs.two import MAKE_TWO
from pixelpong.errors import PixelpongError

HAS_SB3 = importlib.util.find_spec("stable_baselines3") is not None
MAKERS = {
    "make_vec": pixelpong.make_vec,
    "make_env": pixelpong.make_env,
    "make_two": pixelpong.make_two,
    "make_sb3": pixelpong.make_sb3,
    "envs.AtariVectorEnv": lambda num_envs=1, game="pong", **it: AtariVectorEnv(
        game, num_envs, **it
    ),
    "gymnasium.make_vec": lambda num_envs=1, **it: gymnasium.make_vec(
        f"pixelpong.envs:{id_of(it.pop('game', 'pong'))}", num_envs, **it
    ),
}
# By option, what is given with another value than the default, as `make_vec` accepts it.
GIVEN = {
    "num_envs": {"num_envs": 3}, "observation": {"observation": "field"},
    "game": {"game": "breakout"}, "games": {"games": ["pong", "pong"]},
    "mode": {"mode": 1}, "difficulty": {"difficulty": 2},
    "actions": {"actions": "three"}, "opponent": {"opponent": "self"},
    "coins": {"coins": "ale"}, "num_threads": {"num_threads": 2},
    "thread_affinity_offset": {"thread_affinity_offset": 0},
    "batch_size": {"num_envs": 2, "batch_size": 1}, "copy": {"copy": False},
    "render_mode": {"render_mode": "rgb_array"}, "autoreset_mode": {"autoreset_mode": "SameStep"},
    "frameskip": {"frameskip": 3}, "max_frameskip": {"frameskip": 2, "max_frameskip": 5},
    "repeat_action_probability": {"repeat_action_probability": 0.5},
    "max_num_frames_per_episode": {"max_num_frames_per_episode": 2}, "noop_max": {"noop_max": 3},
    "use_fire_reset": {"use_fire_reset": False}, "episodic_life": {"episodic_life": True},
    "life_loss_info": {"life_loss_info": True}, "ram_info": {"ram_info": True},
    "reward_clipping": {"reward_clipping": False},
    "full_action_space": {"full_action_space": True}, "continuous": {"continuous": True},
    "continuous_action_threshold": {"continuous": True, "continuous_action_threshold": 0.2},
    "img_height": {"observation": "atari", "img_height": 50},
    "img_width": {"observation": "atari", "img_width": 50},
    "grayscale": {"observation": "atari", "grayscale": False},
    "stack_num": {"observation": "atari", "stack_num": 2},
    "maxpool": {"observation": "atari", "maxpool": False},
    # `make_env` alone has these.
    "environment": {"environment": "Pong-v0"}, "frame_skip": {"frame_skip": 2},
    "monitor_dir": {"monitor_dir": None},  # `make_sb3` alone; see test_stable_baselines
    "sticky": {"sticky": 0.5}, "max_frames": {"max_frames": 2}, "obs_type": {"obs_type": "ram"},
}  # fmt: skip
PAIRS = [
    {"actions": "six", "full_action_space": True}, {"game": "breakout", "continuous": True},
    {"game": "breakout", "frameskip": 2, "max_frameskip": 5}, {"opponent": "self", "coins": "ale"},
    {"game": "breakout", "opponent": "self"}, {"game": "breakout", "observation": "field"},
    {"games": ["breakout", "breakout"]}, {"continuous": True, "full_action_space": True},
    {"game": "breakout", "full_action_space": True}, {"actions": "two", "continuous": True},
    {"coins": "ale", "max_frameskip": 5}, {"games": []}, {"games": None}, {"frameskip": 4.0},
    {"obs_type": "grayscale"}, {"obs_type": "ram", "observation": "ram"},
    {"games": ["pong", "air_raid"], "observation": "ram", "full_action_space": True},
    {"opponent": "self", "mode": 1}, {"game": "breakout", "difficulty": 2}, {"mode": [1, 1]},
    {"game": "boxing"}, {"game": "tennis", "opponent": "self", "mode": 4},
    {"game": "tennis", "mode": 4}, {"game": "boxing", "opponent": "club"},
    {"max_frameskip": 2}, {"game": "double_dunk"}, {"games": ["pong"] * 2, "game": "breakout"},
]  # fmt: skip


def names_of(maker):
    """The options of a maker: its own parameters, and `make_vec`'s if it passes others on."""
    found = set()
    for function in (MAKERS[maker], pixelpong.make_vec):
        kinds = inspect.signature(function).parameters.values()
        found |= {it.name for it in kinds if it.kind != it.VAR_KEYWORD}
    return found | (names_of("make_env") if maker == "gymnasium.make_vec" else set())


ALL = set().union(*map(names_of, MAKERS))


def test_the_options_here_are_those_of_the_signatures():
    assert GIVEN.keys() == ALL


CASES = [(maker, GIVEN[name]) for maker in MAKERS for name in sorted(names_of(maker))]


@pytest.mark.parametrize(("maker", "given"), CASES + [(m, it) for m in MAKERS for it in PAIRS])
def test_an_option_works_as_described_or_the_refusal_names_what_was_given(maker, given):
    if maker == "make_sb3" and not HAS_SB3:
        pytest.skip("no stable-baselines3")
    try:
        envs = MAKERS[maker](**given)
    except PixelpongError as error:
        text = str(error)
        advice = re.findall(r"[Ll]eave out ([^.;]*)", text) + re.findall(r"itself sets (\w+)", text)
        named = ALL & {*re.findall(r"\w+", " ".join(advice))}
        assert named <= given.keys(), text
        return
    {"make_env": check_one, "make_two": check_two, "make_sb3": check_sb3}.get(maker, check_many)(
        envs
    )


@pytest.mark.parametrize("name", sorted(names_of("make_vec")))
def test_make_vec_has_each_of_its_options(name):
    pixelpong.make_vec(**GIVEN[name])


@pytest.mark.parametrize(("maker", "name"), [(m, it) for m in MAKERS for it in sorted(names_of(m))])
def test_a_value_of_the_wrong_type_is_refused(maker, name):
    if maker == "make_sb3" and not HAS_SB3:
        pytest.skip("no stable-baselines3")
    if maker == "gymnasium.make_vec" and name in ("num_envs", "game"):
        pytest.skip("Gymnasium reads it")
    with pytest.raises(PixelpongError, match=name):
        MAKERS[maker](**{name: object()})


def check_many(envs):
    size = envs._options.batch_size or envs.num_envs
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert set(infos["env_id"].tolist()) <= set(range(envs.num_envs))
    for _ in range(2):
        observations, rewards, *ends, _ = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(observations)
        assert [it.shape for it in (rewards, *ends)] == [(size,)] * 3
    assert len(envs.game_names) == envs.num_envs
    check_pictures(envs, envs.render(), envs.num_envs)


def check_one(env):
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    observation, reward, *_ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert type(reward) is float
    space, names = env.action_space, env.get_action_meanings()
    each = 18 if isinstance(space, gymnasium.spaces.Box) else getattr(space, "nvec", None)
    count = {*np.ravel(space.n if each is None else each)}
    assert {len(names)} == count
    if isinstance(space, gymnasium.spaces.Discrete):
        assert sorted(env.get_keys_to_action().values()) == list(range(space.n))
    assert {"NOOP", "RIGHT", "LEFT"} & {*names}
    low, high = np.broadcast_to(env._frameskip, 2) - [0, isinstance(env._frameskip, tuple)]
    assert env.protocol.frame_skips == (low, high)
    check_pictures(env, [env.render()] if env.render_mode else None, 1)


def check_two(env):
    first, second = env.possible_agents
    observations, _ = env.reset(seed=0)
    for agent in (first, second):
        assert env.observation_space(agent).contains(observations[agent])
    observations, *_ = env.step({it: env.action_space(it).sample() for it in (first, second)})
    assert env.observation_space(second).contains(observations[second])
    check_pictures(env, [env.render()] if env.render_mode else None, 1)
    assert "autoreset_mode" not in env.metadata


def check_sb3(envs):
    shape = (envs.num_envs, *envs.observation_space.shape)
    kept = first = envs.reset()
    first = first.copy()
    actions = np.stack([envs.action_space.sample() for _ in range(envs.num_envs)])
    observations, rewards, ends, infos = envs.step(actions)
    np.testing.assert_array_equal(kept, first)
    assert first.shape == observations.shape == shape
    assert rewards.shape == ends.shape == (envs.num_envs,) == (len(infos),)


def check_pictures(envs, pictures, count):
    assert (pictures is None) == (envs.render_mode is None)
    if pictures is not None:
        assert np.shape(pictures) == (count, 210, 160, 3)
    assert envs.metadata["render_fps"] > 0


@pytest.mark.parametrize("name", MAKE_TWO.own)
def test_what_a_maker_sets_is_refused_by_name(name):
    with pytest.raises(PixelpongError, match=f"make_two itself sets {name}"):
        pixelpong.make_two(**{name: GIVEN[name][name]})


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (form.format(id_of(name, "", 0)[1:-3]), name)
        for name in ("ms_pacman", "breakout", "up_n_down", "pong", "montezuma_revenge", "hero")
        for form in ("{}", "ALE/{}-v5", "{}NoFrameskip-v4", "{}Deterministic-v0", "{}-ram-v0")
    ],
)
def test_another_name_of_a_game_leads_to_ours(word, meant):
    with pytest.raises(PixelpongError, match=rf"did you mean {meant}\?"):
        pixelpong.make_env(game=word)


def test_pictures_of_games_of_several_sizes_have_one_size():
    games = ["pong", "air_raid"]
    envs = pixelpong.make_vec(games=games, full_action_space=True, render_mode="rgb_array")
    envs.reset(seed=0)
    low, high = envs.render()
    assert low.shape == high.shape == (250, 160, 3)
    assert (low[210:].any(), low[:210].any(), high[210:].any()) == (False, True, True)
    assert envs.game_names == tuple(games)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("Pong-v4", {"environment": "Pong-v0", "sticky": 0.0}),
        ("PongNoFrameskip-v0", {"environment": "PongNoFrameskip-v4", "sticky": 0.25}),
    ],
)
def test_a_name_without_a_protocol_says_which_options_are_the_same(name, same):
    with pytest.raises(PixelpongError) as caught:
        pixelpong.make_env(environment=name)
    for word in (f"'{same['environment']}'", f"sticky={same['sticky']}"):
        assert word in str(caught.value)
    pixelpong.make_env(**same)


def test_the_environments_are_reached_through_the_package_at_once():
    import subprocess
    import sys

    code = "import pixelpong; print(pixelpong.envs.AtariVectorEnv.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "AtariVectorEnv\n"


def test_a_failure_is_not_raised_again_for_games_that_play_on():
    envs = pixelpong.make_vec(2, "field", autoreset_mode="Disabled", num_threads=1)
    envs.reset(seed=0)
    envs._games.rows["fault"][0], envs._games.rows["is_on"][0] = 1, 0
    observations, _ = envs.reset(options={"reset_mask": np.array([False, True])})
    assert observations.shape == (2, 80, 80)
