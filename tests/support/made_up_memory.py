"""Memories that no game has: what ALE says of points, lives and ends in them, and what we say.

Two bytes of a program, in a part of the memory that the rules of the game do not read, end the
frame at once. So both sides see the memory exactly as it was made up.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import ale_py
import numpy as np
from programs import assemble, changed_state, find_numbers

from pixelpong.atari.lockstep import MEMORY, Lockstep
from pixelpong.atari.machine.registers import VBLANK, VSYNC
from pixelpong.atari.machine.scoring import Scoring

END = assemble("STA zp 00")  # the end of VSYNC, and so of the frame
LONGEST = 120  # frames of a game that is made up
# ale-py 0.12.1 saves numbers of this game's score as truth values, and loads them as numbers. So
# its memory is poked, and the program plays the frame.
NOT_RESTORED = ("miniature_golf",)
STONES = 15  # that each side has on a board with stones of two sides
HIGHEST_BCD = 0x99


class Asked(Lockstep):
    """A game on both sides, in memories that are made up."""

    def __init__(self, game) -> None:
        super().__init__(game)
        scoring = game.cartridge.scoring
        used = {*read_bytes(scoring, "x"), *scoring.board}
        free = [k for k in range(2, MEMORY - 2) if not {k, k + 1} & used]
        self.at = free[len(free) // 2]

    def ask(self, memory: bytes, extra: bytes) -> None:
        """Compare a frame after which the console's and the cartridge's memory are these."""
        if self.game.cartridge.name in NOT_RESTORED:
            for address in read_bytes(self.game.cartridge.scoring, "x"):
                self.poke(address, memory[address])
            self.step(0, draws=False)
            return
        memory = memory[: self.at] + END + memory[self.at + 2 :]
        data, pc = self._ale.cloneState().serialize(), 0x80 + self.at
        places = find_numbers(data)
        (frame_start,) = struct.unpack_from("<i", data, places["frame_start"])
        state = changed_state(data, places, memory, pc=pc, a=0, vsync=2, vsync_end=frame_start)
        if extra:
            assert state.count(packed(self.machine["extra_ram"][0])) == 1
            state = state.replace(packed(self.machine["extra_ram"][0]), packed(extra))
        self._ale.restoreState(ale_py.ALEState(state))
        machine = self.machine
        machine["ram"], machine["pc"], machine["a"] = list(memory), pc, 0
        machine["tia"][0, VSYNC], machine["vsync_end"], machine["begun"] = 2, -1, 0
        machine["tia"][0, VBLANK] = 0
        if extra:
            machine["extra_ram"] = list(extra)
        self.step(0, draws=False)

    def play_made_up(self, count: int, rng: np.random.Generator) -> None:
        """Ask about memories, in games of some frames, until there is a difference."""
        memories, length = make_up(self, rng), 0
        for _ in range(count):
            self.ask(*next(memories))
            length += 1
            if self.result.differences:
                return
            if self._ale.game_over() or length == LONGEST or rng.random() < 0.005:
                self.restart()
                memories, length = make_up(self, rng), 0


def packed(memory) -> bytes:
    """Memory as ALE's state has it."""
    return np.frombuffer(bytes(memory), np.uint8).astype("<i4").tobytes()


def read_bytes(scoring: Scoring, kind: str) -> list[int]:
    """The addresses that rules read, in the console's memory (``x``) or the cartridge's (``c``)."""
    found = re.findall(rf"\b{kind}([89A-F][0-9A-F])\b", " ".join(scoring.rules.values()))
    return sorted({int(address, 16) & 127 for address in found})


def conditions(scoring: Scoring) -> list[tuple[int, int]]:
    """Bytes and the values of them with which a comparison in the rules is true."""
    text, found = " ".join(scoring.rules.values()), []
    for shift, address, number in re.findall(
        r"(hi\(|)(?:lo\()?x([0-9A-F]{2})\)?(?: & \w+)? == (0x[0-9A-F]+|\d+)", text
    ):
        value = int(number, 0) << (4 if shift else 0)
        found.append((int(address, 16) & 127, value & 255))
    for address, bits in re.findall(r"x([0-9A-F]{2}) & (0x[48]0)\b", text):
        found.append((int(address, 16) & 127, int(bits, 0)))
    return found


def make_up(asked: Asked, rng: np.random.Generator) -> Iterator[tuple[bytes, bytes]]:
    """Memories that follow each other in a game: mostly what the rules read is changed."""
    scoring = asked.game.cartridge.scoring
    text = " ".join(scoring.rules.values())
    numbers = [int(each, 0) & 255 for each in re.findall(r"\b(0x[0-9A-F]+|\d+)\b", text)]
    pool = [*{each + by & 255 for each in numbers for by in (-1, 0, 1)}, 0, 1, 9, 16, 153, 255]
    goals = conditions(scoring)
    memory, extra = (asked.machine[name][0].copy() for name in ("ram", "extra_ram"))
    parts = [(memory, read_bytes(scoring, "x")), (extra, read_bytes(scoring, "c"))]
    held = {k: int(rng.choice((0, rng.choice(pool)))) for k in parts[0][1] if rng.random() < 0.25}
    while True:
        for part, used in parts:
            for _ in range(rng.integers(1, 5) if used else 0):
                at = rng.choice(used) if rng.random() < 0.85 else rng.integers(MEMORY)
                part[at] = (
                    rng.choice(pool),
                    rng.integers(10) * 16 + rng.integers(10),
                    part[at] + rng.choice((1, 255, 16, 240)) & 255,
                    rng.integers(256),
                )[rng.integers(4)]
            if used and rng.random() < 0.02:
                part[used] = rng.choice((rng.choice(pool), HIGHEST_BCD))
        if rng.random() < 0.3:
            for at, value in goals:
                if rng.random() < 0.8:
                    memory[at] = value
        if scoring.board and rng.random() < 0.4:
            cells = rng.choice(pool, int(rng.integers(1, 4)))
            memory[list(scoring.board)] = rng.choice(cells, len(scoring.board))
        for at, value in held.items():
            memory[at] = value
        if "total(board" in text and rng.random() < 0.5:
            deal_stones(memory, parts[0][1], list(scoring.board), rng)
        yield memory.tobytes(), extra.tobytes() if asked.game.cartridge.has_memory else b""


def deal_stones(memory, out: list[int], board: list[int], rng: np.random.Generator) -> None:
    """Put each side's stones, numbers below and above 0, on the board or into its byte beside."""
    cells = rng.permutation(board)
    for number, (sign, own) in enumerate(zip((-1, 1), out, strict=True)):
        left = STONES - int(rng.choice((0, 1, 7, 14, 15)))
        memory[own] = sign * (STONES - left) & 255
        memory[cells[number::2]] = 0
        memory[cells[number]] = sign * (left // 2) & 255
        memory[cells[number + 2]] = sign * (left - left // 2) & 255
