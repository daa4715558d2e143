"""The contract that the real emulator and the toy both keep."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.config.protocols import find_protocol
from pixelpong.env import Emulator, make_emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.errors import EmulatorError
from pixelpong.items import DOWN, UP

GAMES = ["ALE/Pong-v5", "Pong-v0", "Catch-v0"]


@pytest.fixture(params=GAMES)
def emulator(request) -> Emulator:
    return make_emulator(find_protocol(request.param))


def moves(emulator: Emulator, seed: int, count: int):
    rng = np.random.default_rng(seed)
    width = 1 + emulator.protocol.max_frame_skip
    for _ in range(count):
        yield int(rng.choice([UP, DOWN])), rng.random(width).tolist()


def play(emulator: Emulator, seed: int, count: int) -> list:
    """What is seen and paid over `count` random steps, starting anew at an episode's end."""
    seen = []
    for action, draws in moves(emulator, seed, count):
        reward = emulator.step(action, draws)
        seen.append((reward, emulator.screen.tobytes(), emulator.is_over, emulator.num_frames))
        if emulator.is_over:
            emulator.reset()
    return seen


def test_every_episode_starts_the_same(emulator):
    emulator.reset()
    first = (emulator.screen.tobytes(), emulator.get_state(), emulator.frame().tobytes())
    play(emulator, seed=1, count=50)
    emulator.reset()
    assert (emulator.screen.tobytes(), emulator.get_state(), emulator.frame().tobytes()) == first
    assert emulator.num_frames == 0
    assert not emulator.is_over


def test_the_same_moves_and_draws_give_the_same_episode(emulator):
    emulator.reset()
    first = play(emulator, seed=2, count=300)
    emulator.reset()
    assert play(emulator, seed=2, count=300) == first


@pytest.mark.slow
def test_a_restored_state_has_the_same_future_in_another_emulator(emulator):
    other = make_emulator(emulator.protocol)
    play(other, seed=9, count=40)
    emulator.reset()
    for seed in range(10):
        play(emulator, seed=seed, count=23)
        state = emulator.get_state()
        future = play(emulator, seed=100 + seed, count=60)
        other.set_state(state)
        assert play(other, seed=100 + seed, count=60) == future


def test_a_state_holds_the_held_action(emulator):
    """The first frame after a restore may keep the action held before: it must be known."""
    emulator.reset()
    no_coin = [0.0] * 5
    for action in (UP, DOWN):
        emulator.step(action, [0.0, 0.9, 0.9, 0.9, 0.9])
        state = emulator.get_state()
        sticky = [emulator.step(UP, no_coin), emulator.screen.tobytes()]
        play(emulator, seed=3, count=5)
        emulator.set_state(state)
        assert [emulator.step(UP, no_coin), emulator.screen.tobytes()] == sticky


@pytest.mark.parametrize("state", [b"", b"abc", b"\0" * 30, b"\xff" * 500])
def test_what_is_no_snapshot_is_refused(emulator, state, capfd):
    with pytest.raises(EmulatorError, match="expected a snapshot"):
        emulator.set_state(state)
    emulator.reset()
    play(emulator, seed=0, count=5)


def test_a_snapshot_is_a_few_hundred_bytes(emulator):
    """It travels with every segment, and sixty-four of them lie in every checkpoint."""
    emulator.reset()
    play(emulator, seed=5, count=400)
    assert len(emulator.get_state()) < 400


def test_a_snapshot_with_one_wrong_byte_is_refused(emulator):
    if emulator.protocol.name == "Catch-v0":
        pytest.skip("its snapshot has no checksum")
    emulator.reset()
    play(emulator, seed=6, count=100)
    state = bytearray(emulator.get_state())
    for place in range(8, len(state)):
        state[place] ^= 1
        with pytest.raises(EmulatorError, match="expected a snapshot"):
            emulator.set_state(bytes(state))
        state[place] ^= 1


def test_frame_and_screen_show_the_same(emulator):
    from test_kernels import active_of

    emulator.reset()
    for action, draws in moves(emulator, seed=4, count=60):
        frame = emulator.frame()
        assert (frame.shape, frame.dtype) == ((210, 160, 3), np.uint8)
        np.testing.assert_array_equal(
            active_of(emulator.screen), np.flatnonzero(preprocess(frame).ravel())
        )
        emulator.step(action, draws)


def test_rewards_are_points(emulator):
    emulator.reset()
    rewards = {reward for reward, *_ in play(emulator, seed=5, count=400)}
    assert rewards <= {-1.0, 0.0, 1.0}
    assert -1.0 in rewards


def test_frame_skip_is_within_the_protocol(emulator):
    emulator.reset()
    low, high = emulator.protocol.frame_skips
    skips = []
    for action, draws in moves(emulator, seed=6, count=30):
        before = emulator.num_frames
        emulator.step(action, draws)
        skips.append(emulator.num_frames - before)
    assert set(skips) == set(range(low, high + 1))


def test_an_episode_ends_when_its_frames_are_used_up():
    import dataclasses

    for name in GAMES:
        protocol = dataclasses.replace(find_protocol(name, frame_skip=4), max_frames=80)
        emulator = make_emulator(protocol)
        steps = 0
        while not emulator.is_over:
            emulator.step(UP, [0.0] + [0.9] * 4)
            steps += 1
        assert (steps, emulator.num_frames) == (20, 80), name


@pytest.mark.parametrize("name", GAMES)
def test_only_frames_that_were_emulated_are_counted(name):
    """An episode that ends inside a step does not use up the whole step."""
    counts = set()
    for skip in (1, 7):
        emulator = make_emulator(find_protocol(name, frame_skip=skip, sticky=0.0))
        while not emulator.is_over:
            emulator.step(UP, [0.0] * 8)
        counts.add(emulator.num_frames)
    assert len(counts) == 1
