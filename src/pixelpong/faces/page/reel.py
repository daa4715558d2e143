"""A reel: all that a page needs to show an episode without asking again, as one JSON object.

Pictures are coded as differences, which are few: for each step the number of places that changed
(uint16), then the places (uint16), then what they changed to (uint8), all little-endian; the first
step differs from all zeros. Then compressed with zlib (a browser's ``deflate``) and in base64.

    screen    [210, 160] palette indices
    field     [80, 80] what a pixel is to the network: 0 off, 1 stayed, 2 appeared, 3 vanished
    saliency  [80, 80] what it adds to logit(UP) − logit(DOWN), in 127ths of that step's largest
              as int8 (a uint8 above 127 is negative), which stands in ``saliency_max``

Covered: making one. Not covered: showing it (``static/viewer.js``).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.network import Sight
from pixelpong.agent.shows import Show
from pixelpong.items import DOWN, STAY, UP

ACTION_NAMES = {STAY: "stay", UP: "up", DOWN: "down"}

Reel = dict[str, Any]


def _never() -> bool:
    return False


def make_reel(show: Show, should_stop: Callable[[], bool] = _never) -> Reel:
    """Play an episode again and look into the agent at every step.

    Args:
        show: the episode.
        should_stop: asked at every step; where it says so, the reel ends there.

    Raises:
        RunError: the episode comes out otherwise than when it was recorded.
        EmulatorError: the emulator or its game is not installed.
    """
    replay, policy = show.replay, show.agent.make_policy()
    low, high = replay.protocol.frame_skips
    screens, fields, saliencies = _Differences(210 * 160), _Differences(6400), _Differences(6400)
    palette, is_known = np.zeros((256, 3), np.uint8), np.zeros(256, np.bool_)
    steps: dict[str, list[Any]] = {
        name: []
        for name in ("actions", "rewards", "points", "probabilities", "values", "saliency_max")
    }
    for moment in replay.watch():
        if should_stop():
            break
        if not is_known[moment.screen].all():  # hardly ever, and writing all of it takes long
            palette[moment.screen], is_known[moment.screen] = moment.frame, True
        screens.add(moment.screen)
        policy.follow(moment.screen, moment.action)
        sight = policy.explain()
        largest = float(np.abs(sight.saliency).max())
        fields.add(sight.field)
        saliencies.add(_as_bytes(sight, largest))
        steps["actions"].append(moment.action)
        steps["rewards"].append(moment.reward)
        steps["points"].append(moment.points)
        steps["probabilities"].append([round(float(p), 4) for p in sight.probabilities])
        steps["values"].append(None if sight.value is None else round(sight.value, 4))
        steps["saliency_max"].append(round(largest, 4))
    return {
        "title": show.title,
        "is_own": show.is_own,
        "agent_update": show.agent.about["update"],
        "episode": replay.episode,
        "update": replay.update,
        "episode_return": replay.episode_return,
        "steps": len(screens),
        "steps_per_second": 60 / ((low + high) / 2),
        "action_names": [ACTION_NAMES[action] for action in policy.actions],
        "action_codes": list(policy.actions),
        "palette": palette.tolist(),
        "screen": screens.encode(),
        "field": fields.encode(),
        "saliency": saliencies.encode(),
        **steps,
    }


def _as_bytes(sight: Sight, largest: float) -> NDArray[np.uint8]:
    scaled = np.rint(sight.saliency * (127 / largest if largest else 0.0))
    return scaled.astype(np.int8).view(np.uint8)


class _Differences:
    """Pictures one after another, each as what changed."""

    def __init__(self, size: int) -> None:
        self._last = np.zeros(size, np.uint8)
        self._pieces: list[bytes] = []

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, picture: NDArray[np.uint8]) -> None:
        """The next picture."""
        self._pieces.append(encode_difference(self._last, picture.reshape(-1)))
        self._last = picture.reshape(-1).copy()

    def encode(self) -> str:
        """All of them."""
        return base64.b64encode(zlib.compress(b"".join(self._pieces), 6)).decode()


def encode_difference(last: NDArray[np.uint8], picture: NDArray[np.uint8]) -> bytes:
    """What changed from one flat picture to the next: count, places, values; see the module."""
    places = np.flatnonzero(picture != last)
    count = np.array([len(places)], "<u2")
    return count.tobytes() + places.astype("<u2").tobytes() + picture[places].tobytes()
