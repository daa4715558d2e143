"""Plays a cartridge here and on ALE, frame by frame, to check that it is the same game.

It compares the memory after every frame and every start, and some of the pictures; and if the facts
about the points are known, also reward, lives and end. Both sides start games as ALE does: after a
reset, which keeps what the previous game left in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridge import Flavour
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.record import DRAW_NOTHING, DRAW_PICTURE, FRAME_DONE, WIDTH
from pixelpong.atari.machine.roms import rom_path
from pixelpong.atari.machine.starting import start
from pixelpong.errors import number_of

MEMORY = 128  # bytes; in ALE, a cartridge's own memory follows them
STYLES = ("random", "held", "purposeful")


def load_ale(name: str, flavour: Flavour | None = None) -> Any:
    """Load a cartridge into ALE, with one frame per call and no sticky actions."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.setInt("max_num_frames_per_episode", 0)
    ale.loadROM(str(rom_path(name)))
    if flavour:
        ale.setMode(flavour.mode)
        if flavour.difficulty:  # ALE loads with 0, even Backgammon, for which it refuses 0
            ale.setDifficulty(flavour.difficulty)
    return ale


def moves(style: str, legal: tuple[int, ...], rng: np.random.Generator) -> Iterator[int]:
    """Yield actions without end: random ones, held ones, or a held one with a pulsing button."""
    actions, button = np.array(legal), 1 if 1 in legal else legal[-1]
    while True:
        action = int(rng.choice(actions))
        if style == "random":
            yield action
        elif style == "held":
            yield from [action] * int(rng.integers(1, 30))
        else:
            pulse = int(rng.integers(2, 12))
            for k in range(int(rng.integers(20, 200))):
                yield button if k % pulse == 0 else action


@dataclass
class Comparison:
    """The counts of a comparison, and the first difference."""

    frames: int = 0
    starts: int = 0
    pictures: int = 0
    wrong_pictures: int = 0
    pokes: int = 0
    stops: int = 0  # stops of our machine after pokes
    rewards: int = 0  # frames with a reward
    ends: int = 0
    # The first frame after which anything differed, 0 if that was the first start; or None.
    differs_at: int | None = None
    # Differences in memory, reward, lives or end; without pokes, play ends at the first one.
    differences: int = 0
    difference: str = ""
    picture_difference: str = ""


class Lockstep:
    """A compiled cartridge, played next to ALE."""

    def __init__(self, game: Game, picture_every: int = 8, flavour: Flavour | None = None) -> None:
        """Load the cartridge, and compare its first start, which is of its first game.

        Pictures are compared every `picture_every` frames and at every start. After a `restart`,
        the game is the `flavour`, if it is given.
        """
        self._flavour = flavour
        self.game, self.result, self._every = game, Comparison(), picture_every
        self._legal, self._rows = game.cartridge.legal_actions, game.cartridge.rows
        self._number = 0
        self._load()

    def run(
        self, style: str, frames: int, rng: np.random.Generator, *, pokes: float = 0.0
    ) -> Comparison:
        """Play some frames from a reset; stop at the first difference in memory.

        Args:
            style: the style of the actions, one of STYLES.
            frames: number of frames to play, over several games if necessary.
            rng: generator for the actions and the pokes.
            pokes: probability that a random byte is written to both memories before a frame.
        """
        actions, result, end = (
            moves(style, self._legal, rng),
            self.result,
            self.result.frames + frames,
        )
        differences, stops = result.differences, result.stops
        self.restart()
        while result.frames < end and (pokes or not result.differences):
            if self._ale.game_over():  # at its start
                break
            if pokes and rng.random() < pokes:
                self.poke(int(rng.integers(MEMORY)), int(rng.integers(256)))
            self.step(next(actions), draws=result.frames % self._every == 0)
            if result.differences > differences or result.stops > stops:
                differences, stops = result.differences, result.stops
                self._load()
            elif self._ale.game_over():
                self.restart()
        return result

    def restart(self) -> None:
        """Reset both consoles, and compare the start."""
        memory = self._memory().tobytes()
        self._number += 1
        self._ale.reset_game()
        self.machine: Any = start(self.game, self._number, memory, self._flavour)
        self._compare_start("a start")
        self.result.starts += 1

    def _load(self) -> None:
        """Load the cartridge into both consoles."""
        self._number, self._ale = 0, load_ale(self.game.cartridge.name, self._flavour)
        self.machine = start(self.game)
        self._compare_start("the first start")
        self.result.starts += 1

    def poke(self, address: int, value: int) -> None:
        """Write a byte to both memories."""
        self._ale.setRAM(address, value)
        self.machine["ram"][0, address] = value
        self.result.pokes += 1

    def step(self, action: int, *, draws: bool) -> None:
        """Play a frame on both, and compare it."""
        result, machine = self.result, self.machine
        kind = DRAW_PICTURE if draws else DRAW_NOTHING
        reward = self._ale.act(action)
        code = self.game.cartridge.codes[action]
        self.game.play_frames(machine.ctypes.data, bytes([code]), 1, kind)
        result.frames += 1
        if machine["stop"][0] == FRAME_DONE:
            self._compare(f"frame {result.frames}", with_picture=draws)
            if self.game.cartridge.is_scored:
                self._compare_score(reward, f"frame {result.frames}")
        elif result.pokes:  # the poke made the program crash, so its later frames do not matter
            result.stops += 1
        else:
            self._differ(f"our machine stops in frame {result.frames}")

    def _memory(self) -> NDArray[np.uint8]:
        memory: NDArray[np.uint8] = self._ale.getRAM()
        return memory

    def _compare_start(self, when: str) -> None:
        """Compare the memory and the picture of a start; what ALE counts; and the lives."""
        self._compare(when)
        frames, lives = self._ale.getEpisodeFrameNumber(), self._ale.lives()
        if self.machine["frames"][0] != frames:
            self._differ(f"{self.machine['frames'][0]} frames of {when} are counted, not {frames}")
        if self.game.cartridge.is_scored and self.machine["lives"][0] != lives:
            self._differ(f"{self.machine['lives'][0]} lives after {when}, not {lives}")

    def _compare_score(self, reward: int, when: str) -> None:
        """Compare what a frame paid and came to."""
        theirs = {"reward": reward, "lives": self._ale.lives(), "is_over": self._ale.game_over()}
        self.result.rewards += reward != 0
        self.result.ends += theirs["is_over"]
        for name, value in theirs.items():
            ours = self.machine[name][0]
            if ours != value:
                self._differ(f"{name} is {ours}, not {int(value)}, after {when}")

    def _differ(self, text: str) -> None:
        self._note_frame()
        self.result.differences += 1
        self.result.difference = self.result.difference or text

    def _note_frame(self) -> None:
        """Note the frame of the first difference."""
        if self.result.differs_at is None:
            self.result.differs_at = self.result.frames

    def _compare(self, when: str, *, with_picture: bool = True) -> None:
        result, memory, machine = self.result, self._memory(), self.machine[0]
        if not np.array_equal(machine["ram"], memory):
            addresses = np.flatnonzero(machine["ram"] != memory)
            listed = ", ".join(f"{MEMORY + address:02X}" for address in addresses[:5].tolist())
            self._differ(f"memory at {listed} after {when}")
        if not with_picture:
            return
        result.pictures += 1
        picture = machine["picture"][: self._rows * WIDTH].reshape(self._rows, WIDTH)
        theirs = self._ale.getScreen()
        if not np.array_equal(picture, theirs):
            wrong = np.argwhere(picture != theirs)
            self._note_frame()
            result.wrong_pictures += 1
            text = f"{number_of(len(wrong), 'pixel')} of {when}, the first in row {wrong[0, 0]}"
            result.picture_difference = result.picture_difference or text
