"""What an agent would do, and what it expects, if its paddle were at another height.

A moment of a game is kept as it is, with the ball about to arrive, but the agent's paddle is put at
one height after another, in the frame and in the one before. The network then sees both frames, and
answers. Nothing is estimated: each height is an answer of the network itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.game import Moment
from pixelpong.env.preprocess import FIELD_ROWS
from pixelpong.play.networks import Network

BALL, BACKGROUND, PADDLE = 14, 34, 200  # palette indices of Pong while it is played
PADDLE_ROWS, PADDLE_COLUMNS = 16, slice(140, 144)
HEIGHTS = range(0, 144, 2)  # rows of the field for the paddle's upper edge
ARRIVING = range(132, 140)  # columns of a ball that reaches the paddle in the next step

_FIELD_ROWS_SEEN = 159  # the row below is the border's, in the ball's colour
_BALL_SIZE, _PADDLE_SIZE = 4 * 2, PADDLE_ROWS * 4


def find_ball(screen: NDArray[np.uint8]) -> tuple[int, int] | None:
    """Row in the field and column of the ball's upper left pixel; None if it is not all in sight.

    A `screen` has the palette indices [210, 160], here and below.
    """
    places = np.argwhere(screen[FIELD_ROWS][:_FIELD_ROWS_SEEN] == BALL)
    if len(places) != _BALL_SIZE:
        return None
    row, column = places.min(axis=0).tolist()
    return row, column


def find_paddle(screen: NDArray[np.uint8]) -> int | None:
    """The height of the agent's paddle, as in `HEIGHTS`; None if it is not all in sight."""
    rows, _ = np.nonzero(screen[FIELD_ROWS] == PADDLE)
    return int(rows.min()) if len(rows) == _PADDLE_SIZE else None


def place_paddle(screen: NDArray[np.uint8], height: int) -> NDArray[np.uint8]:
    """A copy of a screen with the agent's paddle at another height, as in `HEIGHTS`."""
    moved = screen.copy()
    field = moved[FIELD_ROWS]
    field[field == PADDLE] = BACKGROUND
    field[height : height + PADDLE_ROWS, PADDLE_COLUMNS] = PADDLE
    return moved


def expect(network: Network, before: Moment, now: Moment) -> dict[str, Any] | None:
    """Ask a network about every height of its paddle; it forgets the game that it was in.

    The answers, as JSON, have a row for each of `HEIGHTS`; None if the ball does not reach the
    paddle in the next step. `before` is the moment of the step before.
    """
    last, ball, paddle = find_ball(before.screen), find_ball(now.screen), find_paddle(now.screen)
    if last is None or ball is None or paddle is None or not last[1] < ball[1] in ARRIVING:
        return None
    answers = []
    for height in HEIGHTS:
        network.reset()
        network.follow(place_paddle(before.screen, height), before.action)
        network.act(place_paddle(now.screen, height))
        answers.append(network.answer())
    values = [value for _, value in answers]
    return {
        "step": now.step,
        "ball": ball,
        "paddle": paddle,
        "probabilities": [np.round(each, 3).tolist() for each, _ in answers],
        "values": None if None in values else np.round(np.array(values, float), 3).tolist(),
    }
