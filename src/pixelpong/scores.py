"""How much random play, a person and DQN score, and scores measured by the first two.

The numbers are data, ``scores.json``, which names their sources. They are known for the 57 games
that publications compare.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Scores:
    """The mean scores of three players of a game."""

    random: float  # every action drawn uniformly
    human: float  # a professional tester of games
    dqn: float  # Mnih et al. (2015)'s agent after 200 million frames, without sticky ones


@functools.cache
def _facts() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("scores.json").read_text("utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts


def source() -> str:
    """Return the publication that the scores are from."""
    return str(_facts()["source"])


def find_scores(game: str) -> Scores | None:
    """Find the scores of a game, by its name in ale-py; None if they are not known.

    >>> find_scores("breakout")
    Scores(random=1.7, human=30.5, dqn=385.5)
    >>> find_scores("tetris") is None
    True
    """
    line = _facts()["scores"].get(game)
    return None if line is None else Scores(**line)


def human_normalised(game: str, score: float | None) -> float | None:
    """Return a score as a share: 0 is random play, 1 is a person; None if one is not known.

    Source: Mnih et al. (2015).

    >>> human_normalised("breakout", 1.7), human_normalised("breakout", 30.5)
    (0.0, 1.0)
    """
    scores = find_scores(game)
    if scores is None or score is None:
        return None
    return (score - scores.random) / (scores.human - scores.random)
