"""The real emulator against Gymnasium's, and the sticky coin against ALE's own."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import ale_py  # registers the environments
import gymnasium
import numpy as np
import pytest

from pixelpong.config.protocols import find_protocol
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import preprocess
from pixelpong.errors import EmulatorError
from pixelpong.items import DOWN, UP

V5 = find_protocol("ALE/Pong-v5")
PLAIN = find_protocol("ALE/Pong-v5", sticky=0.0)
NO_DRAWS = [0.0] * 5

# Column → first and last row that is on, in the frame of the golden test: the opponent, the ball
# and the own paddle.
RUNS = {8: (40, 47), 9: (40, 47), 41: (41, 42), 70: (35, 42), 71: (35, 42)}


def follow_the_ball(frame: np.ndarray) -> int:
    """A fixed policy that wins and loses points: move the paddle towards the ball."""
    field = frame[35:194, 16:144, 0]  # row 194 is the wall, as white as the ball
    ball_rows, _ = np.nonzero(field == 236)
    paddle_rows, _ = np.nonzero(field == 92)
    target = ball_rows.mean() if len(ball_rows) else 80
    return UP if len(paddle_rows) and target < paddle_rows.mean() else DOWN


def test_the_palette_of_play_and_of_the_first_frame_is_as_described():
    emulator = Emulator(V5)
    assert set(np.unique(emulator.screen[35:195])) == {138, 210, 228}
    for _ in range(40):
        emulator.step(UP, [0.0] + [0.9] * 4)
    assert set(np.unique(emulator.screen[35:195])) == {14, 34, 56, 200}


def test_preprocessing_of_a_known_frame_is_as_stored():
    emulator = Emulator(PLAIN)
    for step in range(80):
        emulator.step(UP if step % 2 else DOWN, NO_DRAWS)
    frame = emulator.frame()
    before = frame.copy()
    field = preprocess(frame)
    np.testing.assert_array_equal(frame, before)
    assert hashlib.sha256(frame.tobytes()).hexdigest() == (
        "59aa10d10cf2419a789dfe5e84d2978ecb1c72a653b19f5351b4ede8efa5be7d"
    )
    rows, columns = np.nonzero(field)
    assert field.shape == (80, 80)
    assert sorted(set(columns.tolist())) == list(RUNS)
    for column, (first, last) in RUNS.items():
        assert rows[columns == column].tolist() == list(range(first, last + 1))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_frames_and_rewards_equal_gymnasiums_over_whole_episodes():
    env = gymnasium.make("ALE/Pong-v5", repeat_action_probability=0.0, disable_env_checker=True)
    ours = Emulator(PLAIN)
    rng = np.random.default_rng(0)
    steps = episodes = 0
    while steps < 5_000 or episodes < 2:
        theirs, _ = env.reset()
        ours.reset()
        assert np.array_equal(ours.frame(), theirs)
        is_over = False
        while not is_over:
            # Half of the time a policy that keeps rallies going, so that episodes differ.
            if rng.random() < 0.5:
                action = follow_the_ball(theirs)
            else:
                action = int(rng.choice([UP, DOWN]))
            theirs, reward, terminated, truncated, _ = env.step(action)
            is_over = terminated or truncated
            assert ours.step(action, NO_DRAWS) == reward
            assert ours.is_over == is_over
            assert np.array_equal(ours.frame(), theirs)
            steps += 1
        episodes += 1
    env.close()


class HeldActions(Emulator):
    """Notes the action that each emulated frame got."""

    def __init__(self, protocol):
        self.got: list[int] = []
        super().__init__(protocol)
        run = self.console.run

        def noted(actions, draws):
            self.got += actions
            return run(actions, draws)

        self.console.run = noted


@pytest.mark.slow
def test_a_quarter_of_the_frames_keep_the_held_action():
    """With actions that alternate, frame k of a step still has the old one with 0.25^(k+1)."""
    emulator = HeldActions(V5)
    rng = np.random.default_rng(1)
    steps, wanted = 6000, []
    for step in range(steps):
        action = UP if step % 2 else DOWN
        wanted.append(action)
        emulator.step(action, rng.random(5).tolist())
        if emulator.is_over:
            emulator.reset()
    held = np.array(emulator.got).reshape(steps, 4) != np.array(wanted)[:, None]
    for frame, share in enumerate(held.mean(axis=0)):
        expected = 0.25 ** (frame + 1)
        deviation = np.sqrt(expected * (1 - expected) / steps)
        assert abs(share - expected) < 4 * deviation, frame


def test_without_stickiness_every_frame_gets_what_was_asked_for():
    emulator = HeldActions(PLAIN)
    emulator.step(UP, NO_DRAWS)
    emulator.step(DOWN, NO_DRAWS)
    assert emulator.got == [UP] * 4 + [DOWN] * 4


def test_a_new_episode_holds_no_action():
    emulator = HeldActions(V5)
    emulator.step(UP, [0.0] + [0.9] * 4)
    emulator.reset()
    emulator.got.clear()
    emulator.step(UP, NO_DRAWS)  # coins of 0: the held action is kept
    assert emulator.got == [0] * 4


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
    ours, theirs = [], []
    emulator = Emulator(V5)
    rng = np.random.default_rng(3)
    for _ in range(30):
        emulator.reset()
        total = 0.0
        while not emulator.is_over:
            total += emulator.step(follow_the_ball(emulator.frame()), rng.random(5).tolist())
        ours.append(total)
    env = gymnasium.make("ALE/Pong-v5", disable_env_checker=True)
    for episode in range(4):  # these take seconds
        frame, _ = env.reset(seed=episode)
        total, is_over = 0.0, False
        while not is_over:
            frame, reward, terminated, truncated, _ = env.step(follow_the_ball(frame))
            total, is_over = total + reward, terminated or truncated
        theirs.append(total)
    env.close()
    deviation = np.std(ours, ddof=1)
    assert deviation > 0.5
    error = deviation * np.sqrt(1 / len(ours) + 1 / len(theirs))
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * error, (ours, theirs)


FUTURE_OF = """
import hashlib, json, sys
import numpy as np
from pixelpong.env.pong import Emulator
from pixelpong.config.protocols import find_protocol

emulator = Emulator(find_protocol("ALE/Pong-v5"))
for line in sys.stdin:
    state, seed = json.loads(line)
    emulator.set_state(bytes.fromhex(state))
    rng, digest = np.random.default_rng(seed), hashlib.sha256()
    for _ in range(50):
        action = int(rng.choice([2, 3]))
        reward = emulator.step(action, rng.random(5).tolist())
        digest.update(repr((reward, emulator.is_over)).encode() + emulator.screen.tobytes())
        if emulator.is_over:
            emulator.reset()
    print(digest.hexdigest())
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_snapshot_has_the_same_future_in_another_process_at_120_points():
    emulator = Emulator(V5)
    rng = np.random.default_rng(4)
    questions = []
    for seed in range(120):
        for _ in range(int(rng.integers(1, 120))):
            emulator.step(follow_the_ball(emulator.frame()), rng.random(5).tolist())
            if emulator.is_over:
                emulator.reset()
        questions.append(json.dumps([emulator.get_state().hex(), seed]))
    answers = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FUTURE_OF],
            input="\n".join(questions), capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers.append(done.stdout.split())
    assert answers[0] == answers[1]
    assert len(set(answers[0])) > 100
    here = []
    for question in questions:
        state, seed = json.loads(question)
        emulator.set_state(bytes.fromhex(state))
        future, digest = np.random.default_rng(seed), hashlib.sha256()
        for _ in range(50):
            action = int(future.choice([2, 3]))
            reward = emulator.step(action, future.random(5).tolist())
            seen = repr((reward, emulator.is_over)).encode()
            digest.update(seen + emulator.screen.tobytes())
            if emulator.is_over:
                emulator.reset()
        here.append(digest.hexdigest())
    assert here == answers[0]


@pytest.mark.parametrize("content", [None, b"no game"])
def test_no_game_is_one_line(monkeypatch, tmp_path, content, capsys):
    if content is not None:
        (tmp_path / "pong.bin").write_bytes(content)
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    with pytest.raises(EmulatorError, match="expected Pong's ROM in the folder in ALE_ROMS_DIR"):
        Emulator(V5)
    assert capsys.readouterr().out == ""


def test_the_games_of_another_folder_are_used_without_a_word_on_stdout(monkeypatch, capsys):
    folder = Path(ale_py.__file__).parent / "roms"
    monkeypatch.setenv("ALE_ROMS_DIR", str(folder))
    Emulator(V5)
    assert capsys.readouterr().out == ""
