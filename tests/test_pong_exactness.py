"""The real emulator against Gymnasium's, and the sticky coin against ALE's own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ale_py  # registers the environments
import gymnasium
import numpy as np
import pytest
from lockstep import Oracle

import pixelpong
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import find_protocol
from pixelpong.env.native import NativeConsole
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.items import DOWN, UP

V5 = find_protocol("ALE/Pong-v5")
PLAIN = find_protocol("ALE/Pong-v5", sticky=0.0)
NO_DRAWS = [0.0] * 5

RUNS = {8: (40, 47), 9: (40, 47), 41: (41, 42), 70: (35, 42), 71: (35, 42)}
"""Of the golden frame: column → first and last row that is on."""


def follow_the_ball(frame: np.ndarray) -> int:
    """A fixed policy that wins and loses points: move the paddle towards the ball."""
    field = frame[35:194, 16:144, 0]  # row 194 is the wall, as white as the ball
    ball_rows, _ = np.nonzero(field == 236)
    paddle_rows, _ = np.nonzero(field == 92)
    target = ball_rows.mean() if len(ball_rows) else 80
    return UP if len(paddle_rows) and target < paddle_rows.mean() else DOWN


def test_a_known_frame_and_its_preprocessing_are_as_stored():
    emulator = Emulator(PLAIN)
    assert set(np.unique(emulator.screen[35:195])) == {138, 210, 228}  # of the first frame alone
    for step in range(80):
        emulator.step(UP if step % 2 else DOWN, NO_DRAWS)
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
@pytest.mark.timeout(120)
def test_frames_rewards_and_ends_equal_gymnasiums_over_whole_episodes():
    """Of all six actions; half of the time rallies are kept going, so that episodes differ."""
    env = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, disable_env_checker=True)
    ours = pixelpong.make_env(sticky=0.0)
    assert ours.action_space == env.action_space
    rng = np.random.default_rng(0)
    steps = episodes = 0
    while steps < 5_000 or episodes < 2:
        theirs, frame, ends = env.reset()[0], ours.reset()[0], [False]
        while not any(ends):
            assert np.array_equal(frame, theirs)
            is_random = rng.random() < 0.5
            action = int(rng.integers(6)) if is_random else follow_the_ball(theirs)
            theirs, reward, *ends, _ = env.step(action)
            frame, *rest, _ = ours.step(action)
            assert rest == [reward, *ends]
            steps += 1
        assert np.array_equal(frame, theirs)
        episodes += 1
    env.close()


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
    assert (PALETTE.shape, PALETTE.dtype) == ((256, 3), np.uint8)


class Noting(NativeConsole):
    """Notes the action that each emulated frame got."""

    def __init__(self):
        self.got: list[int] = []
        super().__init__()

    def run(self, actions, draws):
        self.got += actions
        return super().run(actions, draws)


def noting(protocol) -> Emulator:
    emulator = Emulator(protocol)
    emulator.console = Noting()
    return emulator


@pytest.mark.slow
def test_a_quarter_of_the_frames_keep_the_held_action():
    """With actions that alternate, frame k of a step still has the old one with 0.25^(k+1)."""
    emulator = noting(V5)
    rng = np.random.default_rng(1)
    steps, wanted = 6000, []
    for step in range(steps):
        action = UP if step % 2 else DOWN
        wanted.append(action)
        emulator.step(action, rng.random(5).tolist())
        if emulator.is_over:
            emulator.reset()
    held = np.array(emulator.console.got).reshape(steps, 4) != np.array(wanted)[:, None]
    for frame, share in enumerate(held.mean(axis=0)):
        expected = 0.25 ** (frame + 1)
        deviation = np.sqrt(expected * (1 - expected) / steps)
        assert abs(share - expected) < 4 * deviation, frame


def test_the_held_action_counts_only_where_there_is_a_coin_and_an_action_before():
    emulator = noting(PLAIN)
    for action in (UP, DOWN):
        emulator.step(action, NO_DRAWS)
    assert emulator.console.got == [UP] * 4 + [DOWN] * 4
    emulator = noting(V5)
    emulator.step(UP, [0.0] + [0.9] * 4)
    emulator.reset()
    emulator.step(UP, NO_DRAWS)  # coins of 0: the held action is kept
    assert emulator.console.got == [UP] * 4 + [0] * 4


@pytest.mark.slow
def test_a_drawn_frame_skip_is_uniform():
    emulator = Emulator(find_protocol("Pong-v0"))
    rng = np.random.default_rng(2)
    counts = np.zeros(5)
    for _ in range(3000):
        before = emulator.num_frames
        emulator.step(UP, rng.random(5).tolist())
        if emulator.is_over:  # this step may have been shorter than drawn
            emulator.reset()
        else:
            counts[emulator.num_frames - before] += 1
    assert counts[:2].sum() == 0
    assert (abs(counts[2:] - 1000) < 4 * np.sqrt(3000 * 2 / 9)).all()


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_fixed_policy_returns_the_same_under_our_coin_and_under_ales():
    """Two-sample test on episode returns of one policy; 4 standard errors allowed."""
    env, rng = gymnasium.make("ALE/Pong-v5", disable_env_checker=True), np.random.default_rng(3)
    emulator, ours, theirs = Emulator(V5), [], []
    for _ in range(30):
        emulator.reset()
        ours.append(0.0)
        while not emulator.is_over:
            ours[-1] += emulator.step(follow_the_ball(emulator.frame()), rng.random(5).tolist())
    for episode in range(4):  # these take seconds
        (frame, _), ends = env.reset(seed=episode), [False]
        theirs.append(0.0)
        while not any(ends):
            frame, reward, *ends, _ = env.step(follow_the_ball(frame))
            theirs[-1] += reward
    env.close()
    deviation = np.std(ours, ddof=1)
    assert deviation > 0.5
    error = deviation * np.sqrt(1 / len(ours) + 1 / len(theirs))
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * error, (ours, theirs)


def futures(lines) -> Iterator[str]:
    """Of a snapshot and a seed in each line: a hash of what the next 50 steps pay and show."""
    emulator = Emulator(V5)
    for line in lines:
        state, seed = json.loads(line)
        emulator.set_state(bytes.fromhex(state))
        rng, digest = np.random.default_rng(seed), hashlib.sha256()
        for _ in range(50):
            reward = emulator.step(int(rng.choice([UP, DOWN])), rng.random(5).tolist())
            digest.update(repr((reward, emulator.is_over)).encode() + emulator.screen.tobytes())
            if emulator.is_over:
                emulator.reset()
        yield digest.hexdigest()


@pytest.mark.slow
def test_a_snapshot_has_the_same_future_in_another_process_at_30_points():
    emulator, rng, questions = Emulator(V5), np.random.default_rng(4), []
    for seed in range(30):
        for _ in range(int(rng.integers(1, 120))):
            emulator.step(follow_the_ball(emulator.frame()), rng.random(5).tolist())
            if emulator.is_over:
                emulator.reset()
        questions.append(json.dumps([emulator.get_state().hex(), seed]))
    here = list(futures(questions))
    assert len(set(here)) > 25
    done = subprocess.run(
        [sys.executable, __file__],
        input="\n".join(questions), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == here


def test_the_games_of_another_folder_are_used_without_a_word_on_stdout(monkeypatch, capsys):
    monkeypatch.setenv("ALE_ROMS_DIR", str(Path(ale_py.__file__).parent / "roms"))
    Emulator(V5)
    assert capsys.readouterr().out == ""


if __name__ == "__main__":
    print("\n".join(futures(sys.stdin)))
