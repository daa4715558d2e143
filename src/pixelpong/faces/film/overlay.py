"""The pictures of a film: the game and, beside it, what the agent sees and thinks.

All pictures use one palette, the console's 128 colours and some for the panel, so that a GIF can
keep them all. Nothing depends on colour alone: the chosen action has an arrow and a frame, and each
state of a pixel has a shape.

    full square     appeared      moved the decision towards up
    stripes         stayed
    hollow square   vanished      moved the decision towards down

Covered: layout and drawing. Not covered: files (`pixelpong.faces.film.writers`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES, PIXEL_COLOURS, PIXEL_NAMES
from pixelpong.agent.network import APPEARED, STAYED, VANISHED, Explanation
from pixelpong.atari.palette import PALETTE
from pixelpong.items import DOWN, STAY, UP
from pixelpong.play.replay import Moment

Picture = Any
"""A `PIL.Image.Image` of places in the palette. Typed loosely: Pillow is an extra."""

_SHADES, _LEVELS = 16, 4
PAPER = 128
"""The first colour of the panel, its background; the console's colours come before it."""
INK = PAPER + _SHADES - 1
"""The colours of text, which is smoothed with the shades between."""
_LINE, _DIM = PAPER + 5, PAPER + 11
_PAPER_COLOUR, _INK_COLOUR = "#111318", "#f0f2f6"

PIXELS = {APPEARED: INK + 1, STAYED: INK + 2, VANISHED: INK + 3}
"""Places in the palette of the legend's colours of pixels."""
ACTIONS = {STAY: INK + 4, UP: INK + 5, DOWN: INK + 6}
"""Places in the palette of the legend's colours of actions."""
_MOVED_UP, _MOVED_DOWN = INK + 7, INK + 7 + _LEVELS

_TITLE, _HEIGHT, _WIDTH = 14, 224, 184
_HEADING, _BARS, _VALUE, _PICTURES = 36.5, 56, 92, 116
_BAR_LEFT, _BAR_WIDTH = 40, 112
_SEEN, _MOVED = 8, 96


def list_colours() -> NDArray[np.uint8]:
    """[K, 3] red, green and blue of the palette."""
    shades = [_mix(_INK_COLOUR, share) for share in np.linspace(0, 1, _SHADES)]
    pixels = [_mix(PIXEL_COLOURS[state]) for state in PIXELS]
    actions = [_mix(ACTION_COLOURS[action]) for action in ACTIONS]
    shares = np.linspace(0.5, 1, _LEVELS)
    moved = [_mix(ACTION_COLOURS[action], share) for action in (UP, DOWN) for share in shares]
    return np.vstack([PALETTE[::2], shades, pixels, actions, moved]).astype(np.uint8)


def _mix(colour: str, share: float = 1.0) -> NDArray[np.float64]:
    """Mix a colour with the paper's, by its share."""
    over, under = (np.array(list(bytes.fromhex(each[1:]))) for each in (colour, _PAPER_COLOUR))
    return np.rint(share * over + (1 - share) * under)


def draw_game(moment: Moment, scale: int) -> Picture:
    """The game's picture, enlarged `scale` times."""
    from PIL import Image

    picture = Image.fromarray(moment.screen >> 1)
    return picture.resize((160 * scale, 210 * scale), Image.Resampling.NEAREST)


class Panel:
    """Draws the title above the game's picture, and the panel on the right.

    Lengths are in units of `unit` pixels.

    Attributes:
        size: width and height of the whole picture, in pixels, both even.
        corner: column and row of the game's upper left corner, in pixels.
    """

    def __init__(self, chosen: ChosenReplay, scale: int) -> None:
        """Lay it out.

        Args:
            chosen: the replay to show.
            scale: pixels of the film per pixel of the game; the panel's scale is at least 2, so
                that it can be read.
        """
        unit = max(scale, 2)
        self.size = (160 * scale + _WIDTH * unit, _HEIGHT * unit)
        self.corner = (0, _TITLE * unit + 105 * (unit - scale))
        self._origin, self._unit = (160 * scale, _TITLE * unit), unit
        self._actions = chosen.agent.make_network().actions
        self._num_steps = len(chosen.replay)
        self._stamps = stamp_field(unit), stamp_saliency(unit)
        self._template = self._draw_template(chosen)

    def draw(self, moment: Moment, explanation: Explanation) -> Picture:
        """The whole picture of a moment, with a blank in place of the game."""
        picture = self._template.copy()
        pen = _Pen(picture, self._origin, self._unit)
        lost, won = moment.points
        pen.write(str(lost), 8, 12.5, size=18)
        pen.write(str(won), 62, 12.5, size=18)
        pen.write(f"{moment.step:,} of {self._num_steps:,}", 110, 16.5, size=10)
        for row, (action, p) in enumerate(
            zip(self._actions, explanation.probabilities.tolist(), strict=True)
        ):
            self._draw_probability(
                pen, _BARS + 11 * row, action, p, is_taken=action == moment.action
            )
        if explanation.value is not None:
            self._draw_value(pen, explanation.value)
        pen.paste(_tile(self._stamps[0][explanation.field]), _SEEN, _PICTURES)
        pen.paste(_tile(self._stamps[1][grade(explanation.saliency)]), _MOVED, _PICTURES)
        return picture

    def _draw_probability(
        self, pen: _Pen, y: float, action: int, p: float, *, is_taken: bool
    ) -> None:
        pen.write(ACTION_NAMES[action], 17, y, slot=INK if is_taken else _DIM)
        if is_taken:
            pen.point(8, y + 0.5, 7)
            pen.fill(INK, _BAR_LEFT - 1, y - 1, _BAR_WIDTH + 2, 10)
            pen.fill(PAPER, _BAR_LEFT - 0.5, y - 0.5, _BAR_WIDTH + 1, 9)
        pen.fill(PAPER + 2, _BAR_LEFT, y, _BAR_WIDTH, 8)
        pen.fill(ACTIONS[action], _BAR_LEFT, y, _BAR_WIDTH * p, 8)
        pen.write_number(f"{p:.0%}", y)

    def _draw_value(self, pen: _Pen, value: float) -> None:
        middle, half = _BAR_LEFT + _BAR_WIDTH / 2, _BAR_WIDTH / 2
        reach = half * min(max(value, -1.0), 1.0)
        pen.write("value", 17, _VALUE, slot=_DIM)
        pen.fill(PAPER + 2, _BAR_LEFT, _VALUE, _BAR_WIDTH, 8)
        pen.fill(_DIM, min(middle, middle + reach), _VALUE, abs(reach), 8)
        pen.fill(INK, middle - 0.25, _VALUE - 1, 0.5, 10)
        pen.write_number(f"{value:+.2f}", _VALUE)

    def _draw_template(self, chosen: ChosenReplay) -> Picture:
        """Draw what is the same in every picture."""
        from PIL import Image

        template = Image.new("P", self.size, PAPER)
        _Pen(template, (0, 0), self._unit).write_title(chosen.title)
        pen = _Pen(template, self._origin, self._unit)
        for text, x in (("opponent", 8), ("agent", 62), ("step", 110)):
            pen.write(text, x, 2.5, slot=_DIM)
        pen.write("probability of each action", 8, _HEADING, slot=_DIM)
        pen.write(f"by the agent of update {chosen.agent.about['update']:,}", 8, _HEADING + 9)
        for text, x in (("what the network sees", _SEEN), ("what moved the decision", _MOVED)):
            pen.write(text, x, _PICTURES - 11, slot=_DIM)
            pen.fill(_LINE, x - 0.5, _PICTURES - 0.5, 81, 81)
        field, saliency = self._stamps
        states = [
            state for state in PIXEL_NAMES if state != STAYED or chosen.agent.algorithm == "ppo"
        ]
        pen.explain({PIXEL_NAMES[state]: field[state] for state in states}, _SEEN)
        ways = {UP: saliency[_LEVELS], DOWN: saliency[2 * _LEVELS]}
        pen.explain({f"for {ACTION_NAMES[way]}": stamp for way, stamp in ways.items()}, _MOVED)
        return template


class _Pen:
    """Draws on a picture, in units from an origin."""

    def __init__(self, picture: Picture, origin: tuple[int, int], unit: int) -> None:
        self._picture, self._origin, self._unit = picture, origin, unit

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return self._origin[0] + round(x * self._unit), self._origin[1] + round(y * self._unit)

    def write(self, text: str, x: float, y: float, size: float = 7, slot: int = INK) -> float:
        """Write a line of text from `x` on; return its length."""
        line = draw_text(text, size * self._unit, slot)
        self._picture.paste(line, self._at(x, y))
        return float(line.width / self._unit)

    def write_number(self, text: str, y: float) -> None:
        """Write a number at the right end of a row."""
        self.write(text, 176 - draw_text(text, 7 * self._unit, INK).width / self._unit, y)

    def write_title(self, text: str) -> None:
        """Write the title, cut if it is too long."""
        size = 8 * self._unit
        while draw_text(text, size, INK).width > self._picture.width - 12 * self._unit:
            text = text.rstrip("…")[:-1] + "…"
        self.write(text, 6, 2, size=8)

    def explain(self, stamps: dict[str, NDArray[np.uint8]], x: float) -> None:
        """Draw the legend below one of the two pictures: each stamp and its word."""
        for word, stamp in stamps.items():
            self.paste(np.tile(stamp, (4, 4)), x, _PICTURES + 84)
            x += 6.5 + self.write(word, x + 5, _PICTURES + 83, size=5, slot=_DIM)

    def fill(self, slot: int, x: float, y: float, width: float, height: float) -> None:
        """A rectangle."""
        left, top = self._at(x, y)
        right, bottom = left + round(width * self._unit), top + round(height * self._unit)
        self._picture.paste(slot, (left, top, right, bottom))

    def point(self, x: float, y: float, size: float) -> None:
        """Draw a triangle that points to the right."""
        from PIL import ImageDraw

        corners = [self._at(x, y), self._at(x, y + size), self._at(x + 0.9 * size, y + size / 2)]
        ImageDraw.Draw(self._picture).polygon(corners, fill=INK)

    def paste(self, places: NDArray[np.uint8], x: float, y: float) -> None:
        """Paste pixels: [height, width] places in the palette."""
        from PIL import Image

        self._picture.paste(Image.fromarray(places), self._at(x, y))


@functools.lru_cache(maxsize=4096)
def draw_text(text: str, size: float, slot: int) -> Picture:
    """A line of text on paper; cached, since most lines are repeated."""
    from PIL import Image, ImageDraw, ImageFont

    font: Any = ImageFont.load_default(size)
    height = sum(font.getmetrics())
    line = Image.new("P", (max(1, math.ceil(font.getlength(text))), height), PAPER)
    pen = ImageDraw.Draw(line)
    pen.fontmode = "L"  # smooth: between paper and ink, places in the palette are shades
    pen.text((0, 0), text, slot, font)
    return line


def _tile(stamped: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[rows, columns, k, k] → [rows · k, columns · k]."""
    rows, columns, k, _ = stamped.shape
    return stamped.transpose(0, 2, 1, 3).reshape(rows * k, columns * k)


def stamp_field(unit: int) -> NDArray[np.uint8]:
    """[4, unit, unit]: the stamp of each state of a pixel; see the module's docstring."""
    stamps = np.full((4, unit, unit), PAPER, np.uint8)
    stamps[APPEARED] = PIXELS[APPEARED]
    stamps[STAYED, unit // 2] = PIXELS[STAYED]
    stamps[VANISHED] = _hollow(unit, PIXELS[VANISHED])
    return stamps


def stamp_saliency(unit: int) -> NDArray[np.uint8]:
    """[1 + 2 · levels, unit, unit]: nothing, more and more up, more and more down."""
    up = [np.full((unit, unit), _MOVED_UP + level) for level in range(_LEVELS)]
    down = [_hollow(unit, _MOVED_DOWN + level) for level in range(_LEVELS)]
    return np.array([np.full((unit, unit), PAPER), *up, *down], np.uint8)


def _hollow(unit: int, slot: int) -> NDArray[np.uint8]:
    """A hollow square; for two by two pixels, a diagonal."""
    if unit == 2:
        return np.where(np.eye(2, dtype=bool), slot, PAPER).astype(np.uint8)
    stamp = np.full((unit, unit), slot, np.uint8)
    stamp[1:-1, 1:-1] = PAPER
    return stamp


def grade(saliency: NDArray[np.float64]) -> NDArray[np.intp]:
    """[80, 80] places in `stamp_saliency`, by the share of the largest."""
    largest = np.abs(saliency).max()
    level = np.rint(saliency * (_LEVELS / largest if largest else 0.0)).astype(np.intp)
    return np.where(level < 0, _LEVELS - level, level)
