"""The live screen of a training run, with the curve of the returns and the metrics.

In a small terminal it takes at most 80 × 24 characters. It is drawn once a second in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

REFRESH_PER_SECOND = 1.0
ROWS = 9  # number of lines for the curve
_MIN_WIDTH = 12  # number of columns below which rich makes no table
# The bits of a Braille character, which has four rows of two dots.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


class Axis(NamedTuple):
    """The vertical axis of the curve: its ends, and the lines and labels at some values."""

    top: float
    bottom: float
    labels: dict[float, str]  # a label for some values
    lines: tuple[float, ...]  # the values at which a line is drawn
    waiting: str  # what the curve begins with

    @property
    def label_width(self) -> int:
        """The number of columns for the labels and a space."""
        return max(5, 1 + max(map(len, self.labels.values())))

    def row(self, value: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the row of dots, counted from the top, for a return."""
        share = (self.top - value) / (self.top - self.bottom)
        return np.clip(np.rint(share * (4 * ROWS - 1)), 0, 4 * ROWS - 1).astype(np.int64)


def start_live(console: Console, draw: Callable[[int], RenderableType]) -> Live:
    """Display what `draw` returns for the terminal's width in columns, until it is stopped."""
    size = console.size

    def draw_again() -> RenderableType:
        nonlocal size
        if size != console.size:  # the terminal has folded the old lines
            size = console.size
            console.clear()
        width = min(size.width, 100) - 1
        return Text("") if width < _MIN_WIDTH else draw(width)

    live = Live(
        console=console,
        get_renderable=draw_again,
        refresh_per_second=REFRESH_PER_SECOND,
        vertical_overflow="crop",
    )
    live.start()
    return live


def draw_screen(
    title: str,
    points: Sequence[tuple[int, float]],  # (steps, return), ascending
    axis: Axis,
    metrics: Mapping[str, str],
    rest: Sequence[str],
    width: int,
) -> RenderableType:
    """Draw the whole screen; a narrow one has no curve."""
    table, cells = Table.grid(padding=(0, 2)), []
    for name, value in metrics.items():
        cells += [Text(name, "dim", no_wrap=True), Text(value, no_wrap=True)]
    cells_per_row = 4 if width >= 70 else 2
    for first in range(0, len(cells), cells_per_row):
        table.add_row(*cells[first : first + cells_per_row])
    return Group(
        Text(title, "bold", overflow="ellipsis", no_wrap=True),
        *(draw_curve(points, axis, width) if width >= 40 else ()),
        table,
        *(Text(line, "cyan", overflow="ellipsis", no_wrap=True) for line in rest),
    )


def draw_curve(points: Sequence[tuple[int, float]], axis: Axis, width: int) -> list[Text]:
    """Draw a curve of returns over steps in Braille dots."""
    label_width = axis.label_width
    columns = width - label_width
    bits = np.zeros((ROWS, columns), np.int64)
    end = axis.waiting
    if points:
        steps, values = zip(*points, strict=True)
        x = np.arange(2 * columns)
        curve = np.interp(x, np.array(steps) * (x[-1] / steps[-1]), values, left=np.nan)
        is_known = ~np.isnan(curve)
        x, y = x[is_known], axis.row(curve[is_known])
        np.bitwise_or.at(bits, (y // 4, x // 2), _DOTS[y % 4, x % 2])
        end = f"{steps[-1]:,} steps"
    labels = {int(axis.row(np.array(value))) // 4: text for value, text in axis.labels.items()}
    line_rows = {int(axis.row(np.array(value))) // 4 for value in axis.lines}
    lines = []
    for number, row in enumerate(bits.tolist()):
        empty = "┄" if number in line_rows else " "
        drawn = "".join(chr(0x2800 + dots) if dots else empty for dots in row)
        line = Text(f"{labels.get(number, ''):>{label_width - 1}} {drawn}", "green")
        line.stylize("dim", 0, label_width)
        lines.append(line)
    return [*lines, Text(f"{'':{label_width}}0{end:>{columns - 1}}", "dim")]
