"""What games bring of their own to their environments: today, Pong.

A second game with something of its own has a `Plug` here, and its parts in a room like `pong`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from pixelpong.atari.envs.plug import Plug
from pixelpong.envs.opponents import AgentOpponents
from pixelpong.items import DOWN, STAY, UP
from pixelpong.pong.native import PONG, for_two
from pixelpong.pong.observations import OBSERVATIONS

# For type checkers; a test compares them with what there is.
Observation = Literal["atari", "frame", "grayscale", "ram", "pixels", "field"]
Actions = Literal["six", "three", "two"]

DEFAULT_GAME = "pong"


def _describe(game: np.void) -> dict[str, Any]:
    """Return the frames and the points of the episode."""
    won, lost = game["points"].tolist()
    return {"frames": int(game["num_frames"]), "points_won": won, "points_lost": lost}


PLUGS = {
    "pong": Plug(
        PONG,
        for_two=for_two(),
        observations=OBSERVATIONS,
        # In the numbers of ALE/Pong-v5.
        action_sets={"six": (0, 1, 2, 3, 4, 5), "three": (STAY, UP, DOWN), "two": (UP, DOWN)},
        make_opponents=AgentOpponents,
        coins="pixelpong",
        describe=_describe,
    ),
}


def describe_with(general: str | None, own: str) -> str:
    """Return a general environment's docstring with `own` in place of its example."""
    return f"{str(general).partition('    >>> ')[0].rstrip()}\n\n{own}"
