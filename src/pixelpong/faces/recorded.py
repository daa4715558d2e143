"""The recorded trainings of the preset ``fast``: a yardstick for others."""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
from typing import Any

from pixelpong.config import Config, differences
from pixelpong.config.presets import load_preset


@functools.cache
def _recorded() -> dict[str, Any]:
    """What ``benchmarks/solve.json`` says of them: steps to the win of each, and `steps_left`."""
    file = importlib.resources.files("pixelpong.faces").joinpath("recorded.json")
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def steps_left(estimated_return: float | None) -> int:
    """Steps to the win from this estimated return, by the median of the recorded trainings.

    >>> steps_left(None) > steps_left(-10.0) > steps_left(17.0) > 0
    True
    """
    known = -math.inf if estimated_return is None else estimated_return
    rows: list[tuple[float | None, int]] = _recorded()["left"]  # from the start, when it is None
    return [steps for reached, steps in rows if reached is None or reached <= known][-1]


def is_comparable(config: Config) -> bool:
    """Whether a training learns as the recorded ones did; seed and engine may differ."""
    known = load_preset("fast")
    is_same = not differences(known, config).keys() - {"seed"}
    return is_same and config.until_return == known.until_return
