"""Small environments of all kinds, in the middle of their games."""

from __future__ import annotations

from typing import Any

import numpy as np

import pixelpong
from pixelpong.atari.envs.plug import find_observations
from pixelpong.envs.plugs import PLUGS

Kinds = dict[str, tuple[int, str, dict[str, Any]]]
"""Environments by name: the number of games, the observation, the options of `make_vec`."""


def with_every_observation(kinds: Kinds) -> Kinds:
    """These kinds, and one more for each observation of a game with a plug that is not in them."""
    known = {observation for _, observation, _ in kinds.values()}
    return kinds | {
        f"{game}, {name}": (2, name, {"game": game})
        for game in PLUGS
        for name in find_observations(PLUGS, game)
        if name not in known
    }


SHORT = {"repeat_action_probability": 0.25, "max_num_frames_per_episode": 40, "noop_max": 6}
KINDS = with_every_observation({
    "field, two threads": (3, "field", {"num_threads": 2}),
    "atari, one thread": (1, "atari", {"num_threads": 1, "img_height": 20, "img_width": 20}),
    "in the same step": (3, "pixels", {"num_threads": 3, "autoreset_mode": "SameStep"}),
    "an opponent": (2, "field", {"num_threads": 2, "opponent": "club"}),
    "one array of observations": (2, "frame", {"num_threads": 2, "copy": False}),
})  # fmt: skip


def make(kind):
    """An environment in the middle of its games, and the same one again."""
    size, observation, options = KINDS[kind]
    each = [pixelpong.make_vec(size, observation, **SHORT | options) for _ in range(2)]
    for envs in each:
        envs.reset(seed=4)
        for step in range(9):  # the next one ends the episodes
            envs.step(np.full(size, step % 6))
    return each


def state_of(envs):
    """All that the future of its games depends on, as bytes."""
    return [each.tobytes() for each in envs.clone_state()]
