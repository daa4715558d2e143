"""The colours and dashes of lines.

The colours are those of Okabe and Ito, which colour-blind people can tell apart. Lines also differ
in their dashes, so a grey print works too.
"""

from __future__ import annotations

from typing import Any

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
BLACK, GREY = "#000000", "#767676"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)),
)  # fmt: skip


def colour_of(number: int) -> str:
    """Return the colour of line `number`, counted from 0."""
    return COLOURS[number % len(COLOURS)]
