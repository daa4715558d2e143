"""Two emulators play the same game, and everything that can be seen of them must be equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ale_py
import numpy as np
from ale_state import read_state
from machines import differences

from pixelpong.atari.machine import DRAW_FIELD, DRAW_NOTHING, DRAW_PICTURE, PADDLE_CENTRE
from pixelpong.env.cartridge import RIGHT_POINTS
from pixelpong.env.native import NativeConsole
from pixelpong.env.preprocess import FIELD_ROWS, IS_ACTIVE
from pixelpong.env.rom import rom_path

BALL_ROW, OWN_ROW, OTHER_ROW = 0x36, 0x33, 0x32
"""Memory of the game: the rows of the ball, of the right and of the left paddle."""

ALE_ACTIONS = (0, 1, 3, 4, 11, 12)
UNFIRED = (0, 0, 2, 3, 2, 3)
"""Actions without the button."""


def load(interface, mode: int | None = None, sticky: float = 0.0):
    """Pong on an ALE that plays a frame a call, with no end of its own."""
    ale = interface()
    ale.setFloat("repeat_action_probability", sticky)
    ale.setInt("frame_skip", 1)
    ale.loadROM(str(rom_path()))
    if mode is None:
        ale.setInt("max_num_frames_per_episode", 0)
    else:
        ale.setMode(mode)
        ale.setDifficulty(0)
    ale.reset_game()
    return ale


class OracleForTwo:
    """multi-agent-ale-py, a frame a call, in one of the cartridge's games for two."""

    def __init__(self, mode: int):
        from multi_agent_ale_py import ALEInterface

        ALEInterface.setLoggerMode("error")
        self.ale = load(ALEInterface, mode)

    def run(self, left: int, right: int) -> tuple[int, int]:
        """Play a frame; what it pays to the left and to the right side."""
        to_right, to_left = self.ale.act([ALE_ACTIONS[right], ALE_ACTIONS[left]])
        return to_left, to_right

    def memory(self) -> np.ndarray:
        return self.ale.getRAM()

    def picture(self) -> np.ndarray:
        return self.ale.getScreen().reshape(210, 160)


class Oracle:
    """ALE itself, with nothing of ours in between."""

    def __init__(self, sticky: float = 0.0):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.ale = load(ale_py.ALEInterface, sticky=sticky)
        self.start = self.ale.cloneState()
        self.picture = np.zeros((210, 160), np.uint8)

    def reset(self):
        self.ale.restoreState(self.start)

    def run(self, actions):
        reward = sum(self.ale.act(ALE_ACTIONS[action]) for action in actions)
        self.ale.getScreen(self.picture)
        return reward, self.ale.game_over()


@dataclass
class Played:
    """What a lock-step has seen."""

    frames: int = 0
    games: int = 0
    won: int = 0
    points: int = 0
    charges: int = 0
    states: int = 0


def field_of(console) -> np.ndarray:
    """The field as [80, 80] bool."""
    bits = np.unpackbits(console.machine["field"][0].view(np.uint8), axis=1, bitorder="little")
    return bits[:, :80].astype(bool)


def shows(console: NativeConsole, draws: int, picture: np.ndarray) -> bool:
    """Whether what a console drew is this."""
    if draws == DRAW_PICTURE:
        return np.array_equal(console.picture, picture)
    field = IS_ACTIVE[picture[FIELD_ROWS][::2, ::2]]
    return draws == DRAW_NOTHING or np.array_equal(field_of(console), field)


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
    console: NativeConsole,
    seed: int,
    frames: int,
    *,
    skip: int | tuple[int, int] = 4,
    draws: int = DRAW_FIELD,
    lead: int = 0,
    read_every: int = 0,
) -> Played:
    """Play both, for `frames` at least; compare, and raise where they differ.

    Args:
        oracle, console, seed, frames: what plays; of the moves; to be played.
        skip: frames a call; if two numbers, drawn for each call, from the first to the second.
        draws: what is compared of the last frame of each: the field, the picture, nothing.
        lead: points that the right side begins with, so that it wins.
        read_every: calls after which the processor's, timer's and TIA's registers are compared,
            and the console goes on from ALE's; 0 for never.
    """
    rng, done = np.random.default_rng(seed), Played()
    actions = styles(rng, console.memory)
    start(oracle, console, lead)
    low, high = (skip, skip) if isinstance(skip, int) else skip
    calls = 0
    while done.frames < frames:
        held = bytes([next(actions)]) * int(rng.integers(low, high + 1))
        theirs, (reward, is_over, played) = oracle.run(held), console.run(held, draws)
        assert (reward, is_over) == theirs, done
        assert np.array_equal(console.memory, oracle.ale.getRAM()), done
        assert shows(console, draws, oracle.picture), done
        calls += 1
        if read_every and calls % read_every == 0:
            state = read_state(oracle.ale.cloneState().serialize())
            ours = console.get_state()
            assert state.tobytes() == ours.tobytes(), differences(state, ours)
            console.machine.view(np.uint8)[:] = 0xA5  # nothing but the state may count
            console.machine["swchb"] = 0x3F
            console.set_state(state)
            done.states += 1
        done.frames += played
        done.points += abs(reward)
        if is_over:
            done.games += 1
            done.won += reward > 0
            start(oracle, console, lead)
    return done


def play_for_two_in_lockstep(mode: int, seed: int, frames: int) -> Played:
    """The same for a game for two, frame by frame, both sides played in all styles."""
    oracle, console = OracleForTwo(mode), NativeConsole(mode)
    rng, done = np.random.default_rng(seed), Played()
    left, right = styles(rng, console.memory, OTHER_ROW), styles(rng, console.memory)
    start_for_two(oracle, console)
    while done.frames < frames:
        moves = [next(left), next(right)]
        if done.frames // 500 % 6 == 5:  # for a while nobody serves
            moves = [UNFIRED[move] for move in moves]
        else:
            moves = [1 if rng.random() < 0.15 else move for move in moves]
        draws = int(rng.integers(3))
        paid = oracle.run(*moves)
        reward, is_over, _ = console.run(bytes([moves[0] << 4 | moves[1]]), draws)
        # That emulator charges a side 1 if it does not serve in time: then they do not cancel out.
        assert paid == (-reward, reward) or (sum(paid) == -1 and reward == 0), done
        assert np.array_equal(console.memory, oracle.memory()), done
        assert shows(console, draws, oracle.picture()), done
        assert is_over == oracle.ale.game_over() == (21 in console.memory[13:15]), done
        done.frames += 1
        done.points += abs(reward)
        done.charges += int(sum(paid) != 0)
        if is_over:
            done.games += 1
            done.won += reward > 0
            oracle.ale.reset_game()
            start_for_two(oracle, console)
    return done


def start_for_two(oracle: OracleForTwo, console: NativeConsole) -> None:
    """Begin a game; the third and the fourth paddle, which ours has not, stand in the middle."""
    console.reset()
    console.machine["resistance"][0, 2:] = PADDLE_CENTRE
    for _ in range(20):  # until the game has noticed
        oracle.run(0, 0)
        console.run(b"\0", DRAW_PICTURE)
    assert np.array_equal(console.picture, oracle.picture())


def start(oracle: Oracle, console: NativeConsole, lead: int) -> None:
    """Begin a game on both, with some points to the right side."""
    oracle.reset()
    console.reset()
    if lead:
        oracle.ale.setRAM(RIGHT_POINTS, lead)
        console.memory[RIGHT_POINTS] = lead
        oracle.run(b"\0")  # the picture shows the points a frame late
        console.run(b"\0", DRAW_NOTHING)
