"""What a film shows beside the game: points, probabilities, value, what the network sees and why.

Pictures are made of slots, numbers that a film's palette gives a colour each; the panel has a few
of its own, so that a film with a panel still has fewer than 256 colours and a GIF keeps them all.
Nothing is told by colour alone: the action that was taken has an arrow and a frame, and what a
pixel is to the network is also a shape.

    full square     appeared                    moved the decision towards up
    stripes         stayed
    hollow square   vanished                    moved the decision towards down

Covered: laying out and drawing the panel. Not covered: the game's picture, files (`report.film`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.legend import ACTION_NAMES
from pixelpong.agent.network import APPEARED, STAYED, VANISHED, Explanation
from pixelpong.play.replay import Moment

FIRST_SLOT = 192
"""The slots from here on are the panel's, those below the game's."""

_SHADES = 16
_PAPER, _INK = (17, 19, 24), (240, 242, 246)
_OTHERS = [
    (72, 118, 190), (120, 190, 255),                                    # a bar, that of the action
    (250, 232, 110), (150, 158, 172), (205, 130, 255),                  # appeared, stayed, vanished
    (124, 74, 22), (168, 102, 28), (214, 130, 36), (255, 166, 60),      # towards up, ever more
    (30, 100, 132), (34, 130, 170), (40, 160, 206), (70, 196, 244),     # towards down
]  # fmt: skip

PAPER, INK = FIRST_SLOT, FIRST_SLOT + _SHADES - 1
_DIM, _LINE, _TRACK = PAPER + 11, PAPER + 5, PAPER + 2
_BAR, _TAKEN, _APPEARED, _STAYED, _VANISHED, _UP, _DOWN = INK + np.array([1, 2, 3, 4, 5, 6, 10])
_LEVELS = 4

Picture = NDArray[np.uint8]
"""[height, width] of slots."""


def list_colours() -> NDArray[np.uint8]:
    """[K, 3] red, green and blue of the slots from `FIRST_SLOT` on."""
    shade = np.linspace(0, 1, _SHADES)[:, None]
    ramp = np.rint((1 - shade) * _PAPER + shade * _INK)
    return np.vstack([ramp, _OTHERS]).astype(np.uint8)


class Panel:
    """Draws on a film's canvas, around the game's picture and never on it.

    All lengths are in units of `unit` pixels. The title is on top, the game below it on the left,
    the panel on the right.

    Attributes:
        shape: height and width of the canvas, in pixels, both even.
        corner: row and column of the game's upper left corner, in pixels.
    """

    def __init__(self, show: ChosenReplay, scale: int) -> None:
        """Lay it out.

        Args:
            show: what is shown.
            scale: pixels of the film for one of the game; below 2 the panel is larger than that,
                so that it can be read.
        """
        self._unit = unit = max(scale, 2)
        self._names = [ACTION_NAMES[action] for action in show.agent.make_network().actions]
        self._actions = show.agent.make_network().actions
        self._num_steps = len(show.replay)
        self._left = 160 * scale
        self.shape = (_HEIGHT * unit, 160 * scale + _WIDTH * unit)
        self.corner = (_TITLE * unit + (210 * unit - 210 * scale) // 2, 0)
        self._stamps = _stamp_field(unit), _stamp_saliency(unit)
        self._template = np.full(self.shape, PAPER, np.uint8)
        self._draw_title(show.title)
        self._draw_headings(show)
        self._draw_legends(sees_all=show.agent.algorithm == "ppo")

    def draw(self, canvas: Picture, moment: Moment, explanation: Explanation) -> None:
        """Draw the panel of a moment.

        Args:
            canvas: of `shape`; changed, but for the game's picture.
            moment: what happened.
            explanation: what the agent saw and thought.
        """
        canvas[: _TITLE * self._unit] = self._template[: _TITLE * self._unit]
        canvas[:, self._left :] = self._template[:, self._left :]
        lost, won = moment.points
        self._write(canvas, str(lost), 8, 12.5, size=18)
        self._write(canvas, str(won), 62, 12.5, size=18)
        self._write(canvas, f"{moment.step:,} of {self._num_steps:,}", 110, 16.5, size=10)
        self._draw_probabilities(canvas, moment.action, explanation.probabilities)
        if explanation.value is not None:
            self._draw_value(canvas, explanation.value)
        self._place(canvas, _tile(self._stamps[0][explanation.field]), 8, _PICTURES)
        saliency = self._stamps[1][_grade(explanation.saliency)]
        self._place(canvas, _tile(saliency), 96, _PICTURES)

    def _draw_probabilities(
        self, canvas: Picture, taken: int | None, probabilities: NDArray[np.float64]
    ) -> None:
        for row, (action, name) in enumerate(zip(self._actions, self._names, strict=True)):
            y, p = _BARS + 11 * row, float(probabilities[row])
            is_taken = action == taken
            self._write(canvas, name, 17, y, size=7, slot=INK if is_taken else _DIM)
            if is_taken:
                self._place(canvas, _arrow(7 * self._unit), 8, y + 0.5)
                self._fill(canvas, INK, _BAR_LEFT - 1, y - 1, _BAR_WIDTH + 2, 10)
                self._fill(canvas, PAPER, _BAR_LEFT - 0.5, y - 0.5, _BAR_WIDTH + 1, 9)
            self._fill(canvas, _TRACK, _BAR_LEFT, y, _BAR_WIDTH, 8)
            self._fill(canvas, _TAKEN if is_taken else _BAR, _BAR_LEFT, y, _BAR_WIDTH * p, 8)
            self._write(canvas, f"{p:.0%}", 176, y, size=7, is_right=True)

    def _draw_value(self, canvas: Picture, value: float) -> None:
        middle, half = _BAR_LEFT + _BAR_WIDTH / 2, _BAR_WIDTH / 2
        reach = half * min(max(value, -1.0), 1.0)
        self._write(canvas, "value", 17, _VALUE, size=7, slot=_DIM)
        self._fill(canvas, _TRACK, _BAR_LEFT, _VALUE, _BAR_WIDTH, 8)
        self._fill(canvas, _BAR, min(middle, middle + reach), _VALUE, abs(reach), 8)
        self._fill(canvas, INK, middle - 0.25, _VALUE - 1, 0.5, 10)
        self._write(canvas, f"{value:+.2f}", 176, _VALUE, size=7, is_right=True)

    def _draw_title(self, title: str) -> None:
        room = self.shape[1] - 12 * self._unit
        size = 8 * self._unit
        while _length(title, size) > room:
            title = title.rstrip("…")[:-1] + "…"
        _put(self._template, _text(title, size, INK), 6 * self._unit, 2 * self._unit)

    def _draw_headings(self, show: ChosenReplay) -> None:
        for text, x in (("opponent", 8), ("agent", 62), ("step", 110)):
            self._write(self._template, text, x, 2.5, size=7, slot=_DIM)
        self._write(self._template, "probability of each action", 8, _HEADING, size=7, slot=_DIM)
        update = show.agent.about["update"]
        note = f"by the agent that plays, of update {update:,}"
        if not show.is_own:
            note = f"by the nearest agent that is kept, of update {update:,}"
        self._write(self._template, note, 8, _HEADING + 9, size=7)
        for text, x in (("what the network sees", 8), ("what moved the decision", 96)):
            self._write(self._template, text, x, _PICTURES - 11, size=7, slot=_DIM)
            self._fill(self._template, _LINE, x - 0.5, _PICTURES - 0.5, 81, 81)

    def _draw_legends(self, *, sees_all: bool) -> None:
        field, saliency = self._stamps
        for state, text, x in ((APPEARED, "new", 8), (VANISHED, "gone", 34), (STAYED, "still", 63)):
            if state != STAYED or sees_all:
                self._explain(field[state], text, x)
        for level, text, x in ((_LEVELS, "to up", 96), (2 * _LEVELS, "to down", 134)):
            self._explain(saliency[level], text, x)

    def _explain(self, stamp: Picture, text: str, x: float) -> None:
        self._place(self._template, np.tile(stamp, (5, 5)), x, _PICTURES + 84)
        self._write(self._template, text, x + 7, _PICTURES + 83, size=7, slot=_DIM)

    def _write(
        self,
        canvas: Picture,
        text: str,
        x: float,
        y: float,
        *,
        size: float,
        slot: int = INK,
        is_right: bool = False,
    ) -> None:
        patch = _text(text, size * self._unit, slot)
        x -= patch.shape[1] / self._unit if is_right else 0
        self._place(canvas, patch, x, y)

    def _place(self, canvas: Picture, patch: Picture, x: float, y: float) -> None:
        column, row = self._left + round(x * self._unit), round((y + _TITLE) * self._unit)
        _put(canvas, patch, column, row)

    def _fill(
        self, canvas: Picture, slot: int, x: float, y: float, width: float, height: float
    ) -> None:
        top, left = round((y + _TITLE) * self._unit), self._left + round(x * self._unit)
        bottom, right = top + round(height * self._unit), left + round(width * self._unit)
        canvas[top:bottom, left:right] = slot


_TITLE, _HEIGHT, _WIDTH = 14, 224, 184
_HEADING, _BARS, _VALUE, _PICTURES = 36.5, 56, 92, 116
_BAR_LEFT, _BAR_WIDTH = 40, 112


def _put(canvas: Picture, patch: Picture, column: int, row: int) -> None:
    region = canvas[row : row + patch.shape[0], column : column + patch.shape[1]]
    region[:] = patch[: region.shape[0], : region.shape[1]]


def _tile(stamped: Picture) -> Picture:
    """[rows, columns, k, k] → [rows · k, columns · k]."""
    rows, columns, k, _ = stamped.shape
    return stamped.transpose(0, 2, 1, 3).reshape(rows * k, columns * k)


def _stamp_field(unit: int) -> Picture:
    """[4, unit, unit]: for each state of a pixel how it is drawn; the shapes are in the module."""
    stamps = np.full((4, unit, unit), PAPER, np.uint8)
    stamps[APPEARED] = _APPEARED
    stamps[STAYED, unit // 2] = _STAYED
    stamps[VANISHED] = _hollow(unit, _VANISHED)
    return stamps


def _stamp_saliency(unit: int) -> Picture:
    """[1 + 2 · levels, unit, unit]: nothing, towards up ever more, towards down ever more."""
    stamps = np.full((1 + 2 * _LEVELS, unit, unit), PAPER, np.uint8)
    for level in range(_LEVELS):
        stamps[1 + level] = _UP + level
        stamps[1 + _LEVELS + level] = _hollow(unit, _DOWN + level)
    return stamps


def _hollow(unit: int, slot: int) -> Picture:
    """A square without its inside; of two by two pixels, a diagonal."""
    if unit == 2:
        return np.where(np.eye(2, dtype=bool), slot, PAPER).astype(np.uint8)
    stamp = np.full((unit, unit), slot, np.uint8)
    stamp[1:-1, 1:-1] = PAPER
    return stamp


def _grade(saliency: NDArray[np.float64]) -> NDArray[np.intp]:
    """[80, 80] places in `_stamp_saliency`, as parts of the largest."""
    largest = np.abs(saliency).max()
    level = np.rint(saliency * (_LEVELS / largest if largest else 0.0)).astype(np.intp)
    return np.where(level < 0, _LEVELS - level, level)


@functools.cache
def _arrow(size: int) -> Picture:
    """A triangle that points to the right."""
    rows, columns = np.mgrid[:size, :size] + 0.5
    is_inside = columns <= 0.9 * size * (1 - np.abs(2 * rows / size - 1))
    return np.where(is_inside, INK, PAPER).astype(np.uint8)


@functools.lru_cache(maxsize=4096)
def _text(text: str, size: float, slot: int) -> Picture:
    """A line of text on paper."""
    from PIL import Image, ImageDraw

    font = _font(size)
    ascent, descent = font.getmetrics()
    image = Image.new("L", (max(1, math.ceil(font.getlength(text))), ascent + descent))
    ImageDraw.Draw(image).text((0, 0), text, 255, font)
    return (PAPER + np.rint(np.asarray(image) * ((slot - PAPER) / 255))).astype(np.uint8)


def _length(text: str, size: float) -> float:
    return float(_font(size).getlength(text))


@functools.cache
def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)
