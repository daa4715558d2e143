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

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.expect import (
    HEIGHTS,
    PADDLE_ROWS,
    Expectation,
    expect,
    find_ball,
    find_paddle,
    is_arriving,
)
from pixelpong.agent.legend import ACTION_NAMES
from pixelpong.agent.network import Explanation
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import Protocol
from pixelpong.play.replay import Moment

MAX_STEPS = 12_000  # an episode has a few thousand
FRAMES_PER_SECOND = 60

_COLUMNS = ("actions", "rewards", "points", "probabilities", "values", "saliency_max")


def make_reel(chosen: ChosenReplay) -> dict[str, Any]:
    """Explain each step of an agent's game."""
    replay, agent = chosen.replay, chosen.agent
    network, before = agent.make_network(), None
    pictures = {name: _Differences() for name in ("screen", "field", "saliency")}
    steps: list[tuple[Any, ...]] = []
    expectations: list[dict[str, Any]] = []
    for moment, seen in itertools.islice(agent.explain(replay), MAX_STEPS):
        largest, saliency = scale_saliency(seen)
        for name, picture in zip(pictures, (moment.screen, seen.field, saliency), strict=True):
            pictures[name].add(picture)
        chances = np.round(seen.probabilities, 4).tolist()
        value = None if seen.value is None else round(seen.value, 4)
        steps.append(
            (moment.action, moment.reward, moment.points, chances, value, round(largest, 4))
        )
        if before is not None and is_arriving(before.screen, moment.screen):
            assert before.action is not None
            answers = expect(network, before.screen, moment.screen, before.action)
            expectations.append(_describe_arrival(moment, answers))
        before = moment
    return {
        "agent_update": agent.about["update"],
        "episode_return": replay.episode_return,
        "steps": len(steps),
        "steps_per_second": float(steps_per_second(replay.protocol)),
        "action_names": [ACTION_NAMES[action] for action in network.actions],
        "action_codes": list(network.actions),
        "palette": PALETTE.tolist(),
        **{name: differences.encode() for name, differences in pictures.items()},
        **dict(zip(_COLUMNS, zip(*steps, strict=True), strict=True)),
        "heights": list(HEIGHTS),
        "paddle_rows": PADDLE_ROWS,
        "expectations": expectations,
    }


def steps_per_second(protocol: Protocol) -> Fraction:
    """Decisions of the agent a second, at the game's own speed."""
    return Fraction(2 * FRAMES_PER_SECOND, sum(protocol.frame_skips))


def _describe_arrival(moment: Moment, answers: Expectation) -> dict[str, Any]:
    values = answers.values
    return {
        "step": moment.step,
        "ball": find_ball(moment.screen),
        "paddle": find_paddle(moment.screen),
        "probabilities": np.round(answers.probabilities, 3).tolist(),
        "values": None if values is None else np.round(values, 3).tolist(),
    }


def scale_saliency(explanation: Explanation) -> tuple[float, NDArray[np.uint8]]:
    """The largest saliency, and [80, 80] in 127ths of it: int8, seen as uint8."""
    largest = float(np.abs(explanation.saliency).max())
    scaled = np.rint(explanation.saliency * (127 / largest if largest else 0.0))
    return largest, scaled.astype(np.int8).view(np.uint8)


class _Differences:
    """A series of pictures, each coded as its difference from the one before."""

    def __init__(self) -> None:
        self._last: NDArray[np.uint8] | None = None
        self._pieces: list[bytes] = []

    def add(self, picture: NDArray[np.uint8]) -> None:
        """Add the next picture."""
        last = np.zeros_like(picture) if self._last is None else self._last
        self._pieces.append(encode_difference(last, picture))
        self._last = picture.copy()

    def encode(self) -> str:
        """All pictures, compressed."""
        return base64.b64encode(zlib.compress(b"".join(self._pieces), 6)).decode()


def encode_difference(last: NDArray[np.uint8], picture: NDArray[np.uint8]) -> bytes:
    """What changed from one picture to the next: count, places, values; see the module."""
    places = np.flatnonzero(picture != last)
    count = np.array([len(places)], "<u2")
    return count.tobytes() + places.astype("<u2").tobytes() + picture.ravel()[places].tobytes()
