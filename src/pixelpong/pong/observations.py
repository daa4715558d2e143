"""What environments show of Pong alone: the field, and what has changed in it."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.games.views import Arrays, Observation, Screens, View
from pixelpong.atari.steps.compiling import kernel_part
from pixelpong.atari.steps.intrinsics import lowest_bit
from pixelpong.atari.steps.stepping import make_step
from pixelpong.pong.field import DRAW_FIELD, FIELD_SIZE
from pixelpong.pong.preprocess import are_fields


class FieldView(NamedTuple):
    """The data for the observations "field" and "pixels"; `fields` changes."""

    fields: NDArray[np.uint64]  # [N, 2, 80, 2], the last two fields; `newest` says which is newer
    drawn: NDArray[np.uint64]  # [80, 2], the field that the console draws


@kernel_part
def _see_field(game, i, num_pictures, which, view):  # type: ignore[no-untyped-def]
    """Store the newest field."""
    game.newest = 1 - game.newest
    field, drawn = view.fields[i, game.newest], view.drawn
    for row in range(len(field)):
        field[row, 0], field[row, 1] = drawn[row, 0], drawn[row, 1]


@kernel_part
def _show_field(game, i, view, out):  # type: ignore[no-untyped-def]
    """Write a 1 for each pixel that is on, [80, 80]."""
    fields = view.fields[i]
    _write_signs(fields[game.newest], fields[:0], out)


@kernel_part
def _show_pixels(game, i, view, out):  # type: ignore[no-untyped-def]
    """Write the difference of two fields, [80, 80]; zeros at the first step of an episode."""
    fields, newest = view.fields[i], game.newest
    before = 1 - newest if game.steps > 0 else newest
    _write_signs(fields[newest], fields[before : before + 1], out)


@kernel_part
def _write_signs(now, before, out):  # type: ignore[no-untyped-def]
    """Write 1 for each pixel that is on, or ±1 for each change if `before` is [1, 80, 2]."""
    out[:] = 0
    for row in range(len(now)):
        for word in range(2):
            bits = now[row, word]
            changed = bits ^ before[0, row, word] if len(before) else bits
            while changed != 0:
                bit = lowest_bit(changed)
                out[row, 64 * word + bit] = 1 if bits >> np.uint64(bit) & np.uint64(1) else -1
                changed &= changed - np.uint64(1)


def _make_arrays(size: int, view: View) -> Arrays:
    """Make room for the last two fields of each game, [N, 2, 80, 2]."""
    return (np.zeros((size, 2, FIELD_SIZE, 2), np.uint64),)


def _make_view(view: View, screens: Screens) -> FieldView:
    (fields,) = screens.arrays
    return FieldView(fields, screens.drawn)


FIELD = Observation(
    "field",
    make_step(_see_field, _show_field),
    low=0,
    high=1,
    shape=lambda view: (FIELD_SIZE, FIELD_SIZE),
    dtype=np.uint8,
    make_view=_make_view,
    draws=DRAW_FIELD,
    make_arrays=_make_arrays,
    are_sound=lambda arrays: are_fields(*arrays),
)
PIXELS = dataclasses.replace(
    FIELD, name="pixels", step=make_step(_see_field, _show_pixels), low=-1, dtype=np.float32
)
OBSERVATIONS = {each.name: each for each in (PIXELS, FIELD)}
