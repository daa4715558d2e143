"""The emulator: frames and colours against Gymnasium's and ALE's, coins, snapshots."""

from __future__ import annotations

import ale_py  # noqa: F401 - registers the environments
import gymnasium
import numpy as np
import pytest
from ale_state import read_state
from consoles import Console
from lockstep import ALE_ACTIONS, Oracle

import pixelpong
from pixelpong.atari.machine.record import DRAW_NOTHING, STATE
from pixelpong.atari.steps.records import GAME
from pixelpong.config.protocols import find_protocol
from pixelpong.errors import ConfigError
from pixelpong.items import DOWN, STAY, UP
from pixelpong.pong.emulator import Emulator
from pixelpong.pong.preprocess import preprocess

RUNS = {8: (40, 47), 9: (40, 47), 41: (41, 42), 70: (35, 42), 71: (35, 42)}
"""Of the known frame: column → first and last row that is on."""


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
    assert field.shape == (80, 80)
    places = [(row, column) for column, (a, b) in RUNS.items() for row in range(a, b + 1)]
    assert np.argwhere(field).tolist() == sorted(map(list, places))


@pytest.mark.slow
def test_frames_rewards_and_ends_equal_gymnasiums_over_whole_episodes():
    env = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, disable_env_checker=True)
    ours = pixelpong.make_env(sticky=0.0)
    assert ours.action_space == env.action_space
    rng = np.random.default_rng(0)
    steps, paid = 0, set()
    for _ in range(2):
        theirs, frame, ends = env.reset()[0], ours.reset()[0], [False]
        while not any(ends):
            assert np.array_equal(frame, theirs)
            action = int(rng.integers(6))
            theirs, reward, *ends, _ = env.step(action)
            frame, *rest, _ = ours.step(action)
            assert rest == [reward, *ends]
            steps += 1
            paid.add(reward)
        assert np.array_equal(frame, theirs)
    env.close()
    assert steps > 1_500
    assert paid == {-1.0, 0.0, 1.0}


@pytest.mark.slow
def test_ales_own_coin_keeps_the_action_of_the_frame_before_in_a_quarter_of_all_frames():
    """Each of its frames is one of two of ours: with the new action, or with the one held."""
    ale, console, kept = Oracle(sticky=0.25).ale, Console(), []
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


# Steps, coins and snapshots.


@pytest.mark.parametrize("sticky", [0.25, 0.0])
@pytest.mark.parametrize("name", ["ALE/Pong-v5", "Pong-v0"])
def test_draws_choose_the_frame_skip_and_the_frames_that_keep_the_held_action(name, sticky):
    """ALE's own coin, a frame after the other; a reset and a snapshot know what is held.

    A snapshot goes on in another emulator, which has played otherwise.
    """
    emulator, other = (Emulator(find_protocol(name, sticky=sticky)) for _ in range(2))
    start, console = emulator.get_state(), Console()
    low, high = emulator.protocol.frame_skips
    rng, held, counts = np.random.default_rng(1), STAY, set()
    for step in range(400):
        if step % 40 == 0:
            emulator.reset()
            console.reset()
            held = STAY
            assert emulator.get_state() == start
        action = int(rng.integers(6))
        skip, *coins = rng.random(1 + high).tolist()
        wanted = []
        for coin in coins[: low + int(skip * (high - low + 1))]:
            held = held if coin < sticky else action
            wanted.append(held)
        other.step(DOWN, [0.9] * (1 + high))
        other.set_state(emulator.get_state())
        seen = []
        for each in (emulator, other):
            reward = each.step(action, [skip, *coins])
            seen.append((reward, each.screen.tobytes(), each.is_over, each.num_frames))
        assert seen[0] == seen[1]
        console.run(bytes(wanted), DRAW_NOTHING)
        assert other.get_state()[GAME.itemsize :] == console.get_state().tobytes()
        counts.add(len(wanted))
        emulator, other = other, emulator
    assert counts == set(range(low, high + 1))


@pytest.mark.parametrize("action", [-1, -2, -3, 6, 255, 1 << 40])
def test_a_number_that_is_no_action_is_refused_and_plays_nothing(action):
    """Not one that environments give to a kernel instead of a move, either."""
    emulator = Emulator(find_protocol("ALE/Pong-v5"))
    emulator.step(UP, [0.9] * 5)
    before = emulator.get_state()
    with pytest.raises(ConfigError, match=f"from 0 to 5, not {action}"):
        emulator.step(action, [0.9] * 5)
    assert emulator.get_state() == before
