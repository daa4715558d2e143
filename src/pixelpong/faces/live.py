"""The live display of a training: one screen of 80 × 24, drawn once a second in its own thread.

It has a curve of the estimated return, with a line at the target, and figures with their names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass
class Screen:
    """What is shown; changing it draws nothing."""

    title: str = ""
    target: float | None = None
    points: list[tuple[int, float]] = field(default_factory=list)  # (steps, return), ascending
    figures: dict[str, str] = field(default_factory=dict)
    clock: Callable[[], str] = str  # asked whenever the screen is drawn; so is `now`
    now: Callable[[], str] = str
    footer: list[str] = field(default_factory=list)


class LiveScreen:
    """Draws a `Screen` on a terminal until it is closed."""

    def __init__(self, console: Console, screen: Screen) -> None:
        self._console, self._screen, self._size = console, screen, console.size
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=REFRESH_PER_SECOND,
            vertical_overflow="crop",
        )
        self._live.start()

    def close(self) -> None:
        """Draw once more and leave the terminal as it is."""
        self._live.stop()

    def _draw(self) -> RenderableType:
        if self._size != self._console.size:  # the terminal has folded what was drawn
            self._size = self._console.size
            self._console.clear()
        screen, width = self._screen, min(self._size.width, 100) - 1
        if width < _LEAST_WIDTH:
            return Text("")
        rows: list[RenderableType] = [Text(screen.title, "bold", overflow="ellipsis", no_wrap=True)]
        if width >= 40:
            rows += draw_curve(screen.points, screen.target, width)
        figures = screen.figures | {"time": screen.clock()}
        rows += [_columns(figures, 2 if width >= 70 else 1), Text(screen.now(), "cyan")]
        rows += [Text(line, "dim", overflow="ellipsis", no_wrap=True) for line in screen.footer]
        return Group(*rows)


def draw_curve(points: Sequence[tuple[int, float]], target: float | None, width: int) -> list[Text]:
    """A curve of returns against steps, in Braille dots, with a line at the target."""
    columns = width - _LEFT
    bits = [[0] * columns for _ in range(ROWS)]
    last = points[-1][0] if points else 1
    dots = [(round(steps / last * (2 * columns - 1)), _dot_row(value)) for steps, value in points]
    for x, y in _joined(dots):
        bits[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
    goal = None if target is None else _dot_row(target) // 4
    labels = {0: "+21", ROWS // 2: "0", ROWS - 1: "−21"}
    if goal is not None and target is not None:
        labels = {0: "", **labels, goal: signed(target, 0)}
    lines = []
    for number, row in enumerate(bits):
        empty = "┄" if number == goal else " "
        drawn = "".join(chr(0x2800 + bit) if bit else empty for bit in row)
        line = Text(f"{labels.get(number, ''):>{_LEFT - 1}} {drawn}", "green")
        line.stylize("dim", 0, _LEFT)
        lines.append(line)
    end = f"{last:,} steps" if points else "estimated return, once 1,000 points are played"
    lines.append(Text(f"{'':{_LEFT}}0{end:>{columns - 1}}", "dim"))
    return lines


def _dot_row(value: float) -> int:
    share = (_TOP - value) / (_TOP - _BOTTOM)
    return min(max(round(share * (4 * ROWS - 1)), 0), 4 * ROWS - 1)


def _joined(dots: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The dots, and those of the straight lines between neighbours."""
    joined = set(dots)
    for (x0, y0), (x1, y1) in itertools.pairwise(dots):
        count = max(abs(x1 - x0), abs(y1 - y0), 1)
        joined |= {
            (round(x0 + (x1 - x0) * k / count), round(y0 + (y1 - y0) * k / count))
            for k in range(count + 1)
        }
    return joined


def _columns(figures: dict[str, str], count: int) -> Table:
    table = Table.grid(padding=(0, 2))
    cells = [
        Text(part, style, no_wrap=True)
        for name, value in figures.items()
        for part, style in ((name, "dim"), (value, ""))
    ]
    for begin in range(0, len(cells), 2 * count):
        table.add_row(*cells[begin : begin + 2 * count])
    return table
