"""The game for two: the very picture and dynamics of the game the agent was trained on."""

from __future__ import annotations

import numpy as np
import pytest
from consoles import Console
from lockstep import OracleForTwo, play_in_lockstep
from machines import short_and_long
from two_paddles import OTHER, OWN, ball_of, paddle

from pixelpong.atari.games.rules import open_cartridge
from pixelpong.config.protocols import find_protocol
from pixelpong.errors import ConfigError
from pixelpong.items import DOWN, STAY, UP
from pixelpong.pong import modes as duel
from pixelpong.pong.cartridge import BALL_ROW, LEFT_BUTTON, LEFT_POINTS, RIGHT_BUTTON, RIGHT_POINTS
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.emulator import Emulator
from pixelpong.pong.modes import LEFT
from pixelpong.pong.native import for_two


def follow(screen, colour):
    """The move that brings a paddle to the ball."""
    ball, own = ball_of(screen), paddle(screen, colour)
    if ball is None or own is None:
        return STAY
    missing = ball[0] + 2 - (own[0] + own[1]) / 2
    return UP if missing < -4 else DOWN if missing > 4 else STAY


@pytest.mark.parametrize(
    ("frames", "seed"), short_and_long((12_000, 3), *((250_000, seed) for seed in range(10, 14)))
)
@pytest.mark.parametrize("mode", [3, 4])
def test_every_frame_is_that_of_multi_agent_ale_py(mode, frames, seed):
    """Memory, picture or field, points and ends; both sides play in all styles, to 21."""
    pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
    done = play_in_lockstep(
        OracleForTwo(mode), Console(open_cartridge(for_two(mode))), seed, frames
    )
    assert done["games"] >= 1
    assert done["points"] >= 40
    assert done["charges"]  # which ours does not know


def test_a_game_for_two_has_only_what_counts_its_points():
    """A step or a snapshot of the game for one would know neither points nor presses."""
    game = Duel()
    assert not any(hasattr(game, name) for name in ("step", "get_state", "set_state"))


def test_a_step_with_too_few_numbers_is_refused():
    emulator = Emulator(find_protocol("ALE/Pong-v5"))
    with pytest.raises(ConfigError, match="at least 5 numbers, not 2"):
        emulator.step(UP, [0.0, 0.9])
    assert emulator.num_frames == 0
    emulator.step(UP, [0.0] + 4 * [0.9])
    assert emulator.num_frames == 4


@pytest.mark.slow
def test_moves_and_serves_are_the_presses_that_they_stand_for():
    """A game to 21 points, on multi-agent-ale-py with the button pressed when it serves."""
    pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
    game, oracle = Duel(), OracleForTwo(duel.MODE)
    first = game.screen.copy()
    while not game.is_over and game.num_frames < 6000:
        fires = game.num_frames % 400 > 100
        left = follow(game.screen, OTHER)
        right = follow(game.screen, OWN) if game.num_frames < 800 else DOWN
        presses, memory = [], oracle.memory()
        for move, button, may_fire in ((left, LEFT_BUTTON, fires), (right, RIGHT_BUTTON, True)):
            does_fire = may_fire and memory[BALL_ROW] == 0 and memory[button] != 0
            presses.append({STAY: 1, UP: 4, DOWN: 5}[move] if does_fire else move)
        game.act(Move(left), Move(right), fires=fires)
        oracle.run(*presses)
        assert np.array_equal(game.screen, oracle.picture())
        points = oracle.memory()[[LEFT_POINTS, RIGHT_POINTS]].tolist()
        assert ([*game.points], game.is_over) == (points, oracle.ale.game_over())
    assert game.points[LEFT] == 21
    game.reset()
    assert (game.points, game.is_over, game.num_frames) == ((0, 0), False, 0)
    assert np.array_equal(game.screen, first)
