"""Writes films to files, picture by picture: MP4, GIF and WebP, with PyAV.

Pictures share one palette (`pixelpong.faces.film.overlay`), so GIF and WebP keep every colour.
A film is encoded in memory and written at the end: about 5 MB for a thousand steps with the panel.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.faces.film.overlay import Picture, list_colours
from pixelpong.run.files import write_whole


class Format(NamedTuple):
    """The encoding of one kind of film.

    Attributes:
        container: in libav's terms.
        codec: in libav's terms.
        pixels: the codec's pixel format, in libav's terms.
        most: the most film frames per second that players show.
        codec_options: of the codec.
        container_options: of the container.
    """

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
_LOSSLESS = {"lossless": "1", "compression_level": "4"}

FORMATS = {
    # Every player knows H.264 in 4:2:0; with its index first, it plays while it loads.
    ".mp4": Format("mp4", "libx264", "yuv420p", 60, _H264, {"movflags": "+faststart"}),
    # Browsers show frames shorter than 20 ms (in WebP, 10 ms or shorter) for 100 ms.
    ".gif": Format("gif", "gif", "pal8", 50, {}, {}),
    ".webp": Format("webp", "libwebp_anim", "bgra", 60, _LOSSLESS, {"loop": "0"}),
}
"""By the file's suffix."""


def require_video() -> None:
    """Check that the libraries for films are installed.

    Raises:
        ConfigError: they are not.
    """
    for module, name in (("av", "PyAV"), ("PIL", "Pillow")):
        if importlib.util.find_spec(module) is None:
            advice = "pip install 'pixelpong[video]'"
            raise ConfigError(expected(f"{name}, for films", f"no {module}", advice))


@contextlib.contextmanager
def write_film(
    path: Path, size: tuple[int, int], rate: Fraction
) -> Iterator[Callable[[Picture], None]]:
    """Yield a function that adds the next picture to a film, which is complete or not there.

    Args:
        path: of the file; its suffix is one of `FORMATS`. Missing folders are made.
        size: width and height of every picture, in pixels, both even.
        rate: pictures per second.

    Raises:
        RunError: the file cannot be written.
    """
    import av
    from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

    form, reformatter = FORMATS[path.suffix.lower()], VideoReformatter()
    palette = np.zeros((256, 4), np.uint8)  # the last colour is transparent, as GIF needs it
    colours = list_colours()
    palette[: len(colours)] = np.insert(colours, 0, 255, axis=1)
    numbers = itertools.count()
    with (
        _whole_file(path) as film,
        av.open(
            film,
            "w",
            format=form.container,
            options=form.container_options,
            io_open=lambda *_: io.BytesIO(film.getvalue()),  # to move the index to the front
        ) as container,
    ):
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


@contextlib.contextmanager
def _whole_file(path: Path) -> Iterator[io.BytesIO]:
    """Yield a buffer that becomes the file's content; after an error, nothing is left."""
    if path.is_dir():
        advice = "give the file's name too, with --out"
        raise RunError(expected("a file to write the film to", f"the folder {path}", advice))
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    content = io.BytesIO()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield content
        write_whole(path, content.getvalue())
    except OSError as error:
        advice = "choose another --out"
        raise RunError(expected(f"to write {path}", error.strerror, advice)) from error
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()  # empty if there is no film; fails for others, which are not
