"""What a picture shows of older frames: measured on ALE, and in the games that show it.

ALE draws into two pictures by turns. A frame that ends early, or that ALE leaves in the middle,
shows below its end what is still there. The rules are told in ``docs/emulator.md``.
"""

from __future__ import annotations

import itertools

import ale_py
import ale_start
import numpy as np
import pytest
from machines import short_and_long
from programs import END_FRAME, NO_PADDLE, Pair, assemble, delay, lines, write_at

from pixelpong.atari.lockstep import STYLES, Lockstep
from pixelpong.atari.machine.compiled import load_game
from pixelpong.atari.machine.record import (
    DRAW_NOTHING,
    DRAW_PICTURE,
    FRAME_DONE,
    KEPT_SIZE,
    MOST_OLDER,
    PADDLE_TURN,
    ROWS,
    TOO_OLD,
    TOP,
    WIDTH,
)
from pixelpong.atari.machine.registers import CLOCKS, PLAYFIELD_DELAY

pytestmark = pytest.mark.slow

FULL = TOP + ROWS + 8  # lines
SHORT = ("qbert", "tic_tac_toe_3d")
MORE_SHORT = ("alien", "journey_escape", "krull", "trondead", "video_chess")
"""Games some of whose frames are short or left in the middle, in soak."""


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


class Frames:
    """ALE and our machine after the same state, frame by frame."""

    def __init__(self, pair: Pair, state: bytes) -> None:
        pair.run_ale(pair.state(END_FRAME))  # so that no frame is left in the middle
        pair.ale.restoreState(ale_py.ALEState(state))
        self.pair, self.number = pair, 0
        self.machine = ale_start.read_machine(state, pair.banked)
        self.machine["resistance"] = NO_PADDLE

    def play(self, draws: int) -> int:
        """Play a frame on both; return our machine's stop code."""
        self.pair.ale.act(0)
        self.machine["draws"] = draws
        self.number += 1
        return int(self.pair.play_frame(self.machine))

    def is_equal(self) -> bool:
        """Whether both show the same picture."""
        ours = self.machine["picture"][0, : ROWS * WIDTH].reshape(ROWS, WIDTH)
        return np.array_equal(ours, self.pair.ale.getScreen())


def many_frames(heights: list[int], cycles: int) -> bytes:
    """A program of frames that have so many lines, some cycles more, and each its own colour."""
    assert len(heights) <= 24
    # A frame's lines are at D0, read from behind.
    return b"".join(
        [
            assemble("INC zp F0; INC zp F0; LDA zp F0; STA zp 09; DEC zp F1; LDY zp F1"),
            assemble("LDX aby 00D0; STA zp 02; DEX; BNE rel FB"),
            delay(cycles),
            END_FRAME,
            assemble("JMP abs 0080"),
        ]
    )


def frames_of(pair: Pair, heights: list[int], cycles: int) -> Frames:
    """Two frames that draw the whole picture, then frames of these heights."""
    program = many_frames(heights, cycles)
    every = [FULL, FULL, *heights]
    memory = bytearray(128)
    memory[: len(program)] = program
    memory[0x50 : 0x50 + len(every)] = every[::-1]
    memory[0x70], memory[0x71] = 0x10, len(every)
    return Frames(pair, pair.state(bytes(memory), pair.prepare()))


def play_heights(pair: Pair, heights: list[int], cycles: int, draws: list[int]) -> int:
    """Play frames of these heights; what is drawn must be equal. How many were."""
    frames, drawn = frames_of(pair, heights, cycles), 0
    for kind in (DRAW_NOTHING, DRAW_NOTHING, *draws):
        stop = frames.play(kind)
        if stop == TOO_OLD:
            assert frames.machine["older"].max() > MOST_OLDER
            break
        assert stop == FRAME_DONE
        if kind == DRAW_PICTURE:
            assert frames.is_equal(), (heights, cycles, frames.number)
            drawn += 1
    return drawn


@pytest.mark.parametrize(("count", "seed"), short_and_long((150, 1), (20_000, 2)))
def test_a_short_frame_shows_the_frame_before_the_last_below_its_end(pair, count, seed):
    """Also if that was short; and if only some of the frames are drawn."""
    rng, drawn = np.random.default_rng(seed), 0
    for _ in range(count):
        heights = rng.integers(TOP - 4, FULL, 20)
        heights[rng.random(20) < 0.4] = FULL
        draws = rng.choice([DRAW_NOTHING, DRAW_PICTURE], 20, p=(0.3, 0.7))
        drawn += play_heights(pair, heights.tolist(), int(rng.integers(20, 70)), draws.tolist())
    assert drawn > 8 * count


def test_a_picture_of_too_many_frames_stops_until_a_frame_draws_all_of_it(pair):
    heights = [200, FULL, 180, FULL, 160, FULL, 140, FULL, FULL, FULL, 100]
    frames = frames_of(pair, heights, 30)
    stops = [frames.play(DRAW_NOTHING) for _ in range(2 + 6)]
    assert stops == [FRAME_DONE] * 8
    assert frames.play(DRAW_PICTURE) == TOO_OLD
    for kind in (DRAW_PICTURE, DRAW_PICTURE, DRAW_NOTHING, DRAW_PICTURE):
        assert frames.play(kind) == FRAME_DONE
        assert kind == DRAW_NOTHING or frames.is_equal()


USES = (
    *(f"STA zp {register:02X}" for register in range(0x40)),
    *(f"LDA zp {register:02X}" for register in range(16)),
    "LDA abs 0284", "STA abs 0296", "STA zp F0", "NOP",  # which do not use it
)  # fmt: skip


SCENE = {"GRP0": 0xB1, "GRP1": 0x81, "NUSIZ0": 7, "PF1": 0x35, "ENABL": 2, "CTRLPF": 0x10}
START = 0x80 + 12  # of a program, behind what `Pair.case` puts in front of it


def unfinished(use: str, cycle: int, value: int) -> bytes:
    """A program of two frames that draw the picture, and one that uses the TIA, then waits."""
    full = assemble("INC zp F0; INC zp F0; LDA zp F0; STA zp 09") + lines(FULL) + END_FRAME
    full += assemble(f"JMP abs {START:04X}")
    first = assemble(f"DEC zp F1; BEQ rel {len(full):02X}") + full
    last = assemble(f"LDA imm 8C; STA zp 09; LDA imm {value:02X}")
    last += lines(100) + write_at(cycle, 0)[:-2] + assemble(use)
    return first + last + assemble(f"JMP abs {START + len(first + last):04X}")


def test_an_unfinished_frame_shows_what_was_drawn_up_to_its_last_use_of_the_tia(pair):
    """Each register, written and read, with its delay, whether a write changes it or not."""
    delays = {}
    cycles = (25, 30, 35, 40)
    for use, cycle, value in itertools.product(USES, cycles, (0x8C, 0)):
        column = 3 * cycle - 68
        positions = [(column - by) % WIDTH for by in (10, 50, 0, 0, 4)]
        program = unfinished(use, cycle, value)
        memory = program + bytes(0x70 - 12 - len(program)) + bytes([0x10, 3])
        frames = Frames(pair, pair.case(memory, SCENE, position=positions))
        for kind in (DRAW_NOTHING, DRAW_NOTHING, DRAW_PICTURE, DRAW_NOTHING, DRAW_PICTURE):
            assert frames.play(kind) == FRAME_DONE
            assert kind == DRAW_NOTHING or frames.is_equal(), (use, cycle, value, frames.number)
        assert frames.machine["begun"] > 0
        drew_to = int(frames.machine["drew_to"][0, MOST_OLDER + 1])  # the third, on its side
        delays.setdefault(use, set()).add((drew_to - 3 * cycle) % CLOCKS)
    assert delays["STA zp 09"] == delays["LDA zp 00"] == {0}
    assert delays["STA zp 0E"] == set(PLAYFIELD_DELAY)
    assert delays["STA zp 10"] == {11}
    assert delays["STA zp 12"] == {8}


@pytest.mark.parametrize(
    "name", [*SHORT, *(pytest.param(name, marks=pytest.mark.soak) for name in MORE_SHORT)]
)
def test_the_games_that_have_such_frames_show_what_ale_does(name):
    """Every picture."""
    lockstep = Lockstep(load_game(name), picture_every=1)
    for number, style in enumerate(STYLES):
        found = lockstep.run(style, 700, np.random.default_rng([4, number]))
    assert not found.difference
    assert not found.picture_difference
    assert found.pictures == found.frames + found.starts


def test_what_is_kept_is_all_that_a_picture_depends_on():
    """As environments do: a copy on another machine, whose record was full of rubbish."""
    game = load_game("qbert")
    lockstep, rng = Lockstep(game, picture_every=1), np.random.default_rng(0)
    assert game.cartridge.kept_size == KEPT_SIZE
    for _ in range(30):
        other = np.frombuffer(rng.bytes(lockstep.machine.nbytes), lockstep.machine.dtype).copy()
        other.view(np.uint8)[:KEPT_SIZE] = lockstep.machine.view(np.uint8)[:KEPT_SIZE]
        other["shades"], other["turn"], other["is_over"] = range(256), PADDLE_TURN, 0
        lockstep.machine = other
        lockstep.step(0, draws=True)
    assert not lockstep.result.difference
    assert not lockstep.result.picture_difference
