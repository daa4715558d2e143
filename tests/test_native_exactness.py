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


@pytest.mark.slow
def test_every_frame_has_ales_picture(oracle, console):
    done = play_in_lockstep(oracle, console, 1, 30_000, skip=1, draws=DRAW_PICTURE)
    assert done.games >= 2
    assert done.points >= 60


@pytest.mark.slow
@pytest.mark.parametrize(("draws", "frames"), [("field", 60_000), ("nothing", 30_000)])
def test_every_step_has_ales_field(oracle, console, draws, frames):
    """A game that nobody looks at has ALE's memory and points as well."""
    done = play_in_lockstep(oracle, console, 2, frames, draws=DRAWS[draws])
    assert done.games >= frames // 8_000


@pytest.mark.slow
@pytest.mark.parametrize("draws", DRAWS)
def test_games_are_won_and_lost_in_the_same_frame(oracle, console, draws):
    """And the picture is that of the frame in which they end, inside a step."""
    done = play_in_lockstep(oracle, console, 5, 12_000, skip=7, draws=DRAWS[draws], lead=20)
    assert done.won >= 1
    assert done.games > done.won


@pytest.mark.slow
@pytest.mark.parametrize("draws", DRAWS)
def test_the_whole_state_is_ales_and_nothing_but_the_state_counts(oracle, console, draws):
    """Every few calls the record is overwritten, and the console goes on from what ALE holds."""
    done = play_in_lockstep(
        oracle, console, 6, 6_000, skip=(1, 5), draws=DRAWS[draws], read_every=7
    )
    assert done.states > 250


# Against itself, without skipping.


def play_both(a: NativeConsole, b: NativeConsole, seed: int, calls: int, draws, skip: int) -> int:
    """Play two consoles, each with its own of `draws`; all that both drew and remember is equal.

    Returns:
        Games played.
    """
    rng, games = np.random.default_rng(seed), 0
    left, right = styles(rng, a.memory), styles(rng, a.memory)
    a.reset()
    b.reset()
    for number in range(calls):
        actions = bytes([next(left) << 4 | next(right)]) * skip
        done = [each.run(actions, what) for each, what in zip((a, b), draws, strict=True)]
        assert done[0] == done[1], number
        states = a.get_state(), b.get_state()
        assert states[0].tobytes() == states[1].tobytes(), differences(*states)
        if draws == (DRAW_PICTURE, DRAW_PICTURE):
            assert np.array_equal(a.picture, b.picture), number
        elif draws == (DRAW_FIELD, DRAW_FIELD):
            assert np.array_equal(field_of(a), field_of(b)), number
        if done[0][1]:
            games += 1
            a.reset()
            b.reset()
    return games


@pytest.mark.parametrize(
    ("calls", "seed"), short_and_long((8_000, 7), *((250_000, seed) for seed in range(100, 104)))
)
@pytest.mark.parametrize("mode", [0, 3, 4])
@pytest.mark.parametrize("draws", DRAWS)
def test_skipping_changes_nothing(plain, mode, draws, calls, seed):
    consoles, both = (NativeConsole(mode), NativeConsole(mode, plain)), (DRAWS[draws],) * 2
    play_both(*consoles, seed, calls, both, skip=4)
    games = play_both(*consoles, seed + 1, calls, both, skip=1)
    assert mode or games


@pytest.mark.slow
@pytest.mark.parametrize("mode", [1, 2, *range(5, 13)])
def test_skipping_changes_nothing_in_the_cartridges_other_games(plain, mode):
    """In some of them the missiles are seen. The games from 13 on need code that is not known."""
    play_both(NativeConsole(mode), NativeConsole(mode, plain), mode, 500, (2, 2), skip=2)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0, 3])
def test_what_is_drawn_changes_nothing(mode):
    for pair in ((DRAW_NOTHING, DRAW_PICTURE), (DRAW_FIELD, DRAW_PICTURE)):
        play_both(NativeConsole(mode), NativeConsole(mode), 9, 10_000, pair, skip=2)


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


# For hours.

SOAK = [
    (DRAW_PICTURE, 1, 0, 0), (DRAW_PICTURE, 1, 0, 50), (DRAW_PICTURE, (2, 4), 0, 0),
    (DRAW_PICTURE, 4, 20, 0), (DRAW_PICTURE, (1, 9), 20, 31), (DRAW_FIELD, 4, 0, 0),
    (DRAW_FIELD, 1, 0, 0), (DRAW_FIELD, (2, 4), 18, 101), (DRAW_NOTHING, 4, 0, 0),
    (DRAW_NOTHING, (1, 30), 0, 17),
]  # fmt: skip
"""What is drawn, frames a call, points ahead, calls between whole states."""


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1000, 1004))
@pytest.mark.parametrize(("draws", "skip", "lead", "read_every"), SOAK)
def test_ten_million_frames_are_ales(oracle, console, seed, draws, skip, lead, read_every):
    done = play_in_lockstep(
        oracle, console, seed, 250_000, skip=skip, draws=draws, lead=lead, read_every=read_every
    )
    assert done.games
