"""The native emulator plays what ALE plays: every bit, in every form of playing.

The short part runs in ``make test``; the same over ten million frames is ``make soak ARGS="-k
native_exactness"``, which takes a quarter of an hour on a core of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from lockstep import Oracle, field_of, play_in_lockstep, styles
from machines import differences, short_and_long

from pixelpong.atari.machine import DRAW_FIELD, DRAW_NOTHING, DRAW_PICTURE
from pixelpong.env.native import NativeConsole, NativeGame, load_game
from pixelpong.env.rom import read_rom

DRAWS = {"nothing": DRAW_NOTHING, "field": DRAW_FIELD, "picture": DRAW_PICTURE}


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(scope="module")
def console() -> NativeConsole:
    return NativeConsole()


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> NativeGame:
    """The game compiled so that it skips nothing."""
    return NativeGame(read_rom(), tmp_path_factory.mktemp("code"), is_plain=True)


# Against ALE itself.

PLAYED = [
    (15_000, DRAW_PICTURE, 1, 0, 0), (20_000, DRAW_FIELD, 4, 0, 0), (12_000, DRAW_NOTHING, 4, 0, 0),
    # The picture is that of the frame in which a game ends, inside a step.
    (8_000, DRAW_PICTURE, 7, 20, 0), (8_000, DRAW_FIELD, 7, 20, 0), (8_000, DRAW_NOTHING, 7, 20, 0),
    # Nothing but the state counts: the record is overwritten, but for what ALE holds.
    (4_000, DRAW_PICTURE, (1, 5), 0, 7), (4_000, DRAW_FIELD, (1, 5), 0, 7),
    (4_000, DRAW_NOTHING, (1, 5), 0, 7),
]  # fmt: skip
"""Frames, what is drawn, frames a call, points ahead, calls between whole states."""

SOAK = [
    (DRAW_PICTURE, 1, 0, 0), (DRAW_PICTURE, 1, 0, 50), (DRAW_PICTURE, (2, 4), 0, 0),
    (DRAW_PICTURE, 4, 20, 0), (DRAW_PICTURE, (1, 9), 20, 31), (DRAW_FIELD, 4, 0, 0),
    (DRAW_FIELD, 1, 0, 0), (DRAW_FIELD, (2, 4), 18, 101), (DRAW_NOTHING, 4, 0, 0),
    (DRAW_NOTHING, (1, 30), 0, 17),
]  # fmt: skip
"""The same for hours: ten million frames."""


@pytest.mark.parametrize(
    ("seed", "frames", "draws", "skip", "lead", "read_every"),
    [
        *(pytest.param(5, *row, marks=pytest.mark.slow) for row in PLAYED[1:]),
        *short_and_long(
            (5, *PLAYED[0]), *((s, 250_000, *row) for row in SOAK for s in range(1000, 1004))
        ),
    ],
)
def test_every_frame_is_ales(oracle, console, seed, frames, draws, skip, lead, read_every):
    """Memory, points and ends in every call; the picture or the field; now and then all state."""
    done = play_in_lockstep(
        oracle, console, seed, frames, skip=skip, draws=draws, lead=lead, read_every=read_every
    )
    assert done.games >= (frames // 12_000 or lead > 0)
    assert done.points >= frames // 1000
    assert done.won or lead < 20
    longest = skip if isinstance(skip, int) else skip[1]
    assert not read_every or done.states >= frames // (longest * read_every)


# Against itself, without skipping.


def play_both(consoles: tuple, draws: tuple, seed: int, calls: int, skip: int) -> int:
    """Play two consoles, each with its own of `draws`; all that both drew and remember is equal.

    Returns:
        Games played.
    """
    rng, games, (first, _) = np.random.default_rng(seed), 0, consoles
    left, right = styles(rng, first.memory), styles(rng, first.memory)
    for each in consoles:
        each.reset()
    for number in range(calls):
        actions = bytes([next(left) << 4 | next(right)]) * skip
        done = [each.run(actions, what) for each, what in zip(consoles, draws, strict=True)]
        assert done[0] == done[1], number
        states = [each.get_state() for each in consoles]
        assert states[0].tobytes() == states[1].tobytes(), differences(*states)
        if draws[0] == draws[1] == DRAW_FIELD:
            assert np.array_equal(*map(field_of, consoles)), number
        elif draws[0] == draws[1] == DRAW_PICTURE:
            assert np.array_equal(*[each.picture for each in consoles]), number
        if done[0][1]:
            games += 1
            for each in consoles:
                each.reset()
    return games


PAIRS = [
    (0, "picture", "picture"), (0, "field", "picture"), (3, "field", "field"),
    (3, "nothing", "picture"), (4, "picture", "picture"),
]  # fmt: skip
"""The cartridge's game, what is drawn of the one that skips, and of the one that does not."""


@pytest.mark.parametrize(
    ("calls", "seed"), short_and_long((6_000, 7), *((250_000, seed) for seed in range(100, 104)))
)
@pytest.mark.parametrize(("mode", "draws", "draws_plain"), PAIRS)
def test_skipping_changes_nothing(plain, mode, draws, draws_plain, calls, seed):
    consoles = NativeConsole(mode), NativeConsole(mode, plain)
    drawn = DRAWS[draws], DRAWS[draws_plain]
    games = play_both(consoles, drawn, seed, calls, skip=4)
    games += play_both(consoles, drawn, seed + 1, calls, skip=1)
    assert mode or games


@pytest.mark.slow
def test_skipping_changes_nothing_in_the_cartridges_other_games(plain):
    """In some of them the missiles are seen. The games from 13 on need code that is not known."""
    for mode in (1, 2, *range(5, 13)):
        consoles = NativeConsole(mode), NativeConsole(mode, plain)
        play_both(consoles, (DRAW_PICTURE, DRAW_PICTURE), mode, 300, skip=2)


def test_where_the_record_lies_changes_nothing(console):
    """Nothing in it is aligned; compiled code must not expect it."""
    size = console.machine.nbytes
    memory = np.zeros(size + 8, np.uint8)
    for shift in (1, 2, 3, 5):
        console.reset()
        record = memory[shift : shift + size]
        record[:] = console.machine.view(np.uint8)
        for k in range(200):
            actions = bytes([k * k % 6]) * 4
            result = load_game().play_frames(record.ctypes.data, actions, 4, k % 3)
            console.run(actions, k % 3)
            assert result > 0
        assert record.tobytes() == console.machine.tobytes()
