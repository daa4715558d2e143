"""What the programs of others ask of our environments: wrappers, PettingZoo, stable-baselines3."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import subprocess
import sys
import weakref

import gymnasium
import numpy as np
import pettingzoo
import pytest
from ale_py.vector_env import AtariVectorEnv
from classic import count_ends, play_both
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import AtariPreprocessing
from pettingzoo.test import parallel_api_test, parallel_seed_test
from pettingzoo.test.state_test import test_parallel_env as check_states

import pixelpong
from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.envs.gym import id_of, make_theirs
from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.errors import ConfigError

GAMES = {"pong": 4800, "breakout": 2400}
"""With the number of frames in which a game ends."""


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(("skip", "sticky"), [(4, 0.25), (4, 0.0), (3, 0.5), (1, 0.25)])
def test_one_game_is_ale_pys_own_environment(game, skip, sticky):
    """Every observation, reward, end and info, from the same seed, over the ends of games."""
    rules = {"frameskip": skip, "repeat_action_probability": sticky}
    ours = pixelpong.make_env(game=game, coins="ale", **rules)
    theirs = make_theirs(game, **rules)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.get_action_meanings() == theirs.unwrapped.get_action_meanings()
    assert count_ends(ours, theirs, 5, GAMES[game] // skip) > 0
    whole = {"full_action_space": True}
    ours, theirs = pixelpong.make_env(game=game, **whole), make_theirs(game, **whole)
    assert ours.get_action_meanings() == theirs.unwrapped.get_action_meanings()
    assert ours.action_space == theirs.action_space


@pytest.mark.soak
@pytest.mark.parametrize("game", scored_names())
@pytest.mark.parametrize("rules", [{"repeat_action_probability": 0.25}, {"frameskip": 1}], ids=str)
def test_every_game_is_ale_pys_own_environment(game, rules):
    rules = {"frameskip": 4, "repeat_action_probability": 0.0} | rules
    try:
        ours = pixelpong.make_env(game=game, coins="ale", **rules)
    except EnvError as error:
        pytest.skip(str(error))
    count_ends(ours, make_theirs(game, **rules), 5, 1500)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("pong", {}),
        ("pong", {"coins": "ale"}),
        ("pong", {"environment": "Pong-v0", "observation": "field", "actions": "three"}),
        ("pong", {"opponent": "club", "observation": "pixels"}),
        ("breakout", {"observation": "atari", "full_action_space": True}),
        ("breakout", {"coins": "pixelpong"}),
        ("breakout", {"obs_type": "grayscale"}),
        ("breakout", {"obs_type": "ram"}),
    ],
)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_an_id_is_one_game_whether_made_alone_or_many_at_once(game, options, mode):
    """Over the ends of games in the middle of a step, and after them."""
    name = f"pixelpong.envs:{id_of(game)}"
    options = options | {"max_frames": 6 * 4 + 1} if game == "pong" else options
    alone = [lambda: gymnasium.make(name, **options).unwrapped] * 3
    both = [
        gymnasium.make_vec(name, 3, autoreset_mode=mode, num_threads=2, **options),
        gymnasium.vector.SyncVectorEnv(alone, autoreset_mode=mode),
    ]
    many, sync = both
    assert many.single_observation_space == sync.single_observation_space
    assert many.single_action_space == sync.single_action_space
    np.testing.assert_array_equal(*(envs.reset(seed=8)[0] for envs in both))
    rng, ends = np.random.default_rng(3), 0
    for _ in range(40 if game == "pong" else 700):
        actions = rng.integers(many.single_action_space.n, size=3)
        results = [envs.step(actions) for envs in both]
        for ours, theirs in zip(*(it[:4] for it in results), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        ends += int(np.sum(results[0][2] | results[0][3]))
    assert ends > 4


@pytest.mark.parametrize("max_frames", [40, 41])
def test_the_frame_limit_is_ale_pys(max_frames):
    options = {"max_num_frames_per_episode": max_frames, "repeat_action_probability": 0.25}
    ours, theirs = pixelpong.make_env(coins="ale", **options), make_theirs("pong", **options)
    assert count_ends(ours, theirs, 1, 60) > 4


@pytest.mark.parametrize("game", GAMES)
def test_the_interface_says_what_ale_pys_says(game):
    options = {"frameskip": 1, "repeat_action_probability": 0.25}
    ours = pixelpong.make_env(game=game, coins="ale", **options)
    theirs = make_theirs(game, **options)
    for _ in play_both(ours, theirs, 2, 400):
        both = ours.ale, theirs.unwrapped.ale
        asked = [
            (
                ale.lives(), ale.game_over(), ale.game_over(with_truncation=False),
                ale.game_truncated(), ale.getFrameNumber(), ale.getEpisodeFrameNumber(),
                ale.getRAMSize(), ale.getScreenDims(),
            )
            for ale in both
        ]  # fmt: skip
        assert asked[0] == asked[1]
        for name in ("getRAM", "getScreen", "getScreenGrayscale", "getScreenRGB"):
            our, their = (getattr(ale, name)() for ale in both)
            np.testing.assert_array_equal(our, their, name)
            buffer = np.zeros_like(their)
            assert getattr(ours.ale, name)(buffer) is None
            np.testing.assert_array_equal(buffer, their, name)
    ours, theirs = both
    for name in ("getMinimalActionSet", "getLegalActionSet"):
        assert getattr(ours, name)() == [each.value for each in getattr(theirs, name)()]


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    "options",
    [
        {"terminal_on_life_loss": True},
        {"grayscale_obs": False, "screen_size": (64, 96), "noop_max": 0},
        {"grayscale_newaxis": True, "scale_obs": True, "frame_skip": 3},
    ],
)
def test_gymnasiums_preprocessing_gives_what_it_gives_of_ale_pys_environment(game, options):
    """The same number of no-ops too, which it draws from the environment's generator."""
    rules = {"frameskip": 1, "repeat_action_probability": 0.25}
    ours = AtariPreprocessing(pixelpong.make_env(game=game, coins="ale", **rules), **options)
    theirs = AtariPreprocessing(make_theirs(game, **rules), **options)
    assert ours.observation_space == theirs.observation_space
    frames = GAMES[game] if "terminal_on_life_loss" in options else 1200
    ends = count_ends(ours, theirs, 7, frames // ours.frame_skip)
    assert ends > 0 or frames == 1200


def test_a_frame_skip_that_wrappers_would_repeat_is_seen_by_them():
    with pytest.raises(ValueError, match="frame-skipping"):
        AtariPreprocessing(pixelpong.make_env())
    assert pixelpong.make_env(environment="Pong-v0")._frameskip == (2, 5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"frameskip": 4, "frame_skip": 4}, "frameskip is frame_skip; leave out one"),
        ({"obs_type": "ram", "observation": "ram"}, "leave out obs_type or observation"),
        ({"obs_type": "frame"}, "obs_type must be rgb, grayscale or ram, not 'frame'"),
        ({"frame_skip": (2, 5)}, "frame_skip must be a whole number.+ give max_frameskip"),
        ({"frameskip": (2, 5), "max_frameskip": 4}, "leave out max_frameskip"),
        *(({"frameskip": it}, "frameskip must be a whole number, or two")
          for it in ((5, 2), (4, 4), (0, 5), (1, 2, 3), (2.0, 5.0), (1, True))),
        ({"repeat_action_probabilty": 0.1}, "unknown option .+ mean repeat_action_probability"),
        ({"sound_obs": True}, "unknown option 'sound_obs'; there is no sound"),
        ({"game": "breakout", "observation": "field"}, "breakout has no observation 'field'"),
        ({"game": "breakout", "actions": "three"}, "breakout has no actions by name"),
        ({"num_threads": 2}, "make_env itself sets num_threads"),
        ({"autoreset_mode": "NextStep"}, "make_env itself sets autoreset_mode"),
        ({"opponent": "club", "coins": "ale"}, "leave out coins or opponent"),
    ],
)  # fmt: skip
def test_what_one_game_cannot_have_is_refused(options, says):
    with pytest.raises(EnvError, match=says):
        pixelpong.make_env(**options)


def test_pictures_are_asked_only_of_an_environment_that_draws_them():
    env = pixelpong.make_env("field")
    env.reset(seed=0)
    assert env.ale.lives() == 0
    with pytest.raises(ConfigError, match="pictures only for the observations 'frame' and"):
        env.ale.getScreenRGB()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_its_game_does_and_its_interface_reads_the_copy(copied):
    env = pixelpong.make_env(game="breakout", max_frames=900)
    env.reset(seed=3)
    for action in itertools.islice(itertools.cycle((1, 2, 2, 3)), 90):
        env.step(action)
    other = copied(env)
    env.step(2)
    assert other.ale.getFrameNumber() == 360
    other.step(2)
    for _ in range(60):
        np.testing.assert_array_equal(env.step(1)[0], other.step(1)[0])
        np.testing.assert_array_equal(env.ale.getRAM(), other.ale.getRAM())
        assert env.ale.lives() == other.ale.lives()


@pytest.mark.parametrize("observation", ["frame", "field"])
def test_a_game_for_two_is_pettingzoos_parallel_environment(observation):
    env = pixelpong.make_two(observation)
    assert isinstance(env, pettingzoo.ParallelEnv)
    assert (env.num_agents, env.max_num_agents, env.unwrapped) == (0, 2, env)
    with pytest.raises(ConfigError, match="No episode has started: call reset"):
        env.state()
    observations, _ = env.reset(seed=0)
    assert env.num_agents == 2
    np.testing.assert_array_equal(env.state(), observations["right"])
    parallel_api_test(env, num_cycles=20)
    check_states(env)
    parallel_seed_test(lambda: pixelpong.make_two(observation), num_cycles=20)


@pytest.mark.parametrize("name", ["opponent", "autoreset_mode", "num_envs"])
def test_a_game_for_two_refuses_what_it_sets_itself(name):
    with pytest.raises(ConfigError, match=f"make_two itself sets {name}"):
        pixelpong.make_two("field", **{name: 1})


@pytest.mark.slow
def test_nothing_needs_pettingzoo_or_stable_baselines():
    """In a process that can import neither."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[80, 80]\n", 0), done.stderr


WITHOUT = """
import sys
import weakref
sys.modules["pettingzoo"] = sys.modules["stable_baselines3"] = None
import pixelpong
env = pixelpong.make_two("field")
env.reset(seed=0)
observations, *_ = env.step({"right": 0, "left": 1})
print(list(observations["left"].shape))
"""


@pytest.mark.slow
def test_without_stable_baselines_its_environment_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("pixelpong.machine.is_installed", lambda library: False)
    with pytest.raises(ConfigError, match=r"make_sb3 needs stable_baselines3: run pip .+\[peers\]"):
        pixelpong.make_sb3(2)


def test_a_wrapped_environment_is_reached_through_its_wrappers():
    env = gymnasium.wrappers.TimeLimit(pixelpong.make_env("frame"), 10)
    env.reset(seed=0)
    assert env.unwrapped.ale.getScreenRGB().shape == (210, 160, 3)


@pytest.mark.parametrize("seed", [0, 5, 2**31, 2**63 + 9, 2**70 + 3])
def test_a_seed_of_any_size_is_split_as_by_ale_py(seed):
    options = {"repeat_action_probability": 0.25, "frameskip": 4}
    ours, theirs = (
        pixelpong.make_env(game="breakout", **options),
        make_theirs("breakout", **options),
    )
    (our, info), (their, their_info) = (env.reset(seed=seed) for env in (ours, theirs))
    assert info == their_info
    assert [type(each) for each in info["seeds"]] == [type(each) for each in their_info["seeds"]]
    assert "seeds" not in ours.reset()[1].keys() | theirs.reset()[1].keys()
    for step in range(60):
        np.testing.assert_array_equal(our, their)
        our, their = (env.step((1, 2, 2, 3)[step % 4])[0] for env in (ours, theirs))


@pytest.mark.parametrize(
    "options",
    [{}, {"continuous": True}, {"full_action_space": True}, {"grayscale": False, "stack_num": 2}],
    ids=str,
)
def test_the_vectors_interface_says_what_ale_pys_says(options):
    theirs = AtariVectorEnv("breakout", 3, num_threads=1, **options)
    ours = pixelpong.make_vec(3, game="breakout", num_threads=1, **options)
    for name in ("get_num_envs", "get_observation_shape"):
        assert getattr(ours.ale, name)() == getattr(theirs.ale, name)()
    for our, their in zip(ours.ale.get_action_set(), theirs.ale.get_action_set(), strict=True):
        assert (our.name, our.value) == (their.name, their.value)
    assert ours.batch_size == theirs.batch_size == 3
    calls = [([2, 0, 1], [5, 6, 7]), ([2, 1], [8, 9]), ([1], [-1]), ([], []), ([0, 2], [-1, -1])]
    for ids, seeds in calls:
        (our, infos), (their, their_infos) = (it.ale.reset(ids, seeds) for it in (ours, theirs))
        np.testing.assert_array_equal(our, their)
        np.testing.assert_equal(infos, their_infos)


@pytest.mark.parametrize(
    ("ids", "seeds", "error"),
    [([3], [1], IndexError), ([-1], [1], IndexError), ([0, 0], [1, 1], ValueError),
     ([0, 1], [1], ValueError), ([0], [-2], ValueError), ([0, 1], [-1, 4], ValueError),
     ([0.5], [1], IndexError), (None, None, ValueError)],
)  # fmt: skip
def test_the_vectors_interface_refuses_what_is_no_game_and_no_seed(ids, seeds, error):
    envs = pixelpong.make_vec(3, game="breakout")
    envs.ale.reset(range(3), range(3))
    with pytest.raises(EnvError) as caught:
        envs.ale.reset(ids, seeds)
    assert isinstance(caught.value, error)


def test_an_environment_whose_interface_was_asked_is_freed_with_its_last_reference():
    envs = pixelpong.make_vec(2, game="breakout")
    assert envs.ale.get_num_envs() == 2
    watched = weakref.ref(envs)
    gc.disable()  # so that no cycle is found
    try:
        del envs
        assert watched() is None
    finally:
        gc.enable()
