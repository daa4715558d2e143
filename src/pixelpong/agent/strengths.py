"""How strong the agents in the package are, as a tournament has measured it.

The file `strengths.json` beside them holds the tournament's ratings, and how often a scripted
player with a person's reaction beats each. ``benchmarks/strengths.py`` writes both, agents and
file.

Covered: the file, and its figures in plain words. Not covered: the tournament
(`pixelpong.tournament`), the agents themselves (`pixelpong.agent.file`).
"""

from __future__ import annotations

import functools
import importlib.resources
from dataclasses import dataclass
from typing import Annotated

from pixelpong.schema import Count, Figure, Meta, Return, decode

FILE = "strengths.json"

PERSON = "follower-200-noisy"
"""The scripted player that stands for a person: it sees the ball 200 ms late and may misjudge it.

The one that never misjudges, `follower-200`, is weaker: its paddle is always where the ball was.
"""

_FOLLOWER = "a player that follows the ball with a reaction of 200 ms"

_Share = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True)
class Strength:
    """How strong an agent is.

    Attributes:
        params_sha256: of the trained parameters, as in `Agent.about`.
        rating: in the tournament, as in `pixelpong.tournament.ratings`.
        ci95: its 95 % interval.
        follower_share: the share of games against the agent that `PERSON` wins.
        games: how many those were.
        returns: the agent's mean return against each other player.
    """

    params_sha256: str
    rating: Figure
    ci95: tuple[Figure, Figure]
    follower_share: _Share
    games: Count
    returns: dict[str, Return]

    def describe(self) -> str:
        """The strength in words, without the agent's name.

        >>> Strength("", -35.2, (-50, -20.3), 0.88, 20, {}).describe().split("; ")[0]
        'rating −35 (−50 to −20)'
        """
        low, high = map(_sign, self.ci95)
        share = describe_share(self.follower_share)
        return f"rating {_sign(self.rating)} ({low} to {high}); {_FOLLOWER} wins {share} against it"


def _sign(number: float) -> str:
    return f"{number:+.0f}".replace("-", "−")


def describe_share(share: float) -> str:
    """How many games a share of them is, in plain words.

    >>> [describe_share(share) for share in (0, 0.02, 0.12, 1)]
    ['no game', 'hardly any game', '1 of 10 games', 'every game']
    """
    tenths = round(10 * share)
    if share in (0, 1):
        return "every game" if share else "no game"
    if tenths in (0, 10):
        return "nearly every game" if tenths else "hardly any game"
    return f"{tenths} of 10 games"


def describe_strengths(which: str) -> str:
    """The strengths as a small table.

    Args:
        which: the name of an agent in the package; otherwise all of them are in it.
    """
    strengths = read_strengths()
    chosen = {which: strengths[which]} if which in strengths else strengths
    lines = [
        f"  {name:<9} rating {_sign(each.rating):>5}   {describe_share(each.follower_share)}"
        for name, each in chosen.items()
    ]
    if not lines:
        return "the strengths of the agents in the package are not known"
    return "\n".join(["ratings, and what a player with a reaction of 200 ms wins:", *lines])


@dataclass(frozen=True)
class _File:
    """The content that is read; the file also says how it was measured."""

    strengths: dict[str, Strength]


@functools.cache
def read_strengths() -> dict[str, Strength]:
    """The strengths of the agents in the package by name, the weakest first.

    Empty if the file is missing or damaged: nothing but words depends on it.
    """
    file = importlib.resources.files("pixelpong").joinpath("agent", "shipped", FILE)
    try:
        return decode(file.read_bytes(), _File).strengths
    except (OSError, ValueError):
        return {}
