"""What a game brings of its own: Pong's, and that of a second game, made up here."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, get_args

import numpy as np
import pytest
from environments import KINDS, with_every_observation
from test_whole_faces import SENT

import pixelpong
from pixelpong.atari.envs.plug import Plug, find_observations
from pixelpong.atari.envs.vector import VectorEnv
from pixelpong.atari.games.views import OBSERVATIONS, Observation
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.stepping import make_step
from pixelpong.envs import plugs
from pixelpong.errors import ConfigError, EmulatorError


def test_the_types_for_editors_name_what_there_is():
    assert {*get_args(plugs.Observation)} == {*find_observations(plugs.PLUGS, "pong")}
    assert {*get_args(plugs.Actions)} == {*plugs.PLUGS["pong"].action_sets}


def test_a_new_observation_is_tested_for_states_and_interrupts_without_being_listed(monkeypatch):
    known = {*find_observations(plugs.PLUGS, "pong")}
    for kinds in (KINDS, SENT):
        assert {observation for _, observation, _ in kinds.values()} == known
    own = plugs.PLUGS["pong"]
    more = dataclasses.replace(own, observations={**own.observations, "columns": None})
    monkeypatch.setitem(plugs.PLUGS, "pong", more)
    added = {name: it for name, it in with_every_observation(KINDS).items() if name not in KINDS}
    assert added == {"pong, columns": (2, "columns", {"game": "pong"})}


@pytest.mark.slow
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_without_its_plug_pong_is_a_game_like_any_other_with_the_same_bytes(observation):
    """What the plug brings saves time; the machine plays the same from the facts alone."""
    options = {"repeat_action_probability": 0.25, "max_num_frames_per_episode": 900,
               "autoreset_mode": "SameStep"}  # fmt: skip
    own = pixelpong.make_vec(3, observation, **options)
    bare = VectorEnv(3, observation, game="pong", **options)
    assert not VectorEnv.plugs
    rng = np.random.default_rng(5)
    seen = [envs.reset(seed=8) for envs in (own, bare)]
    for step in range(260):
        for ours, theirs in zip(*seen, strict=True):
            np.testing.assert_equal(ours, theirs, err_msg=f"step {step}")
        actions = rng.integers(6, size=3)
        seen = [envs.step(actions) for envs in (own, bare)]


@pytest.mark.parametrize("name", find_observations(plugs.PLUGS, "pong"))
def test_each_observation_works_in_each_maker(name):
    """Whatever a plug brings: its space, threads, states, the end in a step, both sides."""
    options = {"autoreset_mode": "SameStep", "max_num_frames_per_episode": 60, "noop_max": 3}
    many, other = (pixelpong.make_vec(3, name, num_threads=k, **options) for k in (1, 2))
    seen = [envs.reset(seed=1) for envs in (many, other)]
    ended = 0
    for step in range(40):
        np.testing.assert_equal(*seen)
        assert seen[0][0] in many.observation_space
        if step == 20:
            other.restore_state(many.clone_state())
        seen = [envs.step([step % 3, 2, 3]) for envs in (many, other)]
        ended += "final_obs" in seen[0][-1]
    assert ended >= 2
    env = pixelpong.make_env(name)
    assert env.reset(seed=0)[0] in env.observation_space
    two = pixelpong.make_two(name)
    for seen in (two.reset(seed=0)[0], two.step({"right": 2, "left": 3})[0]):
        assert all(seen[side] in two.observation_space(side) for side in two.agents)
        assert not np.shares_memory(seen["right"], seen["left"])


class Columns(NamedTuple):
    """The view of the observation "columns"."""

    counts: np.ndarray  # [N, 1, 160]
    pictures: tuple[np.ndarray, np.ndarray]


@kernel_part
def see_columns(game, i, num_pictures, which, view):
    """Count the pixels of each column that are not black."""
    picture = view.pictures[which]
    for x in range(picture.shape[1]):
        view.counts[i, 0, x] = 0
        for y in range(len(picture)):
            view.counts[i, 0, x] += picture[y, x] != 0


@kernel_part
def show_columns(game, i, view, out):
    """Write the counts, [160, 1]."""
    for x in range(len(out)):
        out[x, 0] = view.counts[i, 0, x]


COLUMNS = Observation(
    "columns",
    make_step(see_columns, show_columns),
    low=0,
    high=255,
    shape=lambda view: (160,),
    dtype=np.uint8,
    make_view=lambda view, screens: Columns(*screens.arrays, screens.pictures),
    make_arrays=lambda size, view: (np.zeros((size, 1, 160), np.uint8),),
    horizontal_axis=0,
)


class WithColumns(VectorEnv):
    """An environment in which Breakout brings an observation and a choice of actions."""

    plugs = {  # noqa: RUF012
        "breakout": Plug(
            cartridge("breakout"), observations={"columns": COLUMNS}, action_sets={"sides": (2, 3)}
        )
    }
    default_game = "breakout"


def test_a_second_game_brings_an_observation_and_actions_and_nothing_general_changes():
    options = {"render_mode": "rgb_array", "num_threads": 2, "use_fire_reset": False}
    envs = WithColumns(3, "columns", actions="sides", **options)
    same = VectorEnv(3, "frame", game="breakout", **options)
    assert (envs.single_action_space.n, envs.single_observation_space.shape) == (2, (160,))
    seen, _ = envs.reset(seed=2)
    same.reset(seed=2)
    rng = np.random.default_rng(0)
    for _ in range(60):
        wanted = [np.count_nonzero(frame.any(axis=2), axis=0) for frame in same.render()]
        np.testing.assert_array_equal(seen, wanted)
        actions = rng.integers(2, size=3)
        seen, *_ = envs.step(actions)
        same.step(2 + actions)
    state = envs.clone_state()
    after = envs.step([0, 1, 0])
    envs.restore_state(state)
    np.testing.assert_equal(envs.step([0, 1, 0]), after)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: WithColumns(2, "columns", game="seaquest"), "seaquest has no observation 'col"),
        (lambda: WithColumns(2, actions="sides", game="pong"), "pong has no actions by name"),
        (lambda: WithColumns(2, actions="all"), "actions must be sides, not 'all'"),
        (lambda: WithColumns(2, opponent="self"), "breakout has no second player"),
        (lambda: VectorEnv(2), "game must be a name of ale-py's"),
        (
            lambda: VectorEnv(2, "columns", game="breakout"),
            "observation must be atari, frame, grayscale or ram",
        ),
        (lambda: VectorEnv(2, game="breakuot"), "unknown game 'breakuot'; did you mean breakout"),
    ],
)
def test_what_a_game_does_not_bring_is_refused(make, says):
    with pytest.raises((ConfigError, EmulatorError), match=says):
        make()


def test_what_two_games_bring_under_one_name_is_not_mixed():
    """A kernel sees all games of an environment, and an opponent has the memory of one game."""

    class Both(WithColumns):
        plugs = {  # noqa: RUF012
            **WithColumns.plugs,
            "seaquest": Plug(
                cartridge("seaquest"), observations={"columns": dataclasses.replace(COLUMNS)}
            ),
        }

    every = {"full_action_space": True}
    assert Both(2, "columns", game="seaquest").reset(seed=0)[0].shape == (2, 160)
    with pytest.raises(ConfigError, match="'columns' is another observation in each of the games"):
        Both(observation="columns", games=["breakout", "seaquest"], **every)
    assert Both(games=["breakout", "seaquest"], **every).num_envs == 2
