"""What the game looks like and what its actions do: seen on the emulator, not looked up."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pixelpong.doctor.records import FAILURE, OK, Check, trouble
from pixelpong.env import Emulator
from pixelpong.trajectory import ACTIONS, DOWN, STAY, UP

PALETTE = {"background": 34, "own paddle": 200, "opponent": 56, "ball": 14}
"""Palette indices in the field. Source: the emulator, ale-py 0.12.1 (`pixelpong.env.duel`)."""

FIRST_BACKGROUND = 228

_LEFT, _RIGHT = slice(16, 20), slice(140, 144)
"""Columns of the opponent's paddle and of one's own."""

_FIRST_ROW, _LAST_ROW = 34, 194
_WARM_FRAMES = 120
"""Until both paddles are seen."""


def look_at_colours(alone: Emulator) -> Check:
    """What has which palette index and colour in the field, while a point is played."""
    alone.reset()
    found: dict[str, dict[int, list[int]]] = {name: {} for name in PALETTE}
    for _ in range(300):
        alone.step(STAY, [0.0, 1.0])
        if alone.num_frames < 2:
            continue
        screen, frame = alone.screen, alone.frame()
        for name, where in _places(screen).items():
            rows, columns = where.nonzero()
            if len(rows):
                colour = frame[_FIRST_ROW + rows[0], columns[0]].tolist()
                found[name].setdefault(int(screen[_FIRST_ROW + rows[0], columns[0]]), colour)
    facts = {name: {str(k): v for k, v in seen.items()} for name, seen in found.items()}
    listed = ", ".join(
        f"{name} {'/'.join(f'{i} {tuple(rgb)}' for i, rgb in seen.items()) or 'not seen'}"
        for name, seen in found.items()
    )
    if any(list(found[name]) != [index] for name, index in PALETTE.items()):
        wanted = "palette indices " + ", ".join(f"{n} {i}" for n, i in PALETTE.items())
        advice = "take the versions of constraints.txt: the network knows these alone"
        return trouble(FAILURE, "colours", wanted, listed, advice, facts=facts)
    return Check("colours", OK, listed, facts)


def _places(screen: NDArray[np.uint8]) -> dict[str, NDArray[np.bool_]]:
    """[160, 160] bool for each thing in the field: found by where it is, not by its colour."""
    field = screen[_FIRST_ROW:_LAST_ROW]
    background = np.bincount(field.ravel(), minlength=256).argmax()
    drawn = field != background
    left, right, rest = (np.zeros_like(drawn) for _ in range(3))
    left[:, _LEFT], right[:, _RIGHT] = drawn[:, _LEFT], drawn[:, _RIGHT]
    rest[:, 30:130] = drawn[:, 30:130]  # the ball alone comes there
    rest[:2] = rest[-2:] = left[:2] = left[-2:] = right[:2] = right[-2:] = False  # the borders
    # A ball that passes a paddle's columns is of another colour than most there.
    for side in (left, right):
        values = field[side]
        if len(values):
            side &= field == np.bincount(values, minlength=256).argmax()
            if side.sum() < 16:
                side[:] = False
    return {"background": ~drawn, "own paddle": right, "opponent": left, "ball": rest}


def look_at_first_frame(alone: Emulator) -> Check:
    """The first frame after a reset has a palette of its own."""
    alone.reset()
    first = alone.screen[_FIRST_ROW:_LAST_ROW].copy()
    frame = alone.frame()[_FIRST_ROW:_LAST_ROW]
    index = int(np.bincount(first.ravel(), minlength=256).argmax())
    colour = frame[tuple(np.argwhere(first == index)[0])].tolist()
    facts = {"background": index, "colour": colour}
    if index != FIRST_BACKGROUND:
        wanted = f"background {FIRST_BACKGROUND} in the first frame"
        advice = "take the versions of constraints.txt"
        return trouble(
            FAILURE, "first_frame", wanted, f"{index} {tuple(colour)}", advice, facts=facts
        )
    text = f"a palette of its own: background {index} {tuple(colour)}"
    return Check("first_frame", OK, text, facts)


def look_at_actions(alone: Emulator, num_frames: int = 12) -> Check:
    """Which way the paddle goes when an action is held."""
    alone.reset()
    for _ in range(_WARM_FRAMES):
        alone.step(STAY, [0.0, 1.0])
    start, moved = alone.get_state(), {}
    for action in ACTIONS:
        rows = []
        for count in (1, num_frames):
            alone.set_state(start)
            for _ in range(count):
                alone.step(action, [0.0, 1.0])
            seen = own_rows(alone.screen)
            rows.append(float(seen.mean()) if len(seen) else math.nan)
        moved[action] = rows[1] - rows[0]
    names = {STAY: "stay", UP: "up", DOWN: "down"}
    facts = {names[action]: {"action": action, "rows": rows} for action, rows in moved.items()}
    listed = ", ".join(
        f"{action} {names[action]} ({rows:+.0f} rows in {num_frames} frames)".replace("-", "−")
        for action, rows in moved.items()
    )
    if not (abs(moved[STAY]) <= 2 and moved[UP] < -4 and moved[DOWN] > 4):
        advice = "take the versions of constraints.txt: with other actions nothing is learned"
        return trouble(FAILURE, "actions", "0 stay, 2 up, 3 down", listed, advice, facts=facts)
    return Check("actions", OK, listed, facts)


def own_rows(screen: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The rows of the frame in which one's own paddle is seen."""
    field = screen[_FIRST_ROW:_LAST_ROW, _RIGHT]
    return (field == PALETTE["own paddle"]).any(axis=1).nonzero()[0] + _FIRST_ROW
