"""The real emulator against Gymnasium's and ALE's own: frames, colours, and the sticky coin."""

from __future__ import annotations

import hashlib

import ale_py  # noqa: F401 - registers the environments
import gymnasium
import numpy as np
import pytest
from ale_state import read_state
from lockstep import ALE_ACTIONS, Oracle
from two_paddles import OWN, ball_of, paddle

import pixelpong
from pixelpong.atari.machine import DRAW_NOTHING, STATE
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import find_protocol
from pixelpong.env.native import NativeConsole
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import DOWN, STAY, UP

RUNS = {8: (40, 47), 9: (40, 47), 41: (41, 42), 70: (35, 42), 71: (35, 42)}
"""Of the golden frame: column → first and last row that is on."""


def follow_the_ball(screen: np.ndarray) -> int:
    """A fixed policy that wins and loses points: move the paddle towards the ball."""
    ball, own = ball_of(screen), paddle(screen, OWN)
    middle = (ball[0] + ball[1]) / 2 if ball else 114
    return UP if own and middle < (own[0] + own[1]) / 2 else DOWN


def test_a_known_frame_and_its_preprocessing_are_as_stored():
    emulator = Emulator(find_protocol("ALE/Pong-v5", sticky=0.0))
    assert set(np.unique(emulator.screen[35:195])) == {138, 210, 228}  # of the first frame alone
    for step in range(80):
        emulator.step(UP if step % 2 else DOWN, [0.0] * 5)
    assert set(np.unique(emulator.screen[35:195])) == {14, 34, 56, 200}
    frame = emulator.frame()
    before = frame.copy()
    field = preprocess(frame)
    np.testing.assert_array_equal(frame, before)
    assert hashlib.sha256(frame.tobytes()).hexdigest() == (
        "59aa10d10cf2419a789dfe5e84d2978ecb1c72a653b19f5351b4ede8efa5be7d"
    )
    assert field.shape == (80, 80)
    places = [(row, column) for column, (a, b) in RUNS.items() for row in range(a, b + 1)]
    assert np.argwhere(field).tolist() == sorted(map(list, places))


@pytest.mark.slow
def test_frames_rewards_and_ends_equal_gymnasiums_over_whole_episodes():
    """Of all six actions; now and then the ball is followed, so that episodes differ."""
    env = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, disable_env_checker=True)
    ours = pixelpong.make_env(sticky=0.0)
    assert ours.action_space == env.action_space
    rng = np.random.default_rng(0)
    steps = episodes = 0
    while episodes < 2:
        theirs, frame, ends = env.reset()[0], ours.reset()[0], [False]
        while not any(ends):
            assert np.array_equal(frame, theirs)
            is_random = rng.random() < 0.8
            screen = env.unwrapped.ale.getScreen().reshape(210, 160)
            action = int(rng.integers(6)) if is_random else follow_the_ball(screen)
            theirs, reward, *ends, _ = env.step(action)
            frame, *rest, _ = ours.step(action)
            assert rest == [reward, *ends]
            steps += 1
        assert np.array_equal(frame, theirs)
        episodes += 1
    env.close()
    assert steps > 1_500


def test_all_128_colours_are_those_of_ale():
    """Left alone, the game goes through all colours, so as not to burn the screen."""
    ale, seen = Oracle().ale, set()
    game_time, colour_shift = 0x09, 0x0A  # at time 0 nobody plays; the shift is added to colours
    for shift in range(256):
        for _ in range(2):
            ale.setRAM(colour_shift, shift)
            ale.setRAM(game_time, 0)
            ale.act(0)
            picture = ale.getScreen()
            np.testing.assert_array_equal(PALETTE[picture], ale.getScreenRGB())
            seen |= set(np.unique(picture).tolist())
    assert seen == set(range(0, 256, 2))
    np.testing.assert_array_equal(PALETTE[1::2], PALETTE[::2])  # the lowest bit means nothing


@pytest.mark.slow
def test_ales_own_coin_keeps_the_action_of_the_frame_before_in_a_quarter_of_all_frames():
    """Each of its frames is one of two of ours: with the new action, or with the one held."""
    ale, console, kept = Oracle(sticky=0.25).ale, NativeConsole(), []
    for _ in range(60):
        ale.reset_game()
        console.reset()
        held = STAY
        for k in range(30):
            before, action = console.get_state(), DOWN if k % 2 else UP
            ale.act(ALE_ACTIONS[action])
            wanted = read_state(ale.cloneState().serialize()).tobytes()
            same = []
            for each in (action, held):
                console.set_state(before)
                console.run(bytes([each]), DRAW_NOTHING)
                same.append(console.get_state().tobytes() == wanted)
            assert any(same)
            if action != held:
                assert not all(same)
                kept.append(same[1])
            held = held if same[1] else action
            console.set_state(np.frombuffer(wanted, STATE))
    share, deviation = np.mean(kept), np.sqrt(0.25 * 0.75 / len(kept))
    assert len(kept) > 1000
    assert abs(share - 0.25) < 4 * deviation, share
