"""Films of an agent's game, as MP4 or GIF files. No display is needed.

    pixelpong record RUN --overlay --out film.mp4

A GIF has the emulator's exact pixels; an MP4 is as close as H.264 can be. There is one film frame
for each decision of the agent, at the game's own speed. If video players cannot display that many
per second, only every second (third …) frame is used. The last frame stays for a second. PyAV
encodes a film in memory, about 5 MB for a thousand steps with the overlay.

All pictures use one palette, the console's 128 colours and some for the overlay, so that a GIF can
store them all. Nothing depends on colour alone: the chosen action has a mark, and each state of a
pixel has a shape (`make_stamps`).
"""

from __future__ import annotations

import functools
import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Moment
from pixelpong.atari.machine.palette import PALETTE
from pixelpong.errors import ConfigError
from pixelpong.faces.look.legend import ACTION_COLOURS, ACTION_NAMES, PIXEL_COLOURS, PIXEL_NAMES
from pixelpong.faces.look.reel import scale_saliency, steps_per_second
from pixelpong.items import DOWN, STAY, UP
from pixelpong.machine import require
from pixelpong.play.networks import APPEARED, STAYED, VANISHED, Explanation
from pixelpong.run.files import write_whole
from pixelpong.run.words import signed

Picture = Any  # a `PIL.Image.Image` of palette indices; Pillow is an extra

MAX_RATE = 50  # film frames per second; browsers display shorter frames of a GIF for 100 ms
# The codec and pixel format for each ending; every player knows them.
_CODECS = {".mp4": ("libx264", "yuv420p"), ".gif": ("gif", "pal8")}
_H264 = {
    # No frame refers to a later one, so the film starts at 0 in every player.
    "preset": "superfast", "crf": "18", "bf": "0", "g": "75",
    # Without these features for films of real scenes, which would take a quarter of the time.
    "x264-params": "aq-mode=0:subme=0:weightp=0:scenecut=0",
    # libav's default conversion of colours.
    "colorspace": "smpte170m", "color_primaries": "smpte170m", "color_trc": "smpte170m",
    "color_range": "tv",
}  # fmt: skip

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


def name_game(name: str, agent: Agent, seed: int, episode: int, *, is_greedy: bool = True) -> str:
    """Make the title of a film: the agent, the game and its rules."""
    mode, update = "greedy" if is_greedy else "sampled", agent.about.get("update", 0)
    return f"{name}, update {update}: {mode} episode {episode}, seed {seed}, {agent.protocol}"


def make_film(
    agent: Agent,
    play: Callable[..., Iterator[Moment]],  # `play_game` of the agent, with a seed and an index
    title: str,
    path: Path,  # the ending chooses the format; an existing file is replaced
    *,
    has_overlay: bool,
    scale: int,  # pixels of the film per pixel of the game; with the overlay at least 2
    speed: float,  # 1 is the game's own speed
    seconds: float | None,  # length of the film; None for the whole game
) -> dict[str, Any]:
    """Play a game and write it as a film; return the report as JSON."""
    if path.suffix.lower() not in _CODECS:
        raise ConfigError(f"The name of a film must end in .mp4 or .gif, not {path.name}.")
    require("Films need", "av", "PIL", extra="video")
    steps_shown = Fraction(speed).limit_denominator(100) * steps_per_second(agent.protocol)
    every = math.ceil(steps_shown / MAX_RATE)  # number of steps per film frame
    rate = steps_shown / every  # film frames per second
    draw = functools.partial(draw_game, scale=scale)
    if has_overlay:
        draw = functools.partial(draw_overlay, agent=agent, title=title, scale=max(scale, 2))
    moments = play(explains_every=every if has_overlay else 0)
    frames = _choose(moments, every, last_frames=max(1, round(rate)))
    limit = None if seconds is None else max(1, int(rate * Fraction(seconds)))
    film = _write(path, itertools.islice(frames, limit), draw, rate)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "title": title,
        "steps": film.last.step,
        "points": list(film.last.points),
        "is_cut": film.last.action is not None,  # whether the film ends before the game
        "frames": film.num_frames,
        "frames_per_second": float(rate),
        "seconds": float(film.num_frames / rate),
        "width": film.width,
        "height": film.height,
    }


def _choose(moments: Iterable[Moment], every: int, last_frames: int) -> Iterator[Moment]:
    """Yield the moment for each film frame; the one after the end comes `last_frames` times."""
    for moment in moments:
        if moment.action is None:
            yield from itertools.repeat(moment, last_frames)
        elif moment.step % every == 0:
            yield moment


class _Film(NamedTuple):
    """Facts about a film that was written."""

    num_frames: int
    width: int
    height: int
    last: Moment  # the moment of the last frame


def _write(
    path: Path, moments: Iterable[Moment], draw: Callable[[Moment], Picture], rate: Fraction
) -> _Film:
    """Draw and write a film with one frame for each moment."""
    import av

    buffer, ending, palette = io.BytesIO(), path.suffix.lower(), np.zeros((256, 4), np.uint8)
    colours = list_colours()  # fewer than 256; the last one is transparent, which GIF needs
    palette[: len(colours)] = np.insert(colours, 0, 255, axis=1)
    with av.open(
        buffer,
        "w",
        format=ending[1:],
        options={"movflags": "+faststart"} if ending == ".mp4" else {},  # plays while it loads
        io_open=lambda *_: io.BytesIO(buffer.getvalue()),  # to move the index to the front
    ) as container:
        codec, pixel_format = _CODECS[ending]
        stream: Any = container.add_stream(codec, rate=rate, options=_H264, pix_fmt=pixel_format)
        for number, moment in enumerate(moments):
            picture = draw(moment)
            if number == 0:
                stream.width, stream.height = picture.size
            content: Any = (np.asarray(picture), palette)
            frame = av.VideoFrame.from_ndarray(content, "pal8")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    write_whole(path, buffer.getvalue(), make_folder=True)
    width, height = picture.size
    return _Film(number + 1, width, height, moment)


def list_colours() -> NDArray[np.uint8]:
    """List the colours of the palette, [K, 3], as red, green and blue."""

    def read(colour: str) -> NDArray[np.float64]:
        return np.array([*bytes.fromhex(colour[1:])], np.float64)

    paper, ink = read("#111318"), read("#f0f2f6")
    states = [read(PIXEL_COLOURS[state]) for state in (STAYED, APPEARED, VANISHED)]
    up, down, stay = (read(ACTION_COLOURS[action]) for action in (UP, DOWN, STAY))
    shades = np.linspace(paper, ink, INK - PAPER + 1)
    ups = np.linspace((paper + up) / 2, up, _LEVELS)
    downs = np.linspace(down, (paper + down) / 2, _LEVELS)
    mixed = np.vstack([PALETTE[::2], shades, *states, ups, downs, stay])
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
    return picture.resize((160 * scale, 210 * scale), Image.Resampling.NEAREST)


def draw_overlay(moment: Moment, agent: Agent, title: str, scale: int) -> Picture:
    """Draw the game, with a title above it and the agent's view and decision to its right."""
    seen, sheet = moment.explanation, _Sheet(scale)
    assert seen is not None
    sheet.paste(draw_game(moment, scale), 0, TITLE)
    sheet.write_title(title)
    lost, won = moment.points
    for x, word, count in (
        (168, "opponent", lost), (222, "agent", won), (270, "step", moment.step),
    ):  # fmt: skip
        sheet.write(word, x, 16.5, slot=_DIM)
        sheet.write(f"{count:,}", x, 26.5, 18)
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
    return sheet.picture


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

    def __init__(self, scale: int) -> None:
        from PIL import Image, ImageDraw

        self.picture: Picture = Image.new("L", (344 * scale, (TITLE + 210) * scale), PAPER)
        self._pen, self._scale = ImageDraw.Draw(self.picture), scale

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
        size, width = 8, 332 * self._scale
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


@functools.cache
def _load_font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)
