"""The native emulator plays what ALE plays: every bit, in every form of playing.

The short part runs in ``make test``; the same over ten million frames is ``make soak ARGS="-k
native_exactness"``, which takes a quarter of an hour on a core of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from lockstep import Oracle, outcome, play_in_lockstep, shows, styles
from machines import made_up_state, short_and_long

from pixelpong.atari.machine import DRAW_PICTURE
from pixelpong.env.native import NativeConsole, NativeGame, load_game
from pixelpong.env.rom import read_rom


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> NativeGame:
    """The game compiled so that it skips nothing."""
    return NativeGame(read_rom(), tmp_path_factory.mktemp("code"), is_plain=True)


# Against ALE itself.


PLAYED = [
    (20_000, (1, 1), 0, 0), (20_000, (4, 4), 0, 0),
    # The picture is that of the frame in which a game ends, inside a step.
    (20_000, (7, 7), 20, 0),
    # Nothing but the state counts: the record is overwritten, but for what ALE holds.
    (12_000, (1, 5), 0, 7),
]  # fmt: skip
"""Frames, frames a call, points ahead, calls between whole states."""

SOAK = [
    ((1, 1), 0, 0), ((1, 1), 0, 50), ((2, 4), 0, 0), ((4, 4), 0, 0), ((4, 4), 20, 0),
    ((2, 4), 18, 101), ((1, 9), 20, 31), ((1, 30), 0, 17),
]  # fmt: skip
"""The same for hours: ten million frames."""


@pytest.mark.parametrize(
    ("seed", "frames", "skip", "lead", "read_every"),
    [
        *(pytest.param(5, *row, marks=pytest.mark.slow) for row in PLAYED[1:]),
        *short_and_long(
            (5, *PLAYED[0]), *((s, 250_000, *row) for row in SOAK for s in range(1000, 1005))
        ),
    ],
)
def test_every_frame_is_ales(seed, frames, skip, lead, read_every):
    """Memory, points and ends in every call; the picture or the field; now and then all state."""
    done = play_in_lockstep(
        Oracle(), NativeConsole(), seed, frames, skip=skip, lead=lead, read_every=read_every
    )
    assert done["games"] >= 1
    assert done["points"] >= frames // 1000
    assert done["won"] or lead < 20
    assert not read_every or done["states"] >= frames // (skip[1] * read_every)


# Against itself, without skipping.


def play_both(skips: NativeConsole, plain: NativeConsole, actions: bytes, draws: int) -> list:
    """Play two consoles; what both pay, remember and show is equal. What that was, if played."""
    ours, wanted = outcome(skips, actions, draws), outcome(plain, actions, DRAW_PICTURE)
    # What is skipped may have been all that it would have stopped at: reads without effect.
    assert ours == wanted or len(wanted) == 1
    if len(wanted) == 1:
        return []
    (_, _, frames), _ = wanted
    assert frames == 0 or shows(skips, draws, plain.picture)
    return list(wanted[0])


@pytest.mark.parametrize(
    ("mode", "calls", "seed"),
    [
        # In some of the others the missiles are seen. Those from 13 on need code that is not known.
        *(pytest.param(mode, 300, 7) for mode in (1, 2, *range(5, 13))),
        *(
            each
            for mode in (0, 3, 4)
            for each in short_and_long(
                (mode, 10_000, 7), *((mode, 400_000, seed) for seed in range(100, 106))
            )
        ),
    ],
)
def test_skipping_changes_nothing(plain, mode, calls, seed):
    """In the cartridge's games for one and for two, whatever is drawn."""
    rng, games = np.random.default_rng(seed), 0
    skips, plain = NativeConsole(mode), NativeConsole(mode, plain)
    left, right = styles(rng, skips.memory), styles(rng, skips.memory)
    for _ in range(calls):
        actions = bytes([next(left) << 4 | next(right)]) * int(rng.choice([1, 4]))
        _, is_over, _ = play_both(skips, plain, actions, int(rng.integers(3)))
        if is_over:
            games += 1
            skips.reset()
            plain.reset()
    assert mode or games


@pytest.mark.parametrize(("count", "seed"), short_and_long((4000, 3), (1_000_000, 4)))
def test_a_made_up_state_is_played_the_same_without_skipping(plain, count, seed):
    rng, played, shown = np.random.default_rng(seed), 0, 0
    skips, plain = NativeConsole(), NativeConsole(0, plain)
    good = skips.get_state()
    for number in range(count):
        state = made_up_state(rng)
        if number % 4:
            for name in ("pc", "s", "timer", "timer_shift", "timer_set"):
                state[name] = good[name]
        skips.set_state(state)
        plain.set_state(state)
        done = play_both(skips, plain, b"\2\3", number % 3)
        played += bool(done)
        shown += done[2:] == [2]
    assert played > count / 6
    assert shown > played / 2


def test_where_the_record_lies_changes_nothing():
    """Nothing in it is aligned; compiled code must not expect it."""
    console = NativeConsole()
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
