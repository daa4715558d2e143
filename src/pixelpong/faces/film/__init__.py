"""Films: a game of an agent as an MP4 or GIF file. No display is needed.

    pixelpong record RUN --overlay --out film.mp4

A GIF shows the emulator's pixels bit for bit, an MP4 as closely as H.264 can. There is a film frame
for each decision of the agent, at the game's own speed; if players cannot show that many frames per
second, only every second (third …) frame is used. The last one stays for a second. A film is
encoded in memory, with PyAV: about 5 MB for a thousand steps with the overlay.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.explain import explain
from pixelpong.config.protocols import Protocol
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.film.overlay import Panel, Picture, draw_game, list_colours
from pixelpong.play.replay import Moment
from pixelpong.run.files import write_whole

GAME_FRAMES_PER_SECOND = 60


class Format(NamedTuple):
    """The encoding of one kind of film, in libav's terms; the most film frames per second."""

    container: str
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

FORMATS = {  # by the file's ending
    # Every player knows H.264 in 4:2:0; with its index first, it plays while it loads.
    ".mp4": Format("mp4", "libx264", "yuv420p", 60, _H264, {"movflags": "+faststart"}),
    # Browsers show frames shorter than 20 ms for 100 ms.
    ".gif": Format("gif", "gif", "pal8", 50, {}, {}),
}


def make_film(
    chosen: ChosenReplay,
    path: Path,  # its ending chooses the format; an existing file is replaced
    *,
    has_overlay: bool,
    scale: int,  # pixels of the film per pixel of the game
    speed: float,  # 1 is the game's own
    seconds: float | None,  # of film; None for the whole game
    should_stop: Callable[[], bool],  # called at every film frame; True: `Interrupted`, no file
) -> dict[str, Any]:
    """Play a game again and write it as a film; return the report, as JSON."""
    if path.suffix.lower() not in FORMATS:
        got = repr(path.suffix) if path.suffix else f"{path}, which has no ending"
        raise ConfigError(expected("a film's ending for --out", got, "use .mp4 or .gif"))
    _require_range("scale", scale, 1, 10)
    _require_range("speed", speed, 0.1, 60)
    _require_range("seconds", 1.0 if seconds is None else seconds, 0.1, 1e6)
    _require_video()
    rate, every = choose_pace(chosen.replay.protocol, speed, FORMATS[path.suffix.lower()].most)
    limit = None if seconds is None else max(1, int(rate * Fraction(seconds)))
    panel = Panel(chosen, scale) if has_overlay else None
    size = panel.size if panel else (160 * scale, 210 * scale)
    frames = _draw(chosen, panel, scale, every, max(1, round(rate)))
    with write_film(path, size, rate) as add:
        for count, (moment, picture) in enumerate(itertools.islice(frames, limit), 1):  # noqa: B007
            if should_stop():
                raise Interrupted
            add(picture)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "title": chosen.title,
        "episode_return": chosen.replay.episode_return,
        "episode_steps": len(chosen.replay),
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
    of_all = f"{report['steps']:,} of {report['episode_steps']:,} steps"
    return (
        f"{report['file']}: {report['seconds']:.1f} s, {report['width']}×{report['height']}, "
        f"{report['frames_per_second']:.4g} frames a second, {report['bytes'] / 1e6:.2f} MB\n"
        f"{report['title']}; {of_all}; opponent {lost} : {won} agent"
    )


def choose_pace(protocol: Protocol, speed: float, most: int) -> tuple[Fraction, int]:
    """Film frames per second, of which `most` can be shown, and steps per film frame.

    >>> from pixelpong.config.protocols import PROTOCOLS
    >>> [choose_pace(PROTOCOLS["ALE/Pong-v5"], speed, most=50) for speed in (1, 4)]
    [(Fraction(15, 1), 1), (Fraction(30, 1), 2)]
    """
    steps = Fraction(2 * GAME_FRAMES_PER_SECOND, sum(protocol.frame_skips))
    steps *= Fraction(speed).limit_denominator(100)
    every = math.ceil(steps / most)
    return steps / every, every


def _require_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also refuses NaN
        raise ConfigError(expected(f"{name} from {low:g} to {high:g}", value, "change it"))


def _require_video() -> None:
    for module, name in (("av", "PyAV"), ("PIL", "Pillow")):
        if importlib.util.find_spec(module) is None:
            advice = "pip install 'pixelpong[video]'"
            raise ConfigError(expected(f"{name}, for films", f"no {module}", advice))


def _draw(
    chosen: ChosenReplay, panel: Panel | None, scale: int, every: int, held: int
) -> Iterator[tuple[Moment, Picture]]:
    """The moments shown, each with its picture; the last one `held` times."""
    steps: Iterator[tuple[Moment, Any]] = ((moment, None) for moment in chosen.replay.watch())
    if panel:
        steps = explain(chosen.replay, chosen.agent, every)
    for moment, explanation in steps:
        if moment.step % every and moment.action is not None:
            continue
        picture = panel.draw(moment, explanation) if panel else draw_game(moment, scale)
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
        format=form.container,
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
