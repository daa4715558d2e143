"""A reel: everything a page needs to show an episode, as one JSON object.

Pictures are coded as differences, which are few: for each step the number of places that changed
(uint16), then the places (uint16), then their new values (uint8), all little-endian; the first
picture differs from all zeros. All this is compressed with zlib (a browser's ``deflate``), in
base64. A film has the screen alone.

    screen    [210, 160] palette indices
    field     [80, 80] the state of a pixel: 0 off, 1 stayed, 2 appeared, 3 vanished
    saliency  [80, 80] what it adds to logit(UP) − logit(DOWN), in 127ths of that step's largest
              as int8 (a uint8 above 127 is negative); ``saliency_max`` has the largest

Covered: making one. Not covered: showing it (``static/viewer.js``).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.explain import explain
from pixelpong.agent.legend import ACTION_NAMES
from pixelpong.agent.network import Explanation
from pixelpong.play.replay import Moment

Reel = dict[str, Any]


def _never() -> bool:
    return False


def make_reel(chosen: ChosenReplay, should_stop: Callable[[], bool] = _never) -> Reel:
    """Explain a replay step by step, for a page.

    Args:
        chosen: the episode and the agent.
        should_stop: called at every step; the reel ends if it returns True.

    Raises:
        RunError: the episode comes out differently from when it was recorded.
        EmulatorError: the emulator or its game is not installed.
    """
    replay, actions = chosen.replay, chosen.agent.make_network().actions
    screens, fields, saliencies = _Differences(210 * 160), _Differences(6400), _Differences(6400)
    palette, is_known = np.zeros((256, 3), np.uint8), np.zeros(256, np.bool_)
    steps: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for moment, explanation in explain(replay, chosen.agent):
        if should_stop():
            break
        if not is_known[moment.screen].all():  # rare, and writing all of it takes long
            palette[moment.screen], is_known[moment.screen] = moment.frame, True
        largest, saliency = scale_saliency(explanation)
        screens.add(moment.screen)
        fields.add(explanation.field)
        saliencies.add(saliency)
        for name, value in zip(_COLUMNS, _describe(moment, explanation, largest), strict=True):
            steps[name].append(value)
    return {
        "title": chosen.title,
        "is_own": True,
        "agent_update": chosen.agent.about["update"],
        "episode": replay.index,
        "update": chosen.agent.about["update"],
        "episode_return": replay.episode_return,
        "steps": len(screens),
        "steps_per_second": 2 * 60 / sum(replay.protocol.frame_skips),
        "action_names": [ACTION_NAMES[action] for action in actions],
        "action_codes": list(actions),
        "palette": palette.tolist(),
        "screen": screens.encode(),
        "field": fields.encode(),
        "saliency": saliencies.encode(),
        **steps,
    }


FRAMES_PER_SECOND = 60
_COLUMNS = ("actions", "rewards", "points", "probabilities", "values", "saliency_max")


def _describe(moment: Moment, explanation: Explanation, largest: float) -> tuple[Any, ...]:
    probabilities = [round(float(p), 4) for p in explanation.probabilities]
    value = None if explanation.value is None else round(explanation.value, 4)
    return moment.action, moment.reward, moment.points, probabilities, value, round(largest, 4)


def scale_saliency(explanation: Explanation) -> tuple[float, NDArray[np.uint8]]:
    """The largest saliency, and [80, 80] in 127ths of it: int8, seen as uint8."""
    largest = float(np.abs(explanation.saliency).max())
    scaled = np.rint(explanation.saliency * (127 / largest if largest else 0.0))
    return largest, scaled.astype(np.int8).view(np.uint8)


def encode_picture(picture: NDArray[np.uint8]) -> str:
    """One picture, coded as a series of one."""
    series = _Differences(picture.size)
    series.add(picture)
    return series.encode()


class _Differences:
    """A series of pictures, each coded as its difference from the one before."""

    def __init__(self, size: int) -> None:
        self._last = np.zeros(size, np.uint8)
        self._pieces: list[bytes] = []

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, picture: NDArray[np.uint8]) -> None:
        """Add the next picture."""
        self._pieces.append(encode_difference(self._last, picture.reshape(-1)))
        self._last = picture.reshape(-1).copy()

    def encode(self) -> str:
        """All pictures, compressed."""
        return base64.b64encode(zlib.compress(b"".join(self._pieces), 6)).decode()


def encode_difference(last: NDArray[np.uint8], picture: NDArray[np.uint8]) -> bytes:
    """What changed from one flat picture to the next: count, places, values; see the module."""
    places = np.flatnonzero(picture != last)
    count = np.array([len(places)], "<u2")
    return count.tobytes() + places.astype("<u2").tobytes() + picture[places].tobytes()
