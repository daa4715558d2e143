"""The contract of the emulator: steps, coins, snapshots."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_kernels import active_of

from pixelpong.config.protocols import find_protocol
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import DOWN, UP

GAMES = ["ALE/Pong-v5", "Pong-v0"]
ASKED, KEPT = [0.0, 0.9, 0.9, 0.9, 0.9], [0.0] * 5
"""Draws of a step in which each frame gets what was asked for, or keeps what was held."""


@pytest.fixture(params=GAMES)
def emulator(request) -> Emulator:
    return Emulator(find_protocol(request.param))


def play(emulator: Emulator, seed: int, count: int) -> list:
    """What is seen and paid over `count` random steps, starting anew at an episode's end."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(count):
        draws = rng.random(1 + emulator.protocol.max_frame_skip).tolist()
        reward = emulator.step(int(rng.choice([UP, DOWN])), draws)
        seen.append((reward, emulator.screen.tobytes(), emulator.is_over, emulator.num_frames))
        if emulator.is_over:
            emulator.reset()
    return seen


def test_every_episode_starts_the_same_and_the_same_moves_and_draws_give_the_same(emulator):
    starts, games = [], []
    for _ in range(2):
        emulator.reset()
        starts.append((emulator.screen.tobytes(), emulator.get_state(), emulator.frame().tobytes()))
        assert (emulator.num_frames, emulator.is_over) == (0, False)
        games.append(play(emulator, seed=2, count=300))
    assert starts[0] == starts[1]
    assert games[0] == games[1]
    rewards = {reward for reward, *_ in games[0]}
    assert -1.0 in rewards <= {-1.0, 0.0, 1.0}


@pytest.mark.slow
def test_a_restored_state_has_the_same_future_in_another_emulator(emulator):
    other = Emulator(emulator.protocol)
    play(other, seed=9, count=40)
    for seed in range(10):
        play(emulator, seed=seed, count=23)
        state = emulator.get_state()
        future = play(emulator, seed=100 + seed, count=60)
        other.set_state(state)
        assert play(other, seed=100 + seed, count=60) == future


def test_a_state_holds_the_held_action(emulator):
    """The first frame after a restore may keep the action held before: it must be known."""
    for action in (UP, DOWN):
        emulator.step(action, ASKED)
        state = emulator.get_state()
        sticky = [emulator.step(UP, KEPT), emulator.screen.tobytes()]
        play(emulator, seed=3, count=5)
        emulator.set_state(state)
        assert [emulator.step(UP, KEPT), emulator.screen.tobytes()] == sticky


def test_frame_and_screen_show_the_same(emulator):
    for seed in range(60):
        frame = emulator.frame()
        assert (frame.shape, frame.dtype) == ((210, 160, 3), np.uint8)
        np.testing.assert_array_equal(
            active_of(emulator.screen), np.flatnonzero(preprocess(frame).ravel())
        )
        play(emulator, seed, 1)


def test_frame_skip_is_within_the_protocol(emulator):
    low, high = emulator.protocol.frame_skips
    counts = [0, *(frames for *_, frames in play(emulator, seed=6, count=30))]
    assert set(np.diff(counts)) == set(range(low, high + 1))


@pytest.mark.parametrize("name", GAMES)
def test_an_episode_ends_when_its_frames_are_used_up(name):
    protocol = dataclasses.replace(find_protocol(name, frame_skip=4), max_frames=80)
    emulator, steps = Emulator(protocol), 0
    while not emulator.is_over:
        emulator.step(UP, ASKED)
        steps += 1
    assert (steps, emulator.num_frames) == (20, 80)


@pytest.mark.parametrize("name", GAMES)
def test_only_frames_that_were_emulated_are_counted(name):
    """An episode that ends inside a step does not use up the whole step."""
    counts = set()
    for skip in (1, 7):
        emulator = Emulator(find_protocol(name, frame_skip=skip, sticky=0.0))
        while not emulator.is_over:
            emulator.step(UP, [0.0] * 8)
        counts.add(emulator.num_frames)
    assert len(counts) == 1
