"""Films of an agent's game, as MP4 or GIF files. No display is needed.

    pixelpong record RUN --overlay --out film.mp4

A GIF has the emulator's exact pixels; an MP4 is as close as H.264 can be. There is one film frame
for each decision of the agent, at the game's own speed. If video players cannot display that many
per second, only every second (third …) frame is used. The last frame stays for a second. PyAV
encodes a film in memory, about 5 MB for a thousand steps with the overlay.

`pixelpong.faces.look.overlay` draws the pictures.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Moment
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.errors import ConfigError
from pixelpong.faces.look.overlay import Picture, draw_game, draw_overlay, list_colours
from pixelpong.faces.look.reel import steps_per_second
from pixelpong.machine import require
from pixelpong.run.files import write_whole

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


def name_game(
    name: str, agent: Agent, seed: int, episode: int, *, is_greedy: bool | None = None
) -> str:
    """Make the title of a film: the agent, the game and its rules; see `play_game`."""
    is_greedy = agent.protocol.plays_greedy if is_greedy is None else is_greedy
    mode, update = "greedy" if is_greedy else "sampled", agent.about.get("update", 0)
    return f"{name}, update {update}: {mode} episode {episode}, seed {seed}, {agent.protocol}"


def make_film(  # noqa: PLR0913 - the options of the command `record`
    agent: Agent,
    play: Callable[..., Iterator[Moment]],  # `play_game` of the agent, with a seed and an index
    title: str,
    path: Path,  # the ending chooses the format; an existing file is replaced
    *,
    has_overlay: bool,
    scale: int,  # pixels of the film per pixel of the game; with the overlay at least 2
    speed: float,  # 1 is the game's own speed
    seconds: float | None,  # length of the film; None for the whole game
    start: int | None = 0,  # the first step; None for the best part of that length
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
    limit = None if seconds is None else max(1, int(rate * Fraction(seconds)))
    if start is None:
        start = 0 if limit is None else find_best_part([it.score for it in play()], limit * every)
    start -= start % every
    whole = play(explains_every=every if has_overlay else 0)
    moments = (moment for moment in whole if moment.step >= start or moment.action is None)
    frames = _choose(moments, every, last_frames=max(1, round(rate)))
    colours = list_colours(cartridge(agent.protocol.game).palette)
    film = _write(path, itertools.islice(frames, limit), draw, rate, colours)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "title": title,
        "steps": film.last.step,
        "score": film.last.score,
        "points": list(film.last.points),
        "from_step": min(start, film.last.step),
        "is_cut": film.last.action is not None,  # whether the film ends before the game
        "frames": film.num_frames,
        "frames_per_second": float(rate),
        "seconds": float(film.num_frames / rate),
        "width": film.width,
        "height": film.height,
    }


def encode_film(
    agent: Agent, play: Callable[..., Iterator[Moment]], title: str, **how: Any
) -> bytes:
    """Play a game and return its film, an MP4; the options are those of `make_film`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        make_film(agent, play, title, path, **how)
        return path.read_bytes()


def find_best_part(scores: Sequence[int], num_steps: int) -> int:
    """Return the first step of the part of a game with the highest return.

    If parts one step apart are equally good, the middle one has what led to its points and what
    followed. `scores` are the returns so far at each step.

    >>> find_best_part([0, 0, 0, 1, 2, 2, 2, 1], num_steps=4)
    1
    """
    length = min(num_steps, len(scores) - 1)
    gains = np.subtract(scores[length:], scores[: len(scores) - length])
    first = int(gains.argmax())
    equal = int(np.append(gains[first:] != gains[first], True).argmax())
    return first + (equal - 1) // 2


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
    path: Path,
    moments: Iterable[Moment],
    draw: Callable[[Moment], Picture],
    rate: Fraction,
    colours: NDArray[np.uint8],  # fewer than 256; the last one is transparent, which GIF needs
) -> _Film:
    """Draw and write a film with one frame for each moment."""
    import av

    buffer, ending, palette = io.BytesIO(), path.suffix.lower(), np.zeros((256, 4), np.uint8)
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
