"""Two emulators play the same game, and everything that can be seen of them must be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import ale_py
import numpy as np
from ale_state import read_state
from consoles import Console, scribble, shows
from machines import differences

from pixelpong.atari.machine.record import DRAW_PICTURE, PADDLE_CENTRE
from pixelpong.atari.machine.roms import rom_path
from pixelpong.pong.cartridge import BALL_ROW, LEFT_POINTS, RIGHT_POINTS

OWN_ROW, OTHER_ROW = 0x33, 0x32
"""Memory of the game: the rows of the right and of the left paddle."""

ALE_ACTIONS = (0, 1, 3, 4, 11, 12)
FIRE = 1


class Oracle:
    """ALE itself, a frame a call, with nothing of ours in between."""

    def __init__(self, sticky: float = 0.0):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = ale_py.ALEInterface()
        self.load(sticky)
        self.ale.setInt("max_num_frames_per_episode", 0)

    def load(self, sticky: float = 0.0) -> None:
        self.ale.setFloat("repeat_action_probability", sticky)
        self.ale.setInt("frame_skip", 1)
        self.ale.loadROM(str(rom_path("pong")))
        self.ale.reset_game()

    def run(self, left: int, right: int) -> tuple[int, int]:
        """Play a frame; what it pays to the left and to the right side."""
        reward = self.ale.act(ALE_ACTIONS[right])
        return -reward, reward

    def memory(self) -> np.ndarray:
        return self.ale.getRAM()

    def picture(self) -> np.ndarray:
        return self.ale.getScreen().reshape(210, 160)


class OracleForTwo(Oracle):
    """multi-agent-ale-py, in one of the cartridge's games for two."""

    def __init__(self, mode: int):
        from multi_agent_ale_py import ALEInterface

        ALEInterface.setLoggerMode("error")
        self.ale = ALEInterface()
        self.load()
        self.ale.setMode(mode)
        self.ale.setDifficulty(0)
        self.ale.reset_game()

    def run(self, left: int, right: int) -> tuple[int, int]:
        to_right, to_left = self.ale.act([ALE_ACTIONS[right], ALE_ACTIONS[left]])
        return to_left, to_right


def styles(rng: np.random.Generator, memory: np.ndarray, own_row: int = OWN_ROW) -> Iterator[int]:
    """Actions, for ever: random, held, moving, following the ball well or badly, serving."""
    while True:
        style, held = int(rng.integers(6)), int(rng.integers(6))
        for _ in range(int(rng.integers(20, 1500))):
            if style == 0 or (style == 1 and rng.random() < 0.05):
                held = int(rng.integers(6))
            elif style == 3:
                held = int(rng.integers(2, 4))
            elif style >= 4:
                slack = int(rng.integers(12))
                held = 2 if int(memory[BALL_ROW]) < int(memory[own_row]) + slack else 3
                if style == 5 and rng.random() < 0.1:
                    held = int(rng.integers(6))
            yield held


def play_in_lockstep(
    oracle: Oracle,
    console: Console,
    seed: int,
    frames: int,
    *,
    skip: tuple[int, int] = (1, 1),
    lead: int = 0,
    read_every: int = 0,
) -> Counter:
    """Play both, for `frames` at least; compare, and raise where they differ.

    Args:
        oracle, console, seed, frames: what plays; of the moves and drawings; to be played.
        skip: the fewest and the most frames a call; of the last one nothing, field or picture is
            drawn.
        lead: points that the right side begins with, so that it wins.
        read_every: calls after which the processor's, timer's and TIA's registers are compared,
            and the console goes on from ALE's; 0 for never.

    Returns:
        Frames, games, games won, points, whole states compared, and how often a side was charged.
    """
    rng, done = np.random.default_rng(seed), Counter()
    is_for_two = isinstance(oracle, OracleForTwo)
    left, right = styles(rng, console.memory, OTHER_ROW), styles(rng, console.memory)
    start(oracle, console, lead)
    while done["frames"] < frames:
        moves = [next(left) if is_for_two else 0, next(right)]
        if is_for_two and done["frames"] // 500 % 6 < 5:  # then for a while hardly anyone serves
            moves = [FIRE if rng.random() < 0.15 else move for move in moves]
        draws, count = int(rng.integers(3)), int(rng.integers(*skip, endpoint=True))
        paid = [oracle.run(*moves) for _ in range(count)]
        to_left, to_right = map(sum, zip(*paid, strict=True))
        reward, is_over, played = console.run(bytes([moves[0] << 4 | moves[1]]) * count, draws)
        if to_left + to_right == -1:  # the oracle charges a side that does not serve in time
            to_left = to_right = 0
            done["charges"] += 1
        assert (to_left, to_right) == (-reward, reward), done
        assert np.array_equal(console.memory, oracle.memory()), done
        assert shows(console, draws, oracle.picture()), done
        points = console.memory[[LEFT_POINTS, RIGHT_POINTS]]
        assert is_over == oracle.ale.game_over() == (21 in points), done
        done += Counter(frames=played, calls=1, points=abs(reward))
        if read_every and done["calls"] % read_every == 0:
            state = read_state(oracle.ale.cloneState().serialize())
            ours = console.get_state()
            assert state.tobytes() == ours.tobytes(), differences(state, ours)
            scribble(console)
            done["states"] += 1
        if is_over:
            done += Counter(games=1, won=reward > 0)
            start(oracle, console, lead)
    return done


def start(oracle: Oracle, console: Console, lead: int) -> None:
    """Begin a game on both, with some points to the right side."""
    oracle.ale.reset_game()
    console.reset()
    is_for_two = isinstance(oracle, OracleForTwo)
    if is_for_two:  # the third and the fourth paddle, which that oracle has not, in the middle
        console.machine["resistance"][0, 2:] = PADDLE_CENTRE
    if lead:
        oracle.ale.setRAM(RIGHT_POINTS, lead)
        console.memory[RIGHT_POINTS] = lead
    for _ in range(20 if is_for_two else 1):  # until the game, or the picture, has noticed
        oracle.run(0, 0)
        console.run(b"\0", DRAW_PICTURE)
    assert np.array_equal(console.picture, oracle.picture())
