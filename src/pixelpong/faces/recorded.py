"""The recorded trainings of the preset ``fast``: a yardstick for others."""

from __future__ import annotations

import functools
import importlib.resources
import json

from pixelpong.config import Config
from pixelpong.config.presets import load_preset


def recorded_steps() -> list[int]:
    """Steps to the win of each, from ``benchmarks/solve.json``."""
    file = importlib.resources.files("pixelpong.faces").joinpath("recorded_steps.json")
    steps: list[int] = json.loads(file.read_text("utf-8"))
    return steps


@functools.cache
def _table() -> tuple[int, list[tuple[float, int]]]:
    """Steps to the win from the start, and from when an estimated return was first reached."""
    file = importlib.resources.files("pixelpong.faces").joinpath("recorded_left.json")
    (_, first), *rows = json.loads(file.read_text("utf-8"))
    return first, [(reached, steps) for reached, steps in rows]


def steps_left(estimated_return: float | None) -> int:
    """Steps to the win from this estimated return, by the median of the recorded trainings.

    The table in ``recorded_left.json`` is made from the curves in ``benchmarks/solve.json``.

    >>> steps_left(None) > steps_left(-10.0) > steps_left(17.0) > 0
    True
    """
    first, rows = _table()
    if estimated_return is None:
        return first
    known = [steps for reached, steps in rows if reached <= estimated_return]
    return known[-1] if known else first


def is_comparable(config: Config) -> bool:
    """Whether a training learns as the recorded ones did; seed and engine may differ."""
    known = load_preset("fast")
    names = ("learning", "ppo", "network", "environment")
    is_same = all(getattr(config, name) == getattr(known, name) for name in names)
    return is_same and config.budget.until_return == known.budget.until_return


def rank(steps: int) -> tuple[int, int]:
    """The rank of a training that won after `steps`, and how many there are including it.

    >>> rank(1)
    (1, 21)
    """
    recorded = recorded_steps()
    return 1 + sum(other < steps for other in recorded), len(recorded) + 1
