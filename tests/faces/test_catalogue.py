"""The list of games: every fact is asked of those who know it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import ale_py
import gymnasium
import pytest
from ale_py import roms

import pixelpong
from pixelpong.atari.action import Action
from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.config import Config
from pixelpong.errors import PixelpongError
from pixelpong.scores import find_scores, human_normalised


def test_it_lists_each_environment_once_in_order():
    names = [game.name for game in pixelpong.games()]
    assert names == sorted(scored_names())
    importlib.import_module("pixelpong.envs")  # which registers them
    ours = {name for name in gymnasium.registry if name.startswith("pixelpong/")}
    assert {game.id for game in pixelpong.games()} == ours
    gymnasium.register_envs(ale_py)
    assert {game.ale_id for game in pixelpong.games()} <= gymnasium.registry.keys()


@pytest.mark.slow
def test_actions_and_lives_are_ales():
    """In all games; the lives are those after the start."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    for game in pixelpong.games():
        ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.loadROM(roms.get_rom_path(game.name))
        ale.reset_game()
        assert game.lives == ale.lives(), game
        assert game.actions == tuple(each.name for each in ale.getMinimalActionSet()), game


@pytest.mark.parametrize("name", ["pong", "breakout", "seaquest"])
def test_its_facts_are_those_of_the_environment(name):
    game = next(game for game in pixelpong.games() if game.name == name)
    env = gymnasium.make(f"pixelpong.envs:{game.id}").unwrapped
    assert env.reset(seed=0)[1]["lives"] == game.lives
    assert tuple(env.get_action_meanings()) == game.actions
    assert [each.name for each in env.ale.getMinimalActionSet()] == list(game.actions)


def test_a_game_trains_if_the_options_of_training_accept_it():
    for game in pixelpong.games():
        try:
            Config().updated({"game": game.name}, "here")
            is_accepted = True
        except PixelpongError:
            is_accepted = False
        assert game.trains == is_accepted, game


def test_scores_are_those_of_the_table():
    assert sum(game.human_score is not None for game in pixelpong.games()) == 57
    for game in pixelpong.games():
        scores = find_scores(game.name)
        wanted = (scores.random, scores.human, scores.dqn) if scores else (None, None, None)
        assert (game.random_score, game.human_score, game.dqn_score) == wanted
        assert human_normalised(game.name, game.human_score) == (scores and 1.0)


def test_an_action_has_ale_pys_name_and_number():
    assert {each.name: each.value for each in Action} == {
        name: each.value for name, each in ale_py.Action.__members__.items()
    }


def test_it_is_listed_without_loading_the_environments():
    code = "import sys, pixelpong; print(len(pixelpong.games()), 'gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "103 False\n"
