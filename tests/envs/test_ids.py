"""ale-py's ids, old and new: the same bytes, also where a step's frames are drawn."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from classic import count_ends, play_both
from gymnasium.wrappers import AtariPreprocessing

import pixelpong
from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.envs.gym import make_theirs
from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.envs import ale_options

pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date")

DAILY = ("breakout", "pong", "seaquest", "name_this_game")
SUFFIXES = ("{}-v0", "{}-v4", "{}NoFrameskip-v0", "{}NoFrameskip-v4", "ALE/{}-v5")


def their_ids():
    """The ids in ale-py's own registry, with the options that they stand for."""
    make_theirs("pong")  # it registers them
    specs = gymnasium.registry.values()
    return {it.id: it.kwargs for it in specs if it.entry_point == "ale_py.env:AtariEnv"}


def compare(env_id, steps, seed=4):
    try:
        ours = pixelpong.make_env(**ale_options(env_id))
    except EnvError as error:
        pytest.skip(str(error))
    theirs = gymnasium.make(env_id)
    assert ours.action_space == theirs.action_space
    assert ours.observation_space == theirs.observation_space
    count_ends(ours, theirs, seed, steps, ignored=())


def test_every_id_of_ale_py_has_its_options():
    known = their_ids()
    assert len(known) > 300
    for env_id, wanted in known.items():
        given = ale_options(env_id)
        assert (given.pop("obs_type"), given.pop("coins")) == ("rgb", "ale")
        assert given | {"full_action_space": False} == wanted, env_id


@pytest.mark.parametrize("game", DAILY)
@pytest.mark.parametrize("form", SUFFIXES)
def test_an_id_gives_ale_pys_bytes(game, form):
    """Every observation, reward, end and info, with the number of frames of each step."""
    their_ids()
    compare(form.format(game.title().replace("_", "")), 300)


@pytest.mark.soak
@pytest.mark.parametrize("game", scored_names())
@pytest.mark.parametrize("form", SUFFIXES)
def test_every_id_gives_ale_pys_bytes(game, form):
    env_id = form.format(game.title().replace("_", ""))
    if env_id not in their_ids():
        pytest.skip("ale-py has no such id")
    compare(env_id, 1200)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("BreakoutDeterministic-v0", {"frameskip": 4, "repeat_action_probability": 0.25}),
        ("SpaceInvadersDeterministic-v4", {"frameskip": 3, "repeat_action_probability": 0.0}),
        ("Breakout-ram-v4", {"frameskip": (2, 5), "repeat_action_probability": 0.0,
                             "obs_type": "ram"}),
        ("Pong-ramNoFrameskip-v0", {"frameskip": 1, "obs_type": "ram"}),
        ("ALE/Breakout-ram-v5", {"frameskip": 4, "obs_type": "ram"}),
    ],
)  # fmt: skip
def test_ids_of_older_versions_have_the_rules_of_their_names(env_id, options):
    given = ale_options(env_id)
    assert given | options == given
    theirs = make_theirs(given["game"], **options)
    count_ends(pixelpong.make_env(**given), theirs, 1, 200, ignored=())


@pytest.mark.parametrize(
    ("env_id", "says"),
    [
        ("Breakout", "unknown id 'Breakout'.+'Breakout-v4' or 'ALE/Breakout-v5'"),
        ("Breakout-v5", "unknown id"),
        ("ALE/Breakout-v4", "unknown id"),
        ("Braekout-v4", "unknown game 'Braekout'.+did you mean Breakout"),
        ("ALE/BreakoutNoFrameskip-v5", "v5 has no NoFrameskip; leave it out"),
        (4, "unknown id"),
    ],
)
def test_an_id_that_nobody_has_is_refused(env_id, says):
    with pytest.raises(EnvError, match=says):
        ale_options(env_id)


def test_wrappers_and_steps_draw_from_the_same_generator_as_in_ale_py():
    """No-ops at the start first, then the frames of each step."""
    both = (
        pixelpong.make_env(**ale_options("Breakout-v0")),
        make_theirs("breakout", frameskip=(2, 5)),
    )
    lengths = set()
    for ours, theirs in play_both(*both, 6, 60):
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[2] == theirs[2]
        drawn = {int(env.unwrapped.np_random.integers(100)) for env in both}
        assert len(drawn) == 1
        lengths |= {ours[2]["frame_number"]}
    assert len({b - a for a, b in zip(sorted(lengths), sorted(lengths)[1:], strict=False)}) == 3
    with pytest.raises(ValueError, match="frame-skipping"):
        AtariPreprocessing(both[0])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_draws_the_same_frames(copied):
    env = pixelpong.make_env(**ale_options("Breakout-v4"))
    env.reset(seed=3)
    for _ in range(5):
        env.step(1)
    other = copied(env)
    for _ in range(30):
        assert env.step(2)[4] == other.step(2)[4]


def test_a_refused_step_draws_nothing():
    env, other = (pixelpong.make_env(**ale_options("Breakout-v4")) for _ in range(2))
    for it in (env, other):
        it.reset(seed=3)
    for action in (1, 9, 2, 77, 3):
        if action > 3:
            with pytest.raises(EnvError):
                env.step(action)
        else:
            assert env.step(action)[4] == other.step(action)[4]


def test_a_range_with_ale_pys_coins_is_for_one_environment_alone():
    for options in ({"frameskip": (2, 5)}, {"max_frameskip": 5}):
        with pytest.raises(EnvError, match="for make_env alone; give coins='pixelpong'"):
            gymnasium.make_vec("pixelpong.envs:pixelpong/Breakout-v0", 2, **options)
    options = {"frameskip": 2, "max_frameskip": 4, "repeat_action_probability": 0.25}
    ours = pixelpong.make_env(game="breakout", **options)
    theirs = make_theirs("breakout", frameskip=(2, 5))
    count_ends(ours, theirs, 2, 100, ignored=())
