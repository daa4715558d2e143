"""Long jobs in a separate process: reels, moments, weights as pictures, dead units.

The process has a lower priority than a training and is not the server's, so neither waits.
`background` starts it.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pixelpong.agent.choice import find_game, load_agent
from pixelpong.agent.explain import explain
from pixelpong.agent.file import Agent, load_milestone
from pixelpong.env import features
from pixelpong.errors import PixelpongError, expected
from pixelpong.faces.page.moment import make_moment
from pixelpong.faces.page.reel import make_reel
from pixelpong.items import ACTIONS, DOWN, UP
from pixelpong.run.directory import RunDirectory

NICENESS = 10

NUM_UNITS = 40
"""Hidden units whose weights are shown, those with the most influence."""

DEAD_STEPS, DEAD_EVERY = 600, 4
"""Steps of an episode to play, about eight points, and steps between two explanations."""

_REEL_STEPS = 12_000
"""The most steps of a reel; an episode has about 1,500."""


def make_agent_reel(run: RunDirectory | None, number: int) -> Any:
    """The reel of a greedy episode of the agent of this update."""
    which = "best" if run is None else str(number)
    return make_reel(find_game(run, which), _stop_after(_REEL_STEPS))


def explain_moment(run: RunDirectory | None, number: int) -> Any:
    """One moment of a greedy episode of the agent of this update."""
    return make_moment(find_game(run, "best" if run is None else str(number)))


def describe_weights(run: RunDirectory | None, number: int) -> Any:
    """The first layer's weights as pictures, see `picture_units`."""
    return picture_units(load_agent(run, "best" if run is None else str(number)))


def count_dead_units(run: RunDirectory | None, number: int) -> Any:
    """Dead units of the agent of this update over a game of it."""
    assert run is not None
    has_milestone = number in run.milestones.updates()
    agent = (
        load_milestone(run.milestones, number) if has_milestone else load_agent(run, str(number))
    )
    steps = (
        explanation.is_on
        for moment, explanation in explain(agent.play_episode(run.config.seed), agent, DEAD_EVERY)
        if moment.action is not None
    )
    is_alive = np.any(list(itertools.islice(steps, DEAD_STEPS // DEAD_EVERY)), axis=0)
    return {"dead": int((~is_alive).sum()), "of": len(is_alive), "update": number}


def picture_units(agent: Agent) -> dict[str, Any]:
    """Pictures of the first layer, unit by unit.

    Returns:
        ``units``, those with the most influence first: ``unit``, ``weight``, and ``picture``,
        base64 of [80, 80] int8 in 127ths of the unit's largest; ``note``, what they show.
    """
    W1, W2 = (agent.params[name].astype(np.float64) for name in ("W1", "W2"))
    if agent.algorithm == "ppo":
        difference = W2[ACTIONS.index(UP)] - W2[ACTIONS.index(DOWN)]
        say, weights = np.sqrt((difference**2).sum(axis=1)), difference[:, 0]
        note = (
            "How much an active pixel, through its cells, adds to a unit's first sum: the mean of "
            "the inputs for stayed and appeared. Pairs of cells are left out. The weight is UP's "
            "less DOWN's."
        )
    else:
        say, weights = np.abs(W2), W2
        note = "The first layer's weight of each pixel. The weight is that of the unit for UP."
    chosen = np.argsort(-say, kind="stable")[:NUM_UNITS]
    layer = W1[:, chosen]
    if agent.algorithm == "ppo":
        layer = features.spread_cells(layer[..., 0])[:2].mean(axis=0)  # stayed and appeared
    units = [
        {
            "unit": int(unit),
            "weight": float(weights[unit]),
            "picture": base64.b64encode(_as_bytes(layer[..., place])).decode(),
        }
        for place, unit in enumerate(chosen)
    ]
    return {"units": units, "note": note}


def _as_bytes(picture: NDArray[np.float64]) -> bytes:
    largest = np.abs(picture).max()
    scaled = np.rint(picture * (127 / largest if largest else 0.0))
    return scaled.astype(np.int8).tobytes()


def _stop_after(steps: int) -> Callable[[], bool]:
    count = iter(range(steps))
    return lambda: next(count, None) is None


JOBS: dict[str, Callable[[RunDirectory | None, int], Any]] = {
    "agent": make_agent_reel,
    "moment": explain_moment,
    "weights": describe_weights,
    "dead": count_dead_units,
}


def carry_out(path: Path | None, job: str, number: int) -> bytes:
    """The result of a job as JSON.

    Args:
        path: the run's, or the tournament's; None for the package.
        job: one of `JOBS`, or "rally" of a tournament.
        number: of the episode, update or pair.

    Raises:
        PixelpongError: it cannot be done.
    """
    run = None if path is None else RunDirectory.open(path, lambda message: None)
    result = JOBS[job](run, number)
    return json.dumps(result, allow_nan=False, separators=(",", ":")).encode()


def work(pipe: Connection) -> None:
    """Take jobs from `pipe`; send back whether each succeeded, and its result or an error line."""
    silence = os.open(os.devnull, os.O_WRONLY)  # for what libraries print
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    threadpool_limits(1)
    with contextlib.suppress(EOFError, OSError):  # the server has gone
        while True:
            request = pipe.recv()
            try:
                pipe.send((True, carry_out(*request)))
            except (PixelpongError, OSError, ValueError) as error:
                pipe.send((False, " ".join(str(error).split())[:500]))
            except Exception as error:
                got = type(error).__name__
                pipe.send((False, expected("a result", got, "is the run damaged?")))
