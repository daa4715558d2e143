"""What the page keeps of a line: the known figures, whatever else somebody wrote into it."""

from __future__ import annotations

from typing import Any

from pixelpong.errors import PixelpongError
from pixelpong.play.replay import Replay
from pixelpong.run.tail import number_of

MAX_RETURNS = 100_000
"""Of one evaluation; the command line takes no more either."""


def pick_replay(line: dict[str, Any]) -> dict[str, Any] | None:
    """What a replay's line has to say, whatever else stands in it; None where it is none."""
    try:
        return Replay.from_line(line).to_line()
    except PixelpongError:
        return None


def pick_evaluation(line: dict[str, Any]) -> dict[str, Any] | None:
    """The same of an evaluation's."""
    ends, returns = line.get("ci95"), line.get("returns")
    numbers = [number_of(line.get(name)) for name in ("mean_return", "std", "mean_steps")]
    interval = [number_of(end) for end in ends] if isinstance(ends, list) else []
    if len(interval) != 2 or None in (numbers[0], *interval):
        return None
    return {
        "update": line["update"],
        **dict(zip(("mean_return", "std", "mean_steps"), numbers, strict=True)),
        "ci95": interval,
        "returns": returns if _is_short(returns) else [],
    }


def _is_short(returns: Any) -> bool:
    is_list = isinstance(returns, list) and len(returns) <= MAX_RETURNS
    return is_list and all(number_of(each) is not None for each in returns)
