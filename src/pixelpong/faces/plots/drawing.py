"""The style of our plots, and their files. The only module that needs matplotlib.

The colours are those of Okabe and Ito, which colour-blind people can tell apart. Lines also differ
in their dashes, and fillings in lightness, so that a grey print works too. The same figure is the
same bytes: no date, no random names.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pixelpong.agent.legend import ACTION_COLOURS, PIXEL_COLOURS
from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.items import DOWN, UP

Figure = Any
"""A matplotlib Figure. Typed loosely: the library is an extra, and may be missing."""

FORMATS = ("png", "svg")

DPI = 160

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
BLACK, GREY = "#000000", "#767676"

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)),
)  # fmt: skip

_STYLE: Any = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "savefig.facecolor": "white",
    "svg.hashsalt": "pixelpong",
}


def require_matplotlib(extra: str = "plot") -> None:
    """Check that matplotlib is installed.

    Args:
        extra: the extra of pixelpong that installs it.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec("matplotlib") is None:
        advice = f"pip install 'pixelpong[{extra}]'"
        raise ConfigError(expected("matplotlib, for pictures", "none", advice))


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """While inside, draw in our style, whatever the user's own settings are."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # in a run's name
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure without a window, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def pixel_colours() -> Any:
    """A colour map of the states of a pixel: white if it is off, else the legend's colours."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(["white", *(PIXEL_COLOURS[state] for state in sorted(PIXEL_COLOURS))])


def saliency_colours() -> Any:
    """A colour map from the legend's colour of down, through white, to that of up."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = [ACTION_COLOURS[DOWN], "white", ACTION_COLOURS[UP]]
    return LinearSegmentedColormap.from_list("saliency", ends)


def render(figure: Figure, format: str) -> bytes:
    """The figure as the bytes of a file.

    Args:
        figure: the figure to draw.
        format: one of `FORMATS`, or another that matplotlib knows.
    """
    buffer = io.BytesIO()
    left_out: dict[str, dict[str, None]] = {"svg": {"Date": None}, "png": {"Software": None}}
    figure.savefig(buffer, format=format, metadata=left_out.get(format))
    return buffer.getvalue()


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, each completely or not at all, and none if one of them has no room.

    Args:
        folder: of the files; made if it is missing.
        files: name → content.

    Raises:
        RunError: they cannot be written.
    """
    ours = {name: folder / f".tmp-{os.getpid()}-{name}" for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            ours[name].write_bytes(content)
        for name, temporary in ours.items():
            temporary.replace(folder / name)
    except OSError as error:
        for temporary in ours.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        got = error.strerror or str(error)
        advice = "make room there, or choose another folder"
        raise RunError(expected(f"to write pictures to {folder}", got, advice)) from error
    return [folder / name for name in files]


def plain(text: str) -> str:
    """Escape text so that matplotlib draws it literally: no formula, no hidden label."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return " " * text.startswith("_") + printable.replace("$", r"\$")


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes of the `number`-th of several lines."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def scale_of(largest: float) -> tuple[float, str]:
    """What to divide large counts by, and the name of that unit.

    >>> scale_of(3_500_000), scale_of(120)
    ((1000000.0, ', millions'), (1.0, ''))
    """
    for size, name in ((1e6, ", millions"), (1e3, ", thousands")):
        if largest >= 2 * size:
            return size, name
    return 1.0, ""


def short_names(paths: Sequence[Path]) -> list[str]:
    """A name for each run: its folder, with more of the path if two have the same name.

    >>> short_names([Path("a/x"), Path("b/x"), Path("b/y")])
    ['a/x', 'b/x', 'y']
    """
    parts = [path.resolve().parts for path in paths]
    names = [each[-1] for each in parts]
    for length in range(2, max(map(len, parts), default=0) + 1):
        names = [
            name if names.count(name) == 1 else "/".join(each[-length:])
            for name, each in zip(names, parts, strict=True)
        ]
    return names
