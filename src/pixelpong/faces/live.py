"""The live screen of a training: the curve of the estimated return, and metrics with their names.

It is at most 80 × 24 in a small terminal, and drawn once a second in its own thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pixelpong.run.words import signed

REFRESH_PER_SECOND = 1.0
ROWS = 9  # lines of the curve
_LEFT = 5  # columns for the numbers next to the curve
_LEAST_WIDTH = 12  # columns; with fewer, rich makes no table
_TOP, _BOTTOM = 21.0, -21.0
# Bits of a Braille character: four rows of two dots.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def start_live(console: Console, draw: Callable[[int], RenderableType]) -> Live:
    """Show on a terminal what `draw` returns for a width in columns, until it is stopped."""
    size = console.size

    def draw_again() -> RenderableType:
        nonlocal size
        if size != console.size:  # the terminal has folded what was drawn
            size = console.size
            console.clear()
        width = min(size.width, 100) - 1
        return Text("") if width < _LEAST_WIDTH else draw(width)

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
    target: float | None,
    metrics: Mapping[str, str],
    now: str,
    footer: str,
    width: int,
) -> RenderableType:
    """The whole screen; without the curve if it is narrow."""
    table, count = Table.grid(padding=(0, 2)), 2 if width >= 70 else 1
    cells = [
        (Text(name, "dim", no_wrap=True), Text(value, no_wrap=True))
        for name, value in metrics.items()
    ]
    for place in range(0, len(cells), count):
        table.add_row(*itertools.chain(*cells[place : place + count]))
    return Group(
        Text(title, "bold", overflow="ellipsis", no_wrap=True),
        *(draw_curve(points, target, width) if width >= 40 else ()),
        table,
        Text(now, "cyan"),
        *[Text(footer, "dim", overflow="ellipsis", no_wrap=True)] * bool(footer),
    )


def draw_curve(points: Sequence[tuple[int, float]], target: float | None, width: int) -> list[Text]:
    """A curve of returns against steps, in Braille dots, with a line at the target."""
    columns = width - _LEFT
    last = points[-1][0] if points else 1
    ends = [(round(steps / last * (2 * columns - 1)), _dot_row(value)) for steps, value in points]
    dots = np.zeros((ROWS, 4, columns, 2), np.int64)
    for (x0, y0), (x1, y1) in itertools.pairwise([*ends[:1], *ends]):
        count = max(abs(x1 - x0), abs(y1 - y0)) + 1
        x, y = (np.linspace(*pair, count).round().astype(int) for pair in ((x0, x1), (y0, y1)))
        dots[y // 4, y % 4, x // 2, x % 2] = 1
    bits = (dots * _DOTS[:, None, :]).sum(axis=(1, 3))
    labels, goal = {0: "+21", ROWS // 2: "0", ROWS - 1: "−21"}, None
    if target is not None:
        goal = _dot_row(target) // 4
        labels[goal] = signed(target, 0)
    lines = []
    for number, row in enumerate(bits.tolist()):
        empty = "┄" if number == goal else " "
        drawn = "".join(chr(0x2800 + bit) if bit else empty for bit in row)
        line = Text(f"{labels.get(number, ''):>{_LEFT - 1}} {drawn}", "green")
        line.stylize("dim", 0, _LEFT)
        lines.append(line)
    end = f"{last:,} steps" if points else "estimated return, once 1,000 points are played"
    return [*lines, Text(f"{'':{_LEFT}}0{end:>{columns - 1}}", "dim")]


def _dot_row(value: float) -> int:
    share = (_TOP - value) / (_TOP - _BOTTOM)
    return min(max(round(share * (4 * ROWS - 1)), 0), 4 * ROWS - 1)
