"""The game for two: the very picture and dynamics of the game the agent was trained on."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from lockstep import OracleForTwo, play_for_two_in_lockstep
from machines import short_and_long
from two_paddles import OTHER, OWN, ball_of, paddle

from pixelpong.config.protocols import find_protocol
from pixelpong.env import duel
from pixelpong.env.cartridge import (
    BALL_ROW,
    LEFT_BUTTON,
    LEFT_POINTS,
    RIGHT_BUTTON,
    RIGHT_POINTS,
    SERVE,
)
from pixelpong.env.duel import LEFT, RIGHT, DuelEmulator
from pixelpong.env.native import NativeConsole
from pixelpong.env.pong import Emulator
from pixelpong.items import DOWN, STAY, UP


def follow(screen, colour):
    """The move that brings a paddle to the ball."""
    ball, own = ball_of(screen), paddle(screen, colour)
    if ball is None or own is None:
        return STAY
    missing = ball[0] + 2 - (own[0] + own[1]) / 2
    return UP if missing < -4 else DOWN if missing > 4 else STAY


def test_under_the_same_moves_the_agents_paddle_is_in_the_same_rows():
    """Frame for frame, at both ends of the field too."""
    solo, two = Emulator(find_protocol("PongNoFrameskip-v4")), DuelEmulator()
    two.act(STAY, STAY)
    solo.step(STAY, [0.0, 0.9])
    rng, rows = np.random.default_rng(0), set()
    for _ in range(90):
        move = int(rng.choice([STAY, UP, DOWN]))
        for _ in range(int(rng.integers(1, 24))):
            solo.step(move, [0.0, 0.9])
            two.act(STAY, move)
            assert paddle(solo.screen, OWN) == paddle(two.screen, OWN)
            rows.add(paddle(two.screen, OWN)[0])
    assert min(rows) == 34
    assert max(rows) > 180


def test_each_side_has_its_points_and_its_serve():
    """The winner of a point serves, and nobody is charged for waiting."""
    game = DuelEmulator()
    while game.server is None:
        game.act(follow(game.screen, OTHER), STAY)
    for _ in range(400):
        assert (game.server, game.points) == (LEFT, [1, 0])
        game.act(STAY, STAY)
    for _ in range(3):
        game.act(STAY, STAY, fires=True)
    assert game.server is None
    game.reset()
    while sum(game.points) < 2:
        game.act(STAY, follow(game.screen, OWN))
        assert game.server in (None, RIGHT)
        assert game.frames_since_point < 400
    assert game.points == [0, 2]


def test_the_left_paddle_comes_to_rest_where_it_is_sent():
    game = DuelEmulator()
    for row in (60, 150, 45, 180, 113, 187, 40):
        for _ in range(50):
            game.act(game.steer(row), STAY)
        first, last, *_ = paddle(game.screen, OTHER)
        for _ in range(10):
            game.act(game.steer(row), STAY)
            assert paddle(game.screen, OTHER)[0] == first, "it trembles"
        if first > 34 and last < 190:
            assert abs((first + last) / 2 - row) <= 4


@pytest.mark.parametrize(
    ("frames", "seed"), short_and_long((12_000, 3), *((250_000, seed) for seed in range(10, 14)))
)
@pytest.mark.parametrize("mode", [3, 4])
def test_every_frame_is_that_of_multi_agent_ale_py(mode, frames, seed):
    """Memory, picture or field, points and ends; both sides play in all styles, to 21."""
    pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
    done = play_for_two_in_lockstep(mode, seed, frames)
    assert done.games >= 1
    assert done.points >= 40
    assert done.charges  # which ours does not know


def served(move, is_pressed):
    """A move that may hold SERVE, as an action without it."""
    if move < SERVE:
        return move
    return {STAY: 1, UP: 4, DOWN: 5}[move - SERVE] if is_pressed else move - SERVE


@pytest.mark.slow
def test_moves_and_serves_are_the_presses_that_they_stand_for(monkeypatch):
    """What `act` makes of moves, played on multi-agent-ale-py to 21 points, is the same game.

    The ball flies as in the game for one, a column a frame, after any number of hits (mode 4's
    gets faster).
    """
    pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
    game, oracle = DuelEmulator(), OracleForTwo(duel.MODE)
    first, run, pressed = game.screen.copy(), NativeConsole.run, []
    last, speeds = None, Counter()

    def noted(console, actions, draws):
        pressed.append(actions[0])
        return run(console, actions, draws)

    monkeypatch.setattr(NativeConsole, "run", noted)
    while not game.is_over and game.num_frames < 6000:
        right = follow(game.screen, OWN) if game.num_frames < 800 else DOWN
        game.act(follow(game.screen, OTHER), right, fires=game.num_frames % 400 > 100)
        ball = ball_of(game.screen)
        if ball and last and 40 < ball[2] < 120:
            speeds[abs(ball[2] - last[2])] += 1
        last = ball
        memory = oracle.memory()
        left, right = (
            served(moves, memory[BALL_ROW] == 0 and memory[button] != 0)
            for moves, button in ((pressed[-1] >> 4, LEFT_BUTTON), (pressed[-1] & 15, RIGHT_BUTTON))
        )
        oracle.run(left, right)
        assert np.array_equal(game.screen, oracle.picture())
        points = [int(oracle.memory()[place]) for place in (LEFT_POINTS, RIGHT_POINTS)]
        assert (game.points, game.is_over) == (points, oracle.ale.game_over())
    assert game.points[LEFT] == 21
    assert speeds[1] > 0.99 * speeds.total() > 500, speeds
    assert game.num_frames == len(pressed)
    game.reset()
    assert (game.points, game.is_over, game.num_frames) == ([0, 0], False, 0)
    assert np.array_equal(game.screen, first)
