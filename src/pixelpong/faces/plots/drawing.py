"""The style of our plots, and their files. The only module that needs matplotlib.

The colours are those of Okabe and Ito, which colour-blind people can tell apart. Lines also differ
in their dashes, and fillings in lightness, so that a grey print works too. The same figure is the
same bytes: no date, no random names.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

Figure = Any  # a matplotlib Figure; the library is an extra, and may be missing
FORMATS = ("png", "svg", "pdf")
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


def render(figure: Figure, format: str) -> bytes:
    """The figure as the bytes of a file in one of `FORMATS`."""
    buffer, keys = io.BytesIO(), {"svg": "Date", "png": "Software", "pdf": "CreationDate"}
    figure.savefig(buffer, format=format, metadata={keys[format]: None})
    return buffer.getvalue()


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
