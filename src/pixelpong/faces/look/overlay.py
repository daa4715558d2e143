"""The pictures of a film: a game, and beside it what the agent sees and how it decides.

All pictures use one palette, the console's 128 colours and some for the overlay, so that a GIF can
store them all. In Pong, nothing depends on colour alone: the chosen action has a mark, and each
state of a pixel has a shape (`make_stamps`).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Moment
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.config.protocols import PONG
from pixelpong.faces.look.legend import (
    ACTION_COLOURS,
    ACTION_NAMES,
    PIXEL_COLOURS,
    PIXEL_NAMES,
    colour_cells,
    name_actions,
)
from pixelpong.faces.look.reel import scale_saliency
from pixelpong.items import DOWN, STAY, UP
from pixelpong.play.networks import APPEARED, PLAYER, STAYED, VANISHED, Explanation
from pixelpong.run.words import signed

Picture = Any  # a `PIL.Image.Image` of palette indices; Pillow is an extra

# These are palette indices.
PAPER = 128  # the overlay's background; the console's colours come before it
INK = PAPER + 15  # the colour of text, which is smoothed with the shades in between
_BAR, _LINE, _DIM = PAPER + 2, PAPER + 5, PAPER + 11
# Stamp n has the colour INK + n. The first stamps are for the states of a pixel. Then come those
# for pixels that moved the decision up, from half to full colour, and down, from full to half
# colour.
_LEVELS = 4
_UP, _DOWN = VANISHED + _LEVELS, VANISHED + _LEVELS + 1  # stamps in full colour
ACTION_INDICES = {UP: INK + _UP, DOWN: INK + _DOWN, STAY: INK + _DOWN + _LEVELS}

TITLE = 14  # height of the title, in units of the overlay's layout


def list_colours(palette: str = "NTSC") -> NDArray[np.uint8]:
    """List the colours of a film, [K, 3], as red, green and blue, for the console's palette."""

    def read(colour: str) -> NDArray[np.float64]:
        return np.array([*bytes.fromhex(colour[1:])], np.float64)

    paper, ink = read("#111318"), read("#f0f2f6")
    states = [read(PIXEL_COLOURS[state]) for state in (STAYED, APPEARED, VANISHED)]
    up, down, stay = (read(ACTION_COLOURS[action]) for action in (UP, DOWN, STAY))
    shades = np.linspace(paper, ink, INK - PAPER + 1)
    ups = np.linspace((paper + up) / 2, up, _LEVELS)
    downs = np.linspace(down, (paper + down) / 2, _LEVELS)
    mixed = np.vstack([PALETTES[palette][::2], shades, *states, ups, downs, stay])
    return np.rint(mixed).astype(np.uint8)


def make_stamps(unit: int) -> NDArray[np.uint8]:
    """Make the stamps by number as palette indices, [stamps, unit, unit].

    full square   appeared      moved the decision towards up
    stripe        stayed
    chequered     vanished      moved the decision towards down
    """
    rows, columns = np.indices((unit, unit))
    full, stripe, chequered = rows >= 0, rows == unit // 2, (rows + columns) % 2 == 0
    states = ~full, stripe, full, chequered  # OFF, STAYED, APPEARED, VANISHED
    shapes = np.array([*states, *[full] * _LEVELS, *[chequered] * _LEVELS])
    colours = INK + np.arange(len(shapes))
    return np.where(shapes, colours[:, None, None], PAPER).astype(np.uint8)


def draw_game(moment: Moment, scale: int) -> Picture:
    """Draw the game's picture, enlarged `scale` times."""
    from PIL import Image

    picture = Image.fromarray(moment.screen >> 1)
    rows, columns = moment.screen.shape
    return picture.resize((columns * scale, rows * scale), Image.Resampling.NEAREST)


def draw_overlay(moment: Moment, agent: Agent, title: str, scale: int) -> Picture:
    """Draw the game, with a title above it and the agent's view and decision to its right."""
    seen, is_pong = moment.explanation, agent.protocol.game == PONG
    assert seen is not None
    sheet = _Sheet(344 if is_pong else 448, len(moment.screen), scale)
    sheet.paste(draw_game(moment, scale), 0, TITLE)
    sheet.write_title(title)
    lost, won = moment.points
    numbers = {"opponent": lost, "agent": won} if is_pong else {"score": moment.score}
    if moment.lives is not None:
        numbers["lives"] = moment.lives
    numbers["step"] = moment.step
    for x, (word, count) in zip((168, 222, 270), numbers.items(), strict=False):
        sheet.write(word, x, 16.5, slot=_DIM)
        sheet.write(f"{count:,}", x, 26.5, 18)
    (_draw_decision if is_pong else _draw_any_decision)(sheet, moment, seen, agent)
    return sheet.picture


def _draw_decision(sheet: _Sheet, moment: Moment, seen: Explanation, agent: Agent) -> None:
    """Draw what an agent sees of Pong and how it decides."""
    sheet.write("probability of each action", 168, 55, slot=_DIM)
    for row, bar in enumerate(_list_bars(agent, seen, moment.action)):
        y = 67 + 12 * row
        if bar.is_chosen:
            sheet.write(">", 169, y)
        sheet.write(bar.name, 177, y, slot=INK if bar.is_chosen else _DIM)
        sheet.fill(_BAR, 200, y, 112, 8)
        sheet.fill(bar.slot, 200 + 112 * bar.start, y, 112 * (bar.end - bar.start), 8)
        sheet.write(bar.number, 336, y, anchor="ra")
    levels = scale_saliency(seen, _LEVELS).astype(np.intp)
    moved = np.where(levels > 0, VANISHED + levels, levels)
    states = list(PIXEL_NAMES.items())
    if agent.algorithm != "ppo":  # REINFORCE sees only changes
        states = [(state, name) for state, name in states if state != STAYED]
    for x, word, stamps, legend in (
        (168, "what the network sees", seen.field, states),
        (256, "what moved the decision", moved, [(_UP, "for up"), (_DOWN, "for down")]),
    ):
        sheet.write(word, x, 119, slot=_DIM)
        sheet.fill(_LINE, x - 0.5, 129.5, 81, 81)
        sheet.stamp(stamps, x, 130)
        for index, (stamp, name) in enumerate(legend):
            sheet.stamp(np.full((4, 4), stamp), x + 29 * index, 214)
            sheet.write(name, x + 29 * index + 5, 213, 5, _DIM)


def _draw_any_decision(sheet: _Sheet, moment: Moment, seen: Explanation, agent: Agent) -> None:
    """Draw what an agent sees of a game other than Pong and how it decides."""
    names, chances = name_actions(agent.scene), seen.probabilities.tolist()
    best, step = int(seen.probabilities.argmax()), min(12.0, 176 / len(names))
    sheet.write("probability of each action", 344, 16.5, slot=_DIM)
    for number, (name, chance) in enumerate(zip(names, chances, strict=True)):
        y, is_chosen = 29 + step * number, number == moment.action
        if is_chosen:
            sheet.write(">", 343, y, 6)
        slot = INK if is_chosen else _DIM
        sheet.write(name, 349, y, 6, slot)
        sheet.fill(_BAR, 394, y + 0.5, 32, 6)
        sheet.fill(INK + _UP if number == best else _DIM, 394, y + 0.5, 32 * chance, 6)
        sheet.write(f"{chance:.0%}", 444, y, 6, slot, "ra")
    if seen.value is not None:
        value = signed(seen.value, 2).replace("−", "-")  # which the font has
        sheet.write(f"value {value}", 349, 31 + step * len(names), 6, _DIM)
    levels = scale_saliency(seen, _LEVELS).astype(np.intp)
    for x, word in (168, "what the network sees"), (256, "what moved the decision"):
        sheet.write(word, x, 55, slot=_DIM)
        sheet.fill(_LINE, x - 0.5, 65.5, 81, 106)
    assert agent.sight is not None, "an agent of such a game has it"
    slots = np.array([PAPER, *(colour >> 1 for colour in colour_cells(agent.sight))], np.uint8)
    sheet.tile(slots[seen.field % PLAYER], 168, 66)
    if (own := np.argwhere(seen.field >= PLAYER)).size:
        (top, left), (bottom, right) = own.min(axis=0), own.max(axis=0)
        sheet.frame(168 + left, 66 + top, right - left + 1, bottom - top + 1)
    sheet.stamp(np.where(levels > 0, VANISHED + levels, levels), 256, 66)
    sheet.frame(169, 176, 3, 3)
    sheet.write("the player" if agent.sight.player else "no player was found", 174, 174, 6, _DIM)
    for y, stamp, name in (174, _UP, f"for {names[best]}"), (183, _DOWN, "against it"):
        sheet.stamp(np.full((4, 4), stamp), 256, y + 1)
        sheet.write(name, 262, y, 6, _DIM)


class _Bar(NamedTuple):
    """A bar in the overlay; its ends are shares of the full width."""

    name: str
    number: str
    slot: int  # the palette index of its colour
    start: float
    end: float
    is_chosen: bool = False


def _list_bars(agent: Agent, seen: Explanation, chosen: int | None) -> list[_Bar]:
    """List the bars: the probability of each action, and the value if the agent has one."""
    bars = []
    actions = agent.make_network().actions
    for action, chance in zip(actions, seen.probabilities.tolist(), strict=True):
        name, slot = ACTION_NAMES[action], ACTION_INDICES[action]
        bars.append(_Bar(name, f"{chance:.0%}", slot, 0.0, chance, action == chosen))
    if seen.value is not None:
        low, high = sorted((0.5, (1 + float(np.clip(seen.value, -1, 1))) / 2))
        bars.append(_Bar("value", signed(seen.value, 2), _DIM, low, high))
    return bars


class _Sheet:
    """A picture to draw on; all lengths are in units of `scale` pixels."""

    def __init__(self, width: int, num_rows: int, scale: int) -> None:
        from PIL import Image, ImageDraw

        self._width, self._scale = width, scale
        self.picture: Picture = Image.new("L", self._at(width, TITLE + num_rows), PAPER)
        self._pen = ImageDraw.Draw(self.picture)

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return round(x * self._scale), round(y * self._scale)

    def paste(self, picture: Picture, x: float, y: float) -> None:
        """Paste a picture at this position."""
        self.picture.paste(picture, self._at(x, y))

    def write(
        self, text: str, x: float, y: float, size: int = 7, slot: int = INK, anchor: str = "la"
    ) -> None:
        """Write a line of text in a size and a colour of the palette."""
        self._pen.text(self._at(x, y), text, slot, _load_font(size * self._scale), anchor)

    def write_title(self, text: str) -> None:
        """Write a line of text above the game, smaller if it is long."""
        size, width = 8, (self._width - 12) * self._scale
        while size > 4 and _load_font(size * self._scale).getlength(text) > width:
            size -= 1
        self.write(text, 6, 2, size)

    def fill(self, slot: int, x: float, y: float, width: float, height: float) -> None:
        """Draw a rectangle in a colour of the palette."""
        left, top = self._at(x, y)
        num_columns, num_rows = self._at(width, height)
        self.picture.paste(slot, (left, top, left + num_columns, top + num_rows))

    def stamp(self, numbers: NDArray[Any], x: float, y: float) -> None:
        """Draw a stamp for each of the `numbers` [rows, columns]."""
        from PIL import Image

        tiles = make_stamps(self._scale)[numbers].swapaxes(1, 2)
        self.paste(Image.fromarray(tiles.reshape(len(numbers) * self._scale, -1)), x, y)

    def tile(self, slots: NDArray[np.uint8], x: float, y: float) -> None:
        """Draw a square of each of these colours [rows, columns]."""
        from PIL import Image

        size = slots.shape[1] * self._scale, slots.shape[0] * self._scale
        self.paste(Image.fromarray(slots).resize(size, Image.Resampling.NEAREST), x, y)

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a frame around a rectangle."""
        (left, top), (right, bottom) = self._at(x, y), self._at(x + width, y + height)
        self._pen.rectangle((left - 1, top - 1, right, bottom), outline=INK)


@functools.cache
def _load_font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)
