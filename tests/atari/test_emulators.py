"""The contract of the emulator: steps, coins, snapshots."""

from __future__ import annotations

import dataclasses
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from sparse import active_of

from pixelpong.config.protocols import find_protocol
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import DOWN, STAY, UP

GAMES = ["ALE/Pong-v5", "Pong-v0"]


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
    seen = []
    for _ in range(2):
        emulator.reset()
        assert (emulator.num_frames, emulator.is_over) == (0, False)
        start = emulator.screen.tobytes(), emulator.get_state(), emulator.frame().tobytes()
        seen.append((start, play(emulator, seed=2, count=300)))
    assert seen[0] == seen[1]
    rewards = {reward for reward, *_ in seen[0][1]}
    assert -1.0 in rewards <= {-1.0, 0.0, 1.0}


def futures(name: str, states: list[bytes]) -> list[list]:
    """What is seen after each of some snapshots, in an emulator that has played before."""
    emulator, seen = Emulator(find_protocol(name)), []
    play(emulator, seed=9, count=40)
    for seed, state in enumerate(states):
        emulator.set_state(state)
        seen.append(play(emulator, seed, count=50))
    return seen


@pytest.mark.slow
def test_a_snapshot_has_the_same_future_in_another_emulator_and_in_another_process():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for name in GAMES:
            emulator, states, wanted = Emulator(find_protocol(name)), [], []
            for seed in range(15):
                play(emulator, 100 + seed, count=17 * seed)
                states.append(emulator.get_state())
                wanted.append(play(emulator, seed, count=50))
            assert futures(name, states) == wanted
            assert pool.submit(futures, name, states).result() == wanted


class Noted:
    """A console that notes the action of each frame."""

    def __init__(self, console):
        self.console, self.got = console, []

    def __getattr__(self, name):
        return getattr(self.console, name)

    def run(self, actions, draws):
        self.got += actions
        return self.console.run(actions, draws)


@pytest.mark.parametrize("sticky", [0.25, 0.0])
@pytest.mark.parametrize("name", GAMES)
def test_draws_choose_the_frame_skip_and_the_frames_that_keep_the_held_action(name, sticky):
    """ALE's own coin, a frame after the other; a reset and a snapshot know what is held."""
    emulator = Emulator(find_protocol(name, sticky=sticky))
    emulator.console = console = Noted(emulator.console)
    low, high = emulator.protocol.frame_skips
    rng, held, counts = np.random.default_rng(1), STAY, set()
    for step in range(400):
        action = int(rng.integers(6))
        skip, *coins = rng.random(1 + high).tolist()
        wanted = []
        for coin in coins[: low + int(skip * (high - low + 1))]:
            held = held if coin < sticky else action
            wanted.append(held)
        state = emulator.get_state()
        for _ in range(2):  # the second time after the snapshot is restored
            emulator.set_state(state)
            console.got.clear()
            emulator.step(action, [skip, *coins])
            assert console.got == wanted
            emulator.step(DOWN, [0.0] * (1 + high))
        counts.add(len(wanted))
        emulator.set_state(state)
        emulator.step(action, [skip, *coins])
        if step % 40 == 39:
            emulator.reset()
            held = STAY
    assert counts == set(range(low, high + 1))


@pytest.mark.slow
def test_frame_and_screen_show_the_same(emulator):
    for seed in range(60):
        frame = emulator.frame()
        assert (frame.shape, frame.dtype) == ((210, 160, 3), np.uint8)
        np.testing.assert_array_equal(
            active_of(emulator.screen), np.flatnonzero(preprocess(frame).ravel())
        )
        play(emulator, seed, 1)


def test_an_episode_ends_when_its_frames_are_used_up_and_counts_those_that_were_emulated():
    protocol = dataclasses.replace(find_protocol("Pong-v0", frame_skip=4), max_frames=82)
    emulator, steps = Emulator(protocol), 0
    while not emulator.is_over:
        emulator.step(UP, [0.9] * 5)
        steps += 1
    assert (steps, emulator.num_frames) == (21, 82)
    counts = set()
    for skip in (1, 7):  # an episode that ends inside a step does not use up the whole step
        emulator = Emulator(find_protocol("ALE/Pong-v5", frame_skip=skip, sticky=0.0))
        while not emulator.is_over:
            emulator.step(UP, [0.0] * 8)
        counts.add(emulator.num_frames)
    assert len(counts) == 1
