"""The files that films are written to, frame by frame: MP4, GIF and WebP.

A frame is a canvas [height, width] of slots; a palette [256, 3], which is shared with the one who
draws, gives each a colour. Colours may come in while the film is written, none may change.

Covered: encoding, and a file that is whole or not there. Not covered: what is in it (`film`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.faces.film.overlay import Picture

Palette = NDArray[np.uint8]
Shape = tuple[int, int]

_H264 = {
    # No frames that refer to later ones: the film starts at 0 in every player.
    "preset": "superfast", "crf": "18", "bf": "0",
    # What helps with films of the world, and costs a quarter of the time here.
    "x264-params": "aq-mode=0:subme=0:weightp=0:scenecut=0",
    "colorspace": "bt709", "color_primaries": "bt709", "color_trc": "bt709", "color_range": "tv",
}  # fmt: skip


@contextlib.contextmanager
def write_film(
    path: Path, make_writer: MakeWriter, shape: Shape, rate: Fraction, palette: Palette
) -> Iterator[Writer]:
    """Yield what writes a film to `path`, where it is when all is done, whole, or not at all.

    Folders that are missing are made.

    Raises:
        RunError: the file cannot be written.
    """
    import av

    if path.is_dir():
        advice = "give the file's name too, with --out"
        raise RunError(expected("a file to write the film to", f"the folder {path}", advice))
    temporary = path.with_name(f".tmp-film-{os.getpid()}")
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(make_writer(temporary, shape, rate, palette)) as writer:
            yield writer
            writer.finish()
        temporary.replace(path)
    except (OSError, av.FFmpegError) as error:
        got = " ".join(str(error.strerror or error).split())
        what = f"to write the film {path}"
        raise RunError(expected(what, got, "make room there, or choose another --out")) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()  # of a film that did not come about; others are not empty


def require_video() -> None:
    """Refuse to go on where the libraries for films are not installed.

    Raises:
        ConfigError: they are not.
    """
    for module, name in (("av", "PyAV"), ("PIL", "Pillow")):
        if importlib.util.find_spec(module) is None:
            advice = "pip install 'pixelpong[video]'"
            raise ConfigError(expected(f"{name}, for films", f"no {module}", advice))


class Writer(Protocol):
    """Writes one film."""

    def add(self, canvas: Picture) -> None:
        """The next frame; the writer keeps no hold of it."""

    def finish(self) -> None:
        """Write what is left. Raises where the file is not whole."""

    def close(self) -> None:
        """Let the file go, whatever is in it; harmless after `finish`."""


MakeWriter = Callable[[Path, Shape, Fraction, Palette], Writer]


class _Mp4Writer:
    """H.264 in 4:2:0, which every player knows; only rows that change are converted."""

    def __init__(self, path: Path, shape: Shape, rate: Fraction, palette: Palette) -> None:
        self._path, self._palette, self._count = path, palette, 0
        path.write_bytes(bytes(4096))  # a file that libav opens and cannot begin, it never closes
        self._container = _open_container(path, "mp4", {"movflags": "+faststart"})
        options = _H264 | {"g": str(max(1, round(5 * rate)))}
        self._stream = _add_stream(self._container, "libx264", "yuv420p", shape, rate, options)
        height, width = shape
        self._last = np.full((height // 2, 2, width), 254, np.uint8)  # a slot that nothing has
        # One frame for all: without frames that wait for later ones, x264 is done with a picture
        # when it has taken it, and a third of the time is saved.
        self._frame = _make_frame(shape)
        self._planes = [_view_plane(plane) for plane in self._frame.planes]

    def add(self, canvas: Picture) -> None:
        """See `Writer.add`."""
        pairs = canvas.reshape(self._last.shape)
        changed = np.flatnonzero((pairs != self._last).any(axis=(1, 2)))
        rows = self._last[changed] = pairs[changed]
        y, *chroma = _tabulate_yuv(self._palette.tobytes())
        luma, *planes = self._planes
        luma.reshape(len(pairs), 2, -1)[changed, :, : canvas.shape[1]] = y[rows]
        for plane, table in zip(planes, chroma, strict=True):
            values = table[rows].astype(np.uint16).sum(axis=1, dtype=np.uint16)
            mean = (values[:, ::2] + values[:, 1::2] + 2) >> 2
            plane[changed, : mean.shape[1]] = mean
        _encode(self._container, self._stream, self._frame, self._count)
        self._count += 1

    def finish(self) -> None:
        """See `Writer.finish`."""
        import av

        self._container.mux(self._stream.encode(None))
        self._container.close()
        # What the system says when the file is closed does not come through: read it again.
        with av.open(str(self._path)) as container:
            packets = sum(packet.size > 0 for packet in container.demux(video=0))
        if packets != self._count:
            raise OSError(None, f"a file with {packets} of {self._count} frames")

    def close(self) -> None:
        """See `Writer.close`."""
        with contextlib.suppress(Exception):
            self._container.close()


class _WebpWriter:
    """Lossless; the encoder finds out by itself what changes."""

    def __init__(self, path: Path, shape: Shape, rate: Fraction, palette: Palette) -> None:
        self._palette, self._shape, self._count = palette, shape, 0
        self._bgra = np.full((256, 4), 255, np.uint8)
        self._file = path.open("w+b")
        self._container = _open_container(self._file, "webp", {"loop": "0"})
        options = {"lossless": "1", "compression_level": "4"}
        self._stream = _add_stream(self._container, "libwebp_anim", "bgra", shape, rate, options)

    def add(self, canvas: Picture) -> None:
        """See `Writer.add`."""
        import av

        self._bgra[:, :3] = self._palette[:, ::-1]
        colours = self._bgra.view(np.uint32)[:, 0]
        pixels = colours[canvas].view(np.uint8).reshape(*self._shape, 4)
        frame = av.VideoFrame.from_ndarray(pixels, "bgra")
        _encode(self._container, self._stream, frame, self._count)
        self._count += 1

    def finish(self) -> None:
        """See `Writer.finish`."""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        self._file.close()

    def close(self) -> None:
        """See `Writer.close`."""
        with contextlib.suppress(Exception):
            self._container.close()
        with contextlib.suppress(OSError):
            self._file.close()


class _GifWriter:
    """Only what changes, in the palette's very colours; frames that are alike become one."""

    _TRANSPARENT = 255

    def __init__(self, path: Path, shape: Shape, rate: Fraction, palette: Palette) -> None:
        self._palette, self._rate, self._count = palette, rate, 0
        self._file = path.open("wb")
        height, width = shape
        self._last: Picture = np.zeros(shape, np.uint8)
        self._part: tuple[Picture, int, int] | None = None  # not yet written: its end is not known
        self._begin = 0
        self._file.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0))
        self._file.write(bytes(768))  # the palette, once it is known
        self._file.write(b"!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")  # for ever

    def add(self, canvas: Picture) -> None:
        """See `Writer.add`."""
        is_changed = canvas != self._last
        if self._part is None:
            is_changed[:] = True
        rows, columns = (np.flatnonzero(is_changed.any(axis=axis)).tolist() for axis in (1, 0))
        if rows:
            self._write_part()
            box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            part = np.where(is_changed[box], canvas[box], self._TRANSPARENT).astype(np.uint8)
            self._part, self._begin = (part, columns[0], rows[0]), self._count
            self._last[box] = canvas[box]
        self._count += 1

    def finish(self) -> None:
        """See `Writer.finish`."""
        self._write_part()
        self._file.write(b";")
        self._file.seek(13)
        self._file.write(self._palette.tobytes())
        self._file.close()

    def close(self) -> None:
        """See `Writer.close`."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _write_part(self) -> None:
        from PIL import Image
        from PIL.GifImagePlugin import getdata

        if self._part is None:
            return
        picture, column, row = self._part
        begin, end = (round(100 * at / self._rate) for at in (self._begin, self._count))
        settings = {"duration": 10 * min(end - begin, 0xFFFF), "disposal": 1}
        settings["transparency"] = self._TRANSPARENT
        self._file.writelines(getdata(Image.fromarray(picture), (column, row), **settings))


FORMATS: dict[str, tuple[MakeWriter, int]] = {
    ".mp4": (_Mp4Writer, 60),
    # Browsers show a frame of less than 20 ms for 100 ms; one of WebP, of 10 ms or less.
    ".gif": (_GifWriter, 50),
    ".webp": (_WebpWriter, 60),
}
"""By the file's ending; with the most frames a second that players show."""


def to_yuv(palette: Palette) -> NDArray[np.uint8]:
    """[K, 3] luma and the two chromas of colours, in a video's range.

    Source: ITU-R BT.709-6, items 3.2 to 3.5, with 8 bits.

    >>> to_yuv(np.array([[0, 0, 0], [255, 255, 255], [255, 0, 0]], np.uint8)).tolist()
    [[16, 128, 128], [235, 128, 128], [63, 102, 240]]
    """
    red, green, blue = palette.T / 255
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    parts = [16 + 219 * y, 128 + 224 * (blue - y) / 1.8556, 128 + 224 * (red - y) / 1.5748]
    return np.rint(parts).astype(np.uint8).T


@functools.lru_cache(maxsize=1)
def _tabulate_yuv(palette: bytes) -> tuple[NDArray[np.uint8], ...]:
    return tuple(np.ascontiguousarray(to_yuv(np.frombuffer(palette, np.uint8).reshape(256, 3)).T))


def _open_container(file: Any, form: str, options: dict[str, str]) -> Any:
    import av

    name = str(file.absolute()) if isinstance(file, Path) else file
    return av.open(name, "w", format=form, options=options)


def _add_stream(
    container: Any,
    codec: str,
    pixels: str,
    shape: Shape,
    rate: Fraction,
    options: dict[str, str],
) -> Any:
    stream = container.add_stream(codec, rate=rate, options=options)
    stream.height, stream.width = shape
    stream.pix_fmt = pixels
    return stream


def _make_frame(shape: Shape) -> Any:
    import av

    height, width = shape
    return av.VideoFrame(width, height, "yuv420p")


def _view_plane(plane: Any) -> NDArray[np.uint8]:
    """[height, bytes of a row], of which the last may be of no meaning."""
    whole = np.frombuffer(plane, np.uint8)
    return whole[: plane.height * plane.line_size].reshape(plane.height, plane.line_size)


def _encode(container: Any, stream: Any, frame: Any, number: int) -> None:
    frame.pts, frame.time_base = number, 1 / Fraction(stream.codec_context.framerate)
    container.mux(stream.encode(frame))
