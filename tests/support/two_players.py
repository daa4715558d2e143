"""Games for two players, on our console and on multi-agent-ale-py, frame by frame.

    python tests/support/two_players.py    # records a game of each cartridge, played by the oracle

There, a number that depends on all that was played sets the timer of a start, so a start is found
by trying all timers. The record has it, and the memory before the start, so a test can play the
same game without the oracle.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pixelpong.atari.games.rules import open_cartridge
from pixelpong.atari.machine.cartridge import Flavour
from pixelpong.atari.machine.cartridges import cartridge, names_for_two
from pixelpong.atari.machine.record import DRAW_PICTURE, FRAME_DONE, SECOND_AT, WIDTH
from pixelpong.atari.machine.roms import rom_path
from pixelpong.atari.machine.starting import SHORTEST, TIMERS, reset
from pixelpong.errors import EmulatorError

RECORD = Path(__file__).parents[1] / "envs/two_players.json"
FRAMES, SEED, PICTURES = 3000, 1, 16  # frames of a recorded game; a picture is compared every 16


class Frame(NamedTuple):
    """What both emulators tell after a frame."""

    memory: bytes
    rewards: tuple[int, int]
    is_over: bool
    picture: bytes


class OracleOfTwo:
    """multi-agent-ale-py, without its charges for waiting."""

    def __init__(self, name: str, flavour: Flavour, seed: int = SEED):
        from multi_agent_ale_py import ALEInterface

        ALEInterface.setLoggerMode("error")
        self.ale = ALEInterface()
        for option in ("max_turn_time", "max_num_frames_per_episode"):
            self.ale.setInt(option, 0)
        self.ale.setInt("random_seed", seed)
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("frame_skip", 1)
        self.ale.loadROM(str(rom_path(name)))
        self.ale.setMode(flavour.mode)
        self.ale.setDifficulty(flavour.difficulty)

    def memory(self) -> bytes:
        return self.ale.getRAM().tobytes()

    def run(self, first: int, second: int) -> Frame:
        rewards = self.ale.act([first, second])
        is_over, picture = bool(self.ale.game_over()), self.ale.getScreen().tobytes()
        return Frame(self.memory(), tuple(map(int, rewards)), is_over, picture)


class ConsoleOfTwo:
    """Our console at the start of a game for two."""

    def __init__(self, name: str, flavour: Flavour, memory: bytes, timer: int):
        facts = cartridge(name, is_for_two=True)
        self._game, self._size = open_cartridge(facts), facts.rows * WIDTH
        self._pays_second = facts.scoring is not None and facts.scoring.pays_second
        self._actions = np.zeros(SECOND_AT + 1, np.uint8)
        self._machine: Any = reset(self._game, 0, memory, flavour)
        self._machine["timer"] = timer
        self._game.start_game(self._machine)

    def memory(self) -> bytes:
        return self._machine["ram"][0].tobytes()

    def run(self, first: int, second: int) -> Frame:
        machine = self._machine
        self._actions[0], self._actions[SECOND_AT] = first, second
        self._game.play_frames(machine.ctypes.data, self._actions.ctypes.data, 1, DRAW_PICTURE)
        assert machine["stop"][0] == FRAME_DONE
        reward, its = int(machine["reward"][0]), int(machine["second"][0])
        rewards = reward, its if self._pays_second else -reward
        picture = machine["picture"][0, : self._size].tobytes()
        return Frame(self.memory(), rewards, bool(machine["is_over"][0]), picture)


def find_timer(name: str, flavour: Flavour, before: bytes, after: bytes) -> int:
    """Find the timer with which a start makes the memory `before` to the one `after` it."""
    for timer in range(SHORTEST, SHORTEST + TIMERS):
        try:
            if ConsoleOfTwo(name, flavour, before, timer).memory() == after:
                return timer
        except EmulatorError:  # no press chose the game
            continue
    raise AssertionError(f"{name} {flavour}: no timer gives this start")


def moves_of(seed: int) -> Iterator[tuple[int, int]]:
    """Actions of both players, for ever: each is held for some frames."""
    rng, held = np.random.default_rng(seed), [0, 0]
    while True:
        held = [int(rng.integers(18)) if rng.random() < 1 / 8 else it for it in held]
        yield held[0], held[1]


def play_both(name: str, flavour: Flavour, seed: int, frames: int) -> dict[str, int]:
    """Play on both and compare; a game that is over starts again. Count what was seen."""
    oracle, done = OracleOfTwo(name, flavour, seed), {"paid": 0, "ends": 0}
    console = _start(oracle, name, flavour)
    for number, moves in zip(range(frames), moves_of(seed), strict=False):
        theirs, ours = oracle.run(*moves), console.run(*moves)
        assert ours[:3] == theirs[:3], (name, flavour, number)
        assert number % PICTURES or ours.picture == theirs.picture, (name, flavour, number)
        done["paid"] += any(ours.rewards)
        if ours.is_over:
            done["ends"] += 1
            console = _start(oracle, name, flavour)
    return done


def _start(oracle: OracleOfTwo, name: str, flavour: Flavour) -> ConsoleOfTwo:
    """Start a game on the oracle, and the same one on our console."""
    before = oracle.memory()
    oracle.ale.reset_game()
    timer = find_timer(name, flavour, before, oracle.memory())
    return ConsoleOfTwo(name, flavour, before, timer)


def hash_game(player: OracleOfTwo | ConsoleOfTwo) -> dict[str, Any]:
    """Play a game up to its end or a number of frames: both returns, and a hash of all frames."""
    digest, returns, frames = hashlib.sha256(), [0, 0], 0
    for moves in moves_of(SEED):
        frame = player.run(*moves)
        digest.update(frame.memory + repr(frame[1:3]).encode())
        if frames % PICTURES == 0:
            digest.update(frame.picture)
        returns = [old + new for old, new in zip(returns, frame.rewards, strict=True)]
        frames += 1
        if frame.is_over or frames == FRAMES:
            break
    return {"frames": frames, "returns": returns, "sha256": digest.hexdigest()}


def flavours_of(name: str) -> list[Flavour]:
    """The games for two on a cartridge, with the first difficulty."""
    facts = cartridge(name, is_for_two=True)
    return [Flavour(mode, facts.difficulties[0]) for mode in facts.modes]


def record(name: str) -> dict[str, Any]:
    """Play the first game for two of a cartridge on the oracle."""
    flavour = flavours_of(name)[0]
    oracle = OracleOfTwo(name, flavour)
    before = oracle.memory()
    oracle.ale.reset_game()
    timer = find_timer(name, flavour, before, oracle.memory())
    return {"memory": before.hex(), "timer": timer, **hash_game(oracle)}


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(record(name))}" for name in names_for_two()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
