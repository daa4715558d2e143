"""A reel, which is one JSON object with everything that the viewer needs for an agent's game.

Pictures are encoded as differences, because few pixels change: for each step the number of changed
pixels (uint16), then their indices (uint16), then their new values (uint8), all little-endian. The
first picture is compared with zeros. The result is compressed with zlib (``deflate`` in a browser)
and encoded in base64.

    screen    [210, 160] palette indices; in some games more rows
    field     [80, 80] the state of a pixel: 0 off, 1 stayed, 2 appeared, 3 vanished
    saliency  [80, 80] what a pixel adds to logit(UP) − logit(DOWN), in 127ths of the largest
              value at that step, as int8 (a uint8 above 127 is negative)

In games other than Pong, the last two are [105, 80] cells, as in `pixelpong.play.networks`:

    field     0 off, 1 … 15 the class of the cell, plus 16 in the player's figure
    saliency  what a cell adds to the logit of the most probable action minus the mean of the others

``points`` are lost and won so far. ``lives`` are left at each step; null if the game has none.
``cell_colours`` are those of the classes.

In Pong, ``expectations`` covers each step at which the ball is about to reach the paddle. It
contains what the agent would do, and what value it would expect, with its paddle at each other
height. The paddle is drawn at that height in the current and the previous frame, and the network
answers, so nothing is estimated. ``static/viewer.js`` plays a reel.

A game is always played to its end: ``episode_return``, ``final_points`` and ``steps`` (the moments
of the game, one more than its decisions) are those of the whole game. If it has more than
`MAX_MOMENTS`, or more than were asked for, the pictures and everything else with an entry per step
end there, and ``is_cut`` is true.
"""

from __future__ import annotations

import base64
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Moment, play_game
from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.config.protocols import MAX_FRAMES, PONG, Protocol
from pixelpong.faces.look.legend import (
    ACTION_COLOURS,
    ACTION_NAMES,
    AGAINST_COLOUR,
    FOR_COLOUR,
    PIXEL_COLOURS,
    PIXEL_NAMES,
    colour_cells,
    name_actions,
)
from pixelpong.play.networks import Explanation, Network
from pixelpong.pong.preprocess import FIELD_ROWS

# Most moments with pictures; more would take too much memory. No game of ALE/Pong-v5 has more.
MAX_MOMENTS = MAX_FRAMES // 4 + 1
MAX_MOMENTS_OF_OTHERS = 6000  # in other games, where each takes some 10 ms

_COLUMNS = ("actions", "points", "probabilities", "values")

BALL, BACKGROUND, PADDLE = 14, 34, 200  # palette indices in Pong during play
PADDLE_ROWS, PADDLE_COLUMNS = 16, slice(140, 144)
HEIGHTS = range(0, 144, 2)  # rows of the field for the paddle's upper edge
ARRIVING = range(132, 140)  # the columns of a ball that reaches the paddle in the next step

_ROWS_IN_PLAY = 159  # rows of the field; the row below is the border, in the ball's colour
_SIZES = {BALL: 4 * 2, PADDLE: PADDLE_ROWS * 4}  # number of pixels


def make_reel(
    agent: Agent, seed: int, episode: int = 0, moments: int | None = None
) -> dict[str, Any]:
    """Play a game of an evaluation with this seed, and explain each step up to a limit.

    The limit is at most `moments`. To explain takes ten times as long as to play.
    """
    network, game, before = agent.make_network(), agent.protocol.game, None
    last: dict[str, Any] = {"screen": 0, "field": 0, "saliency": 0}
    packed = {name: bytearray() for name in last}
    steps: list[tuple[Any, ...]] = []
    lives: list[int] = []
    expectations: list[dict[str, Any]] = []
    limit = MAX_MOMENTS if game == PONG else MAX_MOMENTS_OF_OTHERS
    limit = limit if moments is None else min(limit, moments)
    for moment in play_game(agent, seed, episode, explains_every=1, explains_before=limit):
        seen = moment.explanation
        if seen is None:
            continue
        saliency = scale_saliency(seen, 127).view(np.uint8)
        pictures = {"screen": moment.screen, "field": seen.field, "saliency": saliency}
        for name, picture in pictures.items():
            packed[name] += encode_difference(last[name], picture)
        last = pictures
        chances = np.round(seen.probabilities, 4).tolist()
        value = None if seen.value is None else round(seen.value, 4)
        steps.append((moment.action, moment.points, chances, value))
        if moment.lives is not None:
            lives.append(moment.lives)
        if game == PONG:
            answers = None if before is None else expect(network, before, moment)
            if answers is not None:
                expectations.append(answers)
            before = moment
    return {
        "game": game,
        "episode_return": moment.score,
        "final_points": moment.points,
        "is_cut": moment.step >= len(steps),
        "seed": seed,
        "episode": episode,
        "protocol": str(agent.protocol),
        "steps": moment.step + 1,
        "steps_per_second": float(steps_per_second(agent.protocol)),
        "action_codes": list(network.actions),
        "palette": PALETTES[moment.palette].tolist(),
        "shapes": {name: picture.shape for name, picture in last.items()},
        **_describe_looks(agent, network),
        **{name: base64.b64encode(zlib.compress(it, 6)).decode() for name, it in packed.items()},
        **dict(zip(_COLUMNS, zip(*steps, strict=True), strict=True)),
        "lives": lives or None,
        "heights": list(HEIGHTS),
        "paddle_rows": PADDLE_ROWS,
        "expectations": expectations,
    }


def _describe_looks(agent: Agent, network: Network) -> dict[str, Any]:
    """Describe the names and the colours of actions and of what is seen, as JSON."""
    if agent.protocol.game == PONG:
        colours = {ACTION_NAMES[action]: colour for action, colour in ACTION_COLOURS.items()}
        colours |= {PIXEL_NAMES[state]: colour for state, colour in PIXEL_COLOURS.items()}
        names = [ACTION_NAMES[action] for action in network.actions]
        return {"action_names": names, "colours": colours}
    assert agent.sight is not None, "an agent of such a game has it"
    palette = PALETTES[cartridge(agent.protocol.game).palette]
    return {
        "action_names": name_actions(agent.scene),
        "colours": {"for": FOR_COLOUR, "against": AGAINST_COLOUR},
        "cell_colours": [f"#{palette[it].tobytes().hex()}" for it in colour_cells(agent.sight)],
        "has_player": agent.sight.player > 0,
    }


def steps_per_second(protocol: Protocol) -> Fraction:
    """Return the agent's decisions per second at the game's own speed."""
    return 60 / Fraction(sum(protocol.frame_skips), 2)


def scale_saliency(explanation: Explanation, most: int) -> NDArray[np.int8]:
    """Scale the saliency to −most … most."""
    largest = np.abs(explanation.saliency).max() or 1.0
    return np.rint(explanation.saliency * (most / largest)).astype(np.int8)


def encode_difference(last: NDArray[np.uint8] | int, picture: NDArray[np.uint8]) -> bytes:
    """Encode the changes between two pictures as count, indices and values, see the module."""
    changed = np.flatnonzero(picture != last)
    count = np.array([len(changed)], "<u2")
    return count.tobytes() + changed.astype("<u2").tobytes() + picture.ravel()[changed].tobytes()


def find(screen: NDArray[np.uint8], colour: int) -> tuple[int, int] | None:
    """Find the row in the field and the column of the ball or the paddle; None if partly hidden.

    Here and below, a `screen` is an array of palette indices, [210, 160].
    """
    pixels = np.argwhere(screen[FIELD_ROWS][:_ROWS_IN_PLAY] == colour)
    if len(pixels) != _SIZES[colour]:
        return None
    row, column = pixels.min(axis=0).tolist()
    return row, column


def place_paddle(screen: NDArray[np.uint8], height: int) -> NDArray[np.uint8]:
    """Copy a screen, with the agent's paddle at another height, as in `HEIGHTS`."""
    moved = screen.copy()
    field = moved[FIELD_ROWS]
    field[field == PADDLE] = BACKGROUND
    field[height : height + PADDLE_ROWS, PADDLE_COLUMNS] = PADDLE
    return moved


def expect(network: Network, before: Moment, now: Moment) -> dict[str, Any] | None:
    """Ask a network about every height of its paddle; this overwrites its memory of the game.

    The answers, as JSON, have one row for each of `HEIGHTS`. The result is None if the ball does
    not reach the paddle in the next step. `before` is the moment of the previous step.
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
        "probabilities": [np.round(chances, 3).tolist() for chances, _ in answers],
        "values": None if None in values else np.round(np.array(values, float), 3).tolist(),
    }
