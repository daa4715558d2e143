"""The game for two: the very picture and dynamics of the game the agent was trained on."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from lockstep import OracleForTwo, play_for_two_in_lockstep
from machines import short_and_long

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

OWN, OTHER, BALL = 200, 56, 14
FIELD = slice(34, 194)


class Solo:
    """The single player's game, frame by frame, with the calls of `DuelEmulator`."""

    def __init__(self):
        self._emulator = Emulator(find_protocol("PongNoFrameskip-v4"))
        self.screen, self.points = self._emulator.screen, [0, 0]
        # The first frame after a reset has another palette.
        self.act(STAY, STAY)

    def act(self, left, right, *, fires=False):
        reward = self._emulator.step(right, [0.0, 0.9])
        self.points[0] += reward < 0
        self.points[1] += reward > 0
        if self._emulator.is_over:
            self._emulator.reset()
            self._emulator.step(STAY, [0.0, 0.9])

    def frame(self):
        return self._emulator.frame()


def paddle(screen, colour):
    """First and last row, first and last column."""
    rows, columns = np.nonzero(screen[FIELD] == colour)
    if not len(rows):
        return None
    return tuple(int(n) for n in (rows.min() + 34, rows.max() + 34, columns.min(), columns.max()))


def ball_of(screen):
    return paddle(screen, BALL)


def follow(screen, colour, wobble):
    """The move that brings a paddle to the ball, hit with changing parts of it."""
    ball, own = ball_of(screen), paddle(screen, colour)
    if ball is None or own is None:
        return STAY
    missing = ball[0] + 2 - (own[0] + own[1]) / 2 + wobble
    return UP if missing < -4 else DOWN if missing > 4 else STAY


def watch(game, frames, seed=0):
    """What is seen while both sides follow the ball: counters of sizes, colours, speeds."""
    rng = np.random.default_rng(seed)
    seen = {name: Counter() for name in ("own", "other", "ball", "vx", "colours")}
    wobble, last = [0.0, 0.0], None
    for _ in range(frames):
        if rng.random() < 0.03:
            wobble = rng.uniform(-9, 9, 2).tolist()
        left, right = (follow(game.screen, c, w) for c, w in zip((OTHER, OWN), wobble, strict=True))
        game.act(left, right, fires=True)
        ball = ball_of(game.screen)
        for name, colour in (("own", OWN), ("other", OTHER)):
            own = paddle(game.screen, colour)
            if own and own[0] > 34 and own[1] < 190:
                seen[name][own[1] - own[0] + 1, own[2], own[3]] += 1
        if ball and last and 40 < ball[2] < 120 and 40 < ball[0] < 185:
            seen["ball"][ball[1] - ball[0] + 1, ball[3] - ball[2] + 1] += 1
            seen["vx"][abs(ball[2] - last[2])] += 1
        seen["colours"].update(np.unique(game.screen[FIELD]).tolist())
        last = ball
    return seen


@pytest.mark.slow
def test_picture_and_ball_are_those_that_the_agent_was_trained_on():
    solo, two, trap = (watch(game, 2500) for game in (Solo(), DuelEmulator(), DuelEmulator(mode=4)))
    for name in ("own", "other"):
        assert solo[name].most_common(1)[0][0] == two[name].most_common(1)[0][0]
    assert {key[1:] for key in two["own"]} == {(140, 143)}
    assert {key[1:] for key in two["other"]} == {(16, 19)}
    assert set(solo["own"]) == set(two["own"]) == {(16, 140, 143)}
    for seen in (solo, two):
        assert seen["ball"][4, 2] / seen["ball"].total() > 0.97
        assert set(seen["colours"]) == {34, OWN, OTHER, BALL}
        assert seen["vx"][1] > 500
        assert seen["vx"][1] / seen["vx"].total() > 0.99
    # The trap: in mode 4 the picture is the same, but after some hits the ball gets faster.
    assert sum(trap["vx"][speed] for speed in (2, 3, 4)) > 100


def test_under_the_same_moves_the_agents_paddle_is_in_the_same_rows():
    """Frame for frame, at both ends of the field too."""
    solo, two = Solo(), DuelEmulator()
    two.act(STAY, STAY)
    rng, rows = np.random.default_rng(0), set()
    for _ in range(180):
        move = int(rng.choice([STAY, UP, DOWN]))
        for _ in range(int(rng.integers(1, 14))):
            solo.act(STAY, move)
            two.act(STAY, move)
            assert paddle(solo.screen, OWN) == paddle(two.screen, OWN)
            rows.add(paddle(two.screen, OWN)[0])
    assert min(rows) == 34
    assert max(rows) > 180


def test_each_side_has_its_paddle_its_points_and_its_serve():
    """The winner of a point serves, and nobody is charged for waiting."""
    game = DuelEmulator()
    assert game.server is None
    game.act(STAY, STAY)
    own, other = paddle(game.screen, OWN), paddle(game.screen, OTHER)
    for _ in range(8):
        game.act(UP, DOWN)
    assert paddle(game.screen, OTHER)[0] < other[0]
    assert paddle(game.screen, OWN)[0] > own[0]
    while game.server is None:
        game.act(follow(game.screen, OTHER, 0.0), STAY)
    for _ in range(400):
        assert (game.server, game.points) == (LEFT, [1, 0])
        game.act(STAY, STAY)
    for _ in range(3):
        game.act(STAY, STAY, fires=True)
    assert game.server is None
    game = DuelEmulator()
    while sum(game.points) < 2:
        game.act(STAY, follow(game.screen, OWN, 0.0))
        assert game.server in (None, RIGHT)
        assert game.frames_since_point < 400
    assert game.points == [0, 2]


@pytest.mark.slow
def test_a_game_ends_at_21_and_starts_anew():
    game, frames = DuelEmulator(), 0
    first = game.screen.copy()
    while not game.is_over:
        game.act(STAY, follow(game.screen, OWN, 0.0), fires=True)
        frames += 1
    assert game.points[RIGHT] == 21
    assert game.num_frames == frames
    game.reset()
    assert (game.points, game.is_over, game.num_frames) == ([0, 0], False, 0)
    np.testing.assert_array_equal(game.screen, first)


def test_the_left_paddle_comes_to_rest_where_it_is_sent():
    game = DuelEmulator()
    for row in (60, 150, 100, 45, 180, 113, 187, 40, 100):
        for _ in range(50):
            game.act(game.steer(row), STAY)
        tops = set()
        for _ in range(10):
            game.act(game.steer(row), STAY)
            tops.add(paddle(game.screen, OTHER)[0])
        assert len(tops) == 1, "it trembles"
        first, last, *_ = paddle(game.screen, OTHER)
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
    """What `act` makes of moves, played on multi-agent-ale-py, is the same game."""
    pytest.importorskip("multi_agent_ale_py", reason="the oracle of the game for two")
    game, oracle = DuelEmulator(), OracleForTwo(duel.MODE)
    run, pressed = NativeConsole.run, []

    def noted(console, actions, draws):
        pressed.append(actions[0])
        return run(console, actions, draws)

    monkeypatch.setattr(NativeConsole, "run", noted)
    while not game.is_over and game.num_frames < 4000:
        left = follow(game.screen, OTHER, 0.0)
        game.act(left, STAY, fires=game.num_frames % 400 > 100)
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
