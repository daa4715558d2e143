"""What a screen of the game shows: paddles and ball, by their colours."""

from __future__ import annotations

import numpy as np

OWN, OTHER, BALL = 200, 56, 14
FIELD = slice(34, 194)


def paddle(screen, colour):
    """First and last row, first and last column."""
    rows, columns = np.nonzero(screen[FIELD] == colour)
    if not len(rows):
        return None
    return tuple(int(n) for n in (rows.min() + 34, rows.max() + 34, columns.min(), columns.max()))


def ball_of(screen):
    return paddle(screen, BALL)
