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
_SIZES = {BALL: 4 * 2, PADDLE: PADDLE_ROWS * 4}  # in pixels


def find(screen: NDArray[np.uint8], colour: int) -> tuple[int, int] | None:
    """Row in the field and column of the ball or the paddle; None if it is not all in sight.

    A `screen` has the palette indices [210, 160], here and below.
    """
    places = np.argwhere(screen[FIELD_ROWS][:_FIELD_ROWS_SEEN] == colour)
    if len(places) != _SIZES[colour]:
        return None
    row, column = places.min(axis=0).tolist()
    return row, column


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
    last, ball = (find(moment.screen, BALL) for moment in (before, now))
    paddle = find(now.screen, PADDLE)
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
        "paddle": paddle[0],
        "probabilities": [np.round(each, 3).tolist() for each, _ in answers],
        "values": None if None in values else np.round(np.array(values, float), 3).tolist(),
    }
