"""A reel: everything the viewer needs to show an agent's game, as one JSON object.

Pictures are coded as differences, which are few: for each step the number of places that changed
(uint16), then the places (uint16), then their new values (uint8), all little-endian; the first
picture differs from all zeros. All this is compressed with zlib (a browser's ``deflate``), in
base64.

    screen    [210, 160] palette indices
    field     [80, 80] the state of a pixel: 0 off, 1 stayed, 2 appeared, 3 vanished
    saliency  [80, 80] what it adds to logit(UP) − logit(DOWN), in 127ths of that step's largest
              as int8 (a uint8 above 127 is negative); ``saliency_max`` has the largest

``expectations`` has what the agent would do with its paddle elsewhere, at each step at which the
ball is about to reach it (`pixelpong.agent.expect`). ``static/viewer.js`` shows a reel.
"""

from __future__ import annotations

import base64
import itertools
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent import expect
from pixelpong.agent.file import Agent
from pixelpong.agent.game import play_game
from pixelpong.agent.legend import ACTION_NAMES
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import Protocol
from pixelpong.play.networks import Explanation

MAX_STEPS = 12_000  # an episode has a few thousand

_COLUMNS = ("actions", "rewards", "points", "probabilities", "values", "saliency_max")


def make_reel(agent: Agent, seed: int) -> dict[str, Any]:
    """Play the first greedy game of an evaluation with this seed, and explain each step."""
    network, before = agent.make_network(), None
    last: dict[str, Any] = {"screen": 0, "field": 0, "saliency": 0}
    packed = {name: bytearray() for name in last}
    steps: list[tuple[Any, ...]] = []
    expectations: list[dict[str, Any]] = []
    for moment in itertools.islice(play_game(agent, seed, explains_every=1), MAX_STEPS):
        seen = moment.explanation
        assert seen is not None
        largest, moved = scale_saliency(seen, 127)
        pictures = {"screen": moment.screen, "field": seen.field, "saliency": moved.view(np.uint8)}
        for name, picture in pictures.items():
            packed[name] += encode_difference(last[name], picture)
        last = pictures
        chances = np.round(seen.probabilities, 4).tolist()
        value = None if seen.value is None else round(seen.value, 4)
        steps.append(
            (moment.action, moment.reward, moment.points, chances, value, round(largest, 4))
        )
        if before and (answers := expect.expect(network, before, moment)):
            expectations.append(answers)
        before = moment
    return {
        "agent_update": agent.about["update"],
        "episode_return": moment.points[1] - moment.points[0],
        "steps": len(steps),
        "steps_per_second": float(steps_per_second(agent.protocol)),
        "action_names": [ACTION_NAMES[action] for action in network.actions],
        "action_codes": list(network.actions),
        "palette": PALETTE.tolist(),
        **{name: base64.b64encode(zlib.compress(it, 6)).decode() for name, it in packed.items()},
        **dict(zip(_COLUMNS, zip(*steps, strict=True), strict=True)),
        "heights": list(expect.HEIGHTS),
        "paddle_rows": expect.PADDLE_ROWS,
        "expectations": expectations,
    }


def steps_per_second(protocol: Protocol) -> Fraction:
    """Decisions of the agent a second, at the game's own speed."""
    return 60 / Fraction(sum(protocol.frame_skips), 2)


def scale_saliency(explanation: Explanation, most: int) -> tuple[float, NDArray[np.int8]]:
    """The largest saliency, and all of it, [80, 80], scaled to −most … most."""
    largest = float(np.abs(explanation.saliency).max())
    scaled = np.rint(explanation.saliency * (most / largest if largest else 0.0))
    return largest, scaled.astype(np.int8)


def encode_difference(last: NDArray[np.uint8] | int, picture: NDArray[np.uint8]) -> bytes:
    """What changed from one picture to the next: count, places, values; see the module."""
    places = np.flatnonzero(picture != last)
    count = np.array([len(places)], "<u2")
    return count.tobytes() + places.astype("<u2").tobytes() + picture.ravel()[places].tobytes()
