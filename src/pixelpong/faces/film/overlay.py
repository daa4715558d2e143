"""The pictures of a film: the game and, next to it, what the agent sees and decides.

All pictures use one palette, the console's 128 colours and some for the panel, so that a GIF can
keep them all. Nothing depends on colour alone: the chosen action has a mark, and each state of a
pixel has a shape.

    full square   appeared      moved the decision towards up
    stripe        stayed
    chequered     vanished      moved the decision towards down
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

Picture = Any  # a `PIL.Image.Image` of places in the palette; Pillow is an extra

_SHADES, _LEVELS = 16, 4
PAPER = 128  # the panel's background; the console's colours come before it
INK = PAPER + _SHADES - 1  # the colour of text, which is smoothed with the shades between
_BAR, _LINE, _DIM = PAPER + 2, PAPER + 5, PAPER + 11
_PAPER_COLOUR, _INK_COLOUR = "#111318", "#f0f2f6"

# Places of the legend's colours in the palette.
PIXELS = {APPEARED: INK + 1, STAYED: INK + 2, VANISHED: INK + 3}
ACTIONS = {STAY: INK + 4, UP: INK + 5, DOWN: INK + 6}
_MOVED_UP, _MOVED_DOWN = INK + 7, INK + 7 + _LEVELS

_TITLE, _HEIGHT, _WIDTH = 14, 224, 184
_BARS, _VALUE, _PICTURES, _SEEN, _MOVED = 53, 89, 116, 8, 96
_LEFT, _LENGTH = 40, 112


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
    """Draws the game with a title above it and the panel on the right.

    Lengths are in units of `scale` pixels, but at least 2, so that the text can be read.
    """

    def __init__(self, chosen: ChosenReplay, scale: int) -> None:
        """Lay it out, and draw what is the same in every picture."""
        from PIL import Image

        self._scale, self._unit = scale, max(scale, 2)
        self.size = (160 * scale + _WIDTH * self._unit, _HEIGHT * self._unit)  # pixels, both even
        self.corner = (0, _TITLE * self._unit + 105 * (self._unit - scale))
        self._actions = chosen.agent.make_network().actions
        self._num_steps = len(chosen.replay)
        self._field, self._saliency = make_stamps(self._unit)
        self._picture = Image.new("P", self.size, PAPER)
        title, most = chosen.title, self.size[0] - 12 * self._unit
        while draw_text(title, 8 * self._unit, INK).width > most:
            title = title.rstrip("…")[:-1] + "…"
        self._picture.paste(draw_text(title, 8 * self._unit, INK), (6 * self._unit, 2 * self._unit))
        for text, x, y in (
            ("opponent", 8, 2.5), ("agent", 62, 2.5), ("step", 110, 2.5),
            ("probability of each action", 8, _BARS - 12),
            ("what the network sees", _SEEN, _PICTURES - 11),
            ("what moved the decision", _MOVED, _PICTURES - 11),
        ):  # fmt: skip
            self._write(text, x, y, slot=_DIM)
        for x in (_SEEN, _MOVED):
            self._fill(_LINE, x - 0.5, _PICTURES - 0.5, 81, 81)
        states = [it for it in PIXEL_NAMES if it != STAYED or chosen.agent.algorithm == "ppo"]
        self._explain({PIXEL_NAMES[state]: self._field[state] for state in states}, _SEEN)
        ways = {UP: self._saliency[_LEVELS], DOWN: self._saliency[2 * _LEVELS]}
        self._explain({f"for {ACTION_NAMES[way]}": stamp for way, stamp in ways.items()}, _MOVED)
        self._template = self._picture

    def draw(self, moment: Moment, explanation: Explanation) -> Picture:
        """The whole picture of a moment."""
        self._picture = self._template.copy()
        self._picture.paste(draw_game(moment, self._scale), self.corner)
        self._write(str(moment.points[0]), 8, 12.5, size=18)
        self._write(str(moment.points[1]), 62, 12.5, size=18)
        self._write(f"{moment.step:,} of {self._num_steps:,}", 110, 16.5, size=10)
        chances = zip(self._actions, explanation.probabilities.tolist(), strict=True)
        for row, (action, p) in enumerate(chances):
            y = _BARS + 11 * row
            if action == moment.action:
                self._write(">", 9, y)
            slot = INK if action == moment.action else _DIM
            self._draw_bar(y, ACTION_NAMES[action], slot, f"{p:.0%}")
            self._fill(ACTIONS[action], _LEFT, y, _LENGTH * p, 8)
        if explanation.value is not None:
            self._draw_bar(_VALUE, "value", _DIM, f"{explanation.value:+.2f}")
            middle = _LEFT + _LENGTH / 2
            reach = float(np.clip(explanation.value, -1, 1)) * _LENGTH / 2
            self._fill(_DIM, middle + min(reach, 0), _VALUE, abs(reach), 8)
            self._fill(INK, middle - 0.25, _VALUE - 1, 0.5, 10)
        self._paste(_tile(self._field[explanation.field]), _SEEN, _PICTURES)
        self._paste(_tile(self._saliency[grade(explanation.saliency)]), _MOVED, _PICTURES)
        return self._picture

    def _draw_bar(self, y: float, name: str, slot: int, number: str) -> None:
        """An empty bar, with its name on the left and its number on the right."""
        self._write(name, 17, y, slot=slot)
        self._fill(_BAR, _LEFT, y, _LENGTH, 8)
        width = draw_text(number, 7 * self._unit, INK).width / self._unit
        self._write(number, 176 - width, y)

    def _explain(self, stamps: dict[str, NDArray[np.uint8]], x: float) -> None:
        """Draw the legend below a picture: each stamp and its word."""
        for word, stamp in stamps.items():
            self._paste(np.tile(stamp, (4, 4)), x, _PICTURES + 84)
            x += 6.5 + self._write(word, x + 5, _PICTURES + 83, size=5, slot=_DIM)

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return 160 * self._scale + round(x * self._unit), round((_TITLE + y) * self._unit)

    def _write(self, text: str, x: float, y: float, size: float = 7, slot: int = INK) -> float:
        """Write a line of text that starts at `x`; return its length."""
        line = draw_text(text, size * self._unit, slot)
        self._picture.paste(line, self._at(x, y))
        return float(line.width / self._unit)

    def _fill(self, slot: int, x: float, y: float, width: float, height: float) -> None:
        left, top = self._at(x, y)
        right, bottom = left + round(width * self._unit), top + round(height * self._unit)
        self._picture.paste(slot, (left, top, right, bottom))

    def _paste(self, places: NDArray[np.uint8], x: float, y: float) -> None:
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


def make_stamps(unit: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """[4, k, k] of a pixel's states; [1 + 2 · levels, k, k] of saliency: none, up …, down …."""
    paper, full = np.full((unit, unit), PAPER), np.ones((unit, unit), np.bool_)
    chequered = np.indices((unit, unit)).sum(axis=0) % 2 == 0
    stripe = np.indices((unit, unit))[0] == unit // 2
    shapes = {APPEARED: full, STAYED: stripe, VANISHED: chequered}
    field = [np.where(shapes[state], PIXELS[state], PAPER) for state in sorted(shapes)]
    up = [np.where(full, _MOVED_UP + level, PAPER) for level in range(_LEVELS)]
    down = [np.where(chequered, _MOVED_DOWN + level, PAPER) for level in range(_LEVELS)]
    return np.array([paper, *field], np.uint8), np.array([paper, *up, *down], np.uint8)


def grade(saliency: NDArray[np.float64]) -> NDArray[np.intp]:
    """[80, 80] indices of the stamps of saliency, by the share of the largest."""
    largest = np.abs(saliency).max()
    level = np.rint(saliency * (_LEVELS / largest if largest else 0.0)).astype(np.intp)
    return np.where(level < 0, _LEVELS - level, level)
