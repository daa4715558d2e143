"""Films: a game of an agent as an MP4 or GIF file. No display is needed.

    pixelpong record RUN --overlay --out film.mp4

A GIF shows the emulator's pixels bit for bit, an MP4 as closely as H.264 can. There is a film frame
for each decision of the agent, at the game's own speed; if players cannot show that many frames per
second, only every second (third …) frame is used. The last one stays for a second. A film is
encoded in memory, with PyAV: about 5 MB for a thousand steps with the overlay.

All pictures use one palette, the console's 128 colours and some for the overlay, so that a GIF can
keep them all. Nothing depends on colour alone: the chosen action has a mark, and each state of a
pixel has a shape (`make_stamps`).
"""

from __future__ import annotations

import contextlib
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
from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES, PIXEL_COLOURS, PIXEL_NAMES
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import Protocol
from pixelpong.errors import ConfigError, expected
from pixelpong.faces.extras import require
from pixelpong.faces.look.reel import scale_saliency, steps_per_second
from pixelpong.items import DOWN, UP
from pixelpong.play.networks import APPEARED, STAYED, VANISHED
from pixelpong.run.files import write_whole
from pixelpong.run.words import signed

Picture = Any  # a `PIL.Image.Image` of places in the palette; Pillow is an extra

_SHADES, _LEVELS = 16, 4
PAPER = 128  # the overlay's background; the console's colours come before it
INK = PAPER + _SHADES - 1  # the colour of text, which is smoothed with the shades between
_BAR, _LINE, _DIM = PAPER + 2, PAPER + 5, PAPER + 11
_PAPER_COLOUR, _INK_COLOUR = "#111318", "#f0f2f6"
# Places of the legend's colours in the palette. Those of saliency, which come last, go from half to
# full colour; a level is 0 for none, positive for up, negative for down.
PIXELS = {state: INK + 1 + place for place, state in enumerate(PIXEL_COLOURS)}
ACTIONS = {action: INK + 4 + place for place, action in enumerate(ACTION_COLOURS)}
_MOVED, _STRONGEST = INK + 7, {UP: _LEVELS, DOWN: -_LEVELS}

# The layout of the overlay, in units.
_TITLE, _HEIGHT, _WIDTH = 14, 224, 184
_BARS, _BAR_LEFT, _BAR_LENGTH = 53, 40, 112
_PICTURES, _SEEN_LEFT, _MOVED_LEFT = 116, 8, 96


class Format(NamedTuple):
    """The encoding of one kind of film, in libav's terms; the most film frames per second."""

    codec: str
    pixels: str
    most: int
    codec_options: dict[str, str]
    container_options: dict[str, str]


_H264 = {
    # No frames that refer to later ones: the film starts at 0 in every player.
    "preset": "superfast", "crf": "18", "bf": "0",
    # These options help with films of real scenes, and would cost a quarter of the time here.
    "x264-params": "aq-mode=0:subme=0:weightp=0:scenecut=0",
    "colorspace": "bt709", "color_primaries": "bt709", "color_trc": "bt709", "color_range": "tv",
}  # fmt: skip

FORMATS = {  # by the file's ending, which is also the container's name
    # Every player knows H.264 in 4:2:0; with its index first, it plays while it loads.
    ".mp4": Format("libx264", "yuv420p", 60, _H264, {"movflags": "+faststart"}),
    # Browsers show frames shorter than 20 ms for 100 ms.
    ".gif": Format("gif", "pal8", 50, {}, {}),
}


def make_film(
    agent: Agent,
    play: Callable[..., Iterator[Moment]],  # `play_game` of the agent, with a seed and an index
    title: str,
    path: Path,  # its ending chooses the format; an existing file is replaced
    *,
    has_overlay: bool,
    scale: int,  # pixels of the film per pixel of the game
    speed: float,  # 1 is the game's own
    seconds: float | None,  # of film; None for the whole game
) -> dict[str, Any]:
    """Play a game and write it as a film; return the report, as JSON."""
    if path.suffix.lower() not in FORMATS:
        got = repr(path.suffix) if path.suffix else f"{path}, which has no ending"
        raise ConfigError(expected("a film's ending for --out", got, "use .mp4 or .gif"))
    _require_range("scale", scale, 1, 10)
    _require_range("speed", speed, 0.1, 60)
    _require_range("seconds", 1.0 if seconds is None else seconds, 0.1, 1e6)
    require("Films need", "av", "PIL", extra="video")
    rate, every = choose_pace(agent.protocol, speed, FORMATS[path.suffix.lower()].most)
    limit = None if seconds is None else max(1, int(rate * Fraction(seconds)))
    overlay = Overlay(agent, title, scale) if has_overlay else None
    size = overlay.size if overlay else (160 * scale, 210 * scale)
    moments = play(explains_every=every if overlay else 0)
    shown = (each for each in moments if each.step % every == 0 or each.action is None)
    frames = _draw(shown, overlay, scale, max(1, round(rate)))
    with write_film(path, size, rate) as add:
        for count, (moment, picture) in enumerate(itertools.islice(frames, limit), 1):  # noqa: B007
            add(picture)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "title": title,
        "steps": moment.step,
        "points": list(moment.points),
        "frames": count,
        "frames_per_second": float(rate),
        "seconds": float(count / rate),
        "width": size[0],
        "height": size[1],
    }


def describe_film(report: dict[str, Any]) -> str:
    """The report of `make_film` in two lines."""
    lost, won = report["points"]
    return (
        f"{report['file']}: {report['seconds']:.1f} s, {report['width']}×{report['height']}, "
        f"{report['frames_per_second']:.4g} frames a second, {report['bytes'] / 1e6:.2f} MB\n"
        f"{report['title']}; {report['steps']:,} steps; opponent {lost} : {won} agent"
    )


def choose_pace(protocol: Protocol, speed: float, most: int) -> tuple[Fraction, int]:
    """Film frames per second, of which `most` can be shown, and steps per film frame.

    >>> from pixelpong.config.protocols import PROTOCOLS
    >>> [choose_pace(PROTOCOLS["ALE/Pong-v5"], speed, most=50) for speed in (1, 4)]
    [(Fraction(15, 1), 1), (Fraction(30, 1), 2)]
    """
    steps = Fraction(speed).limit_denominator(100) * steps_per_second(protocol)
    every = math.ceil(steps / most)
    return steps / every, every


def _require_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also refuses NaN
        raise ConfigError(expected(f"{name} from {low:g} to {high:g}", value, "change it"))


def _draw(
    moments: Iterable[Moment], overlay: Overlay | None, scale: int, held: int
) -> Iterator[tuple[Moment, Picture]]:
    """The moments, each with its picture; the last of a game `held` times."""
    for moment in moments:
        picture = overlay.draw(moment) if overlay else draw_game(moment, scale)
        yield from itertools.repeat((moment, picture), held if moment.action is None else 1)


@contextlib.contextmanager
def write_film(
    path: Path, size: tuple[int, int], rate: Fraction
) -> Iterator[Callable[[Picture], None]]:
    """Yield a function that adds a picture of `size`, both even; write the file if none failed."""
    import av
    from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

    form, reformatter = FORMATS[path.suffix.lower()], VideoReformatter()
    palette = np.zeros((256, 4), np.uint8)  # the last colour is transparent, as GIF needs it
    colours = list_colours()
    palette[: len(colours)] = np.insert(colours, 0, 255, axis=1)
    numbers, film = itertools.count(), io.BytesIO()
    with av.open(
        film,
        "w",
        format=path.suffix.lower()[1:],
        options=form.container_options,
        io_open=lambda *_: io.BytesIO(film.getvalue()),  # to move the index to the front
    ) as container:
        stream: Any = container.add_stream(form.codec, rate=rate, options=form.codec_options)
        stream.width, stream.height = size
        stream.pix_fmt = form.pixels
        stream.codec_context.gop_size = max(1, round(5 * rate))

        def add(picture: Picture) -> None:
            pixels: Any = (np.asarray(picture), palette)
            frame = reformatter.reformat(
                av.VideoFrame.from_ndarray(pixels, "pal8"),
                format=form.pixels,
                dst_colorspace=Colorspace.ITU709,
                src_color_range=ColorRange.JPEG,
                dst_color_range=ColorRange.MPEG,
            )
            frame.pts, frame.time_base = next(numbers), 1 / rate
            container.mux(stream.encode(frame))

        yield add
        container.mux(stream.encode(None))
    write_whole(path, film.getvalue(), make_folder=True)


def list_colours() -> NDArray[np.uint8]:
    """[K, 3] red, green and blue of the palette."""
    mixed = [(_INK_COLOUR, share) for share in np.linspace(0, 1, _SHADES)]
    mixed += [(colour, 1.0) for colour in (*PIXEL_COLOURS.values(), *ACTION_COLOURS.values())]
    shares = np.linspace(0.5, 1, _LEVELS)
    mixed += [(ACTION_COLOURS[way], share) for way in _STRONGEST for share in shares]
    return np.vstack([PALETTE[::2], [_mix(*each) for each in mixed]]).astype(np.uint8)


def _mix(colour: str, share: float) -> NDArray[np.float64]:
    """Mix a colour with the paper's, by its share."""
    over, under = (np.array(list(bytes.fromhex(each[1:]))) for each in (colour, _PAPER_COLOUR))
    return np.rint(share * over + (1 - share) * under)


def make_stamps(unit: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """[4, k, k] of a pixel's states; [1 + 2 · levels, k, k] of saliency, negative from the end.

    full square   appeared      moved the decision towards up
    stripe        stayed
    chequered     vanished      moved the decision towards down
    """
    rows, columns = np.indices((unit, unit))
    full, chequered = rows >= 0, (rows + columns) % 2 == 0
    shapes = {APPEARED: full, STAYED: rows == unit // 2, VANISHED: chequered}
    field = [np.where(shapes[state], PIXELS[state], PAPER) for state in sorted(shapes)]
    up = [np.where(full, _MOVED + level, PAPER) for level in range(_LEVELS)]
    down = [np.where(chequered, _MOVED + _LEVELS + level, PAPER) for level in range(_LEVELS)]
    none = np.full((unit, unit), PAPER)
    return np.array([none, *field], np.uint8), np.array([none, *up, *down[::-1]], np.uint8)


def draw_game(moment: Moment, scale: int) -> Picture:
    """The game's picture, enlarged `scale` times."""
    from PIL import Image

    picture = Image.fromarray(moment.screen >> 1)
    return picture.resize((160 * scale, 210 * scale), Image.Resampling.NEAREST)


@functools.cache
def _load_font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


class Overlay:
    """Draws the game with a title above it and, on the right, what the agent sees and decides.

    Lengths are in units of `scale` pixels, but at least 2, so that the text can be read.
    """

    def __init__(self, agent: Agent, title: str, scale: int) -> None:
        """Lay it out, and draw what is the same in every picture."""
        from PIL import Image

        self._scale, self._unit = scale, max(scale, 2)
        self.size = (160 * scale + _WIDTH * self._unit, _HEIGHT * self._unit)  # pixels, both even
        self.corner = (0, _TITLE * self._unit + 105 * (self._unit - scale))
        self._actions = agent.make_network().actions
        self._field, self._saliency = make_stamps(self._unit)
        self._draw_on(Image.new("P", self.size, PAPER))
        x = 6 - 160 * scale / self._unit
        while self._length(title, 8) > _WIDTH - 6 - x:
            title = title.rstrip("…")[:-1] + "…"
        self._write(title, x, 2 - _TITLE, 8)
        for word, place, y in (
            ("opponent", 8, 2.5), ("agent", 62, 2.5), ("step", 110, 2.5),
            ("probability of each action", 8, _BARS - 12),
            ("what the network sees", _SEEN_LEFT, _PICTURES - 11),
            ("what moved the decision", _MOVED_LEFT, _PICTURES - 11),
        ):  # fmt: skip
            self._write(word, place, y, slot=_DIM)
        seen = {
            name: self._field[state]
            for state, name in PIXEL_NAMES.items()
            if state != STAYED or agent.algorithm == "ppo"
        }
        moved = {f"for {ACTION_NAMES[way]}": self._saliency[n] for way, n in _STRONGEST.items()}
        for left, legend in ((_SEEN_LEFT, seen), (_MOVED_LEFT, moved)):
            self._fill(_LINE, left - 0.5, _PICTURES - 0.5, 81, 81)
            x = float(left)
            for word, stamp in legend.items():
                self._stamp(np.tile(stamp, (4, 4, 1, 1)), x, _PICTURES + 84)
                self._write(word, x + 5, _PICTURES + 83, 5, _DIM)
                x += 6.5 + self._length(word, 5)
        self._template = self._picture

    def draw(self, moment: Moment) -> Picture:
        """The whole picture of a moment, which has an explanation."""
        explanation = moment.explanation
        assert explanation is not None
        self._draw_on(self._template.copy())
        self._picture.paste(draw_game(moment, self._scale), self.corner)
        self._write(str(moment.points[0]), 8, 12.5, 18)
        self._write(str(moment.points[1]), 62, 12.5, 18)
        self._write(f"{moment.step:,}", 110, 12.5, 18)
        chances = zip(self._actions, explanation.probabilities.tolist(), strict=True)
        bars = [(ACTION_NAMES[a], f"{p:.0%}", 0.0, p, ACTIONS[a]) for a, p in chances]
        if (value := explanation.value) is not None:
            share = (1 + float(np.clip(value, -1, 1))) / 2
            bars.append(("value", signed(value, 2), 0.5, share, _DIM))
        for row, (name, number, zero, share, slot) in enumerate(bars):
            y, start = _BARS + 12 * row, _BAR_LEFT + min(zero, share) * _BAR_LENGTH
            is_chosen = moment.action is not None and name == ACTION_NAMES[moment.action]
            self._write(">" * is_chosen, 9, y)
            self._write(name, 17, y, slot=INK if is_chosen else _DIM)
            self._fill(_BAR, _BAR_LEFT, y, _BAR_LENGTH, 8)
            self._fill(slot, start, y, abs(share - zero) * _BAR_LENGTH, 8)
            if zero:
                self._fill(INK, _BAR_LEFT + zero * _BAR_LENGTH - 0.25, y - 1, 0.5, 10)
            self._write(number, 176, y, anchor="ra")
        self._stamp(self._field[explanation.field], _SEEN_LEFT, _PICTURES)
        levels = np.rint(scale_saliency(explanation)[1].view(np.int8) * (_LEVELS / 127))
        self._stamp(self._saliency[levels.astype(np.intp)], _MOVED_LEFT, _PICTURES)
        return self._picture

    def _draw_on(self, picture: Picture) -> None:
        from PIL import ImageDraw

        self._picture, self._pen = picture, ImageDraw.Draw(picture)
        self._pen.fontmode = "L"  # smooth: between paper and ink, places in the palette are shades

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return 160 * self._scale + round(x * self._unit), round((_TITLE + y) * self._unit)

    def _length(self, text: str, size: int) -> float:
        return float(_load_font(size * self._unit).getlength(text) / self._unit)

    def _write(
        self, text: str, x: float, y: float, size: int = 7, slot: int = INK, anchor: str = "la"
    ) -> None:
        self._pen.text(self._at(x, y), text, slot, _load_font(size * self._unit), anchor)

    def _fill(self, slot: int, x: float, y: float, width: float, height: float) -> None:
        left, top = self._at(x, y)
        right, bottom = left + round(width * self._unit), top + round(height * self._unit)
        self._picture.paste(slot, (left, top, right, bottom))

    def _stamp(self, stamps: NDArray[np.uint8], x: float, y: float) -> None:
        """Draw [rows, columns, k, k], a stamp for each pixel."""
        from PIL import Image

        rows, columns, k, _ = stamps.shape
        places = stamps.transpose(0, 2, 1, 3).reshape(rows * k, columns * k)
        self._picture.paste(Image.fromarray(places), self._at(x, y))
