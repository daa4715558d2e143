"""A run's agent as one small file, as `pixelpong watch` and `play` use without a run.

The file keeps the rows of the first layer that training has changed and play has needed. Their
numbers are rounded, those of rare rows more, and compressed; the less room there is, the more they
are rounded. What play needs is seen in games against the cartridge; of an agent trained for two,
also in games against itself. The other rows are as the seed drew them. Leaving out and rounding
changes the agent a little. So the file's own agent is evaluated, and the file has the result, with
the configuration and the hash of the trained parameters.

    pixelpong export RUN --agent FILE
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import Agents
from pixelpong.agent.file import Agent, squeeze
from pixelpong.config import Config
from pixelpong.errors import Interrupted
from pixelpong.faces.api import evaluate
from pixelpong.faces.policy import Policy
from pixelpong.items import BUILTIN, SELF, Item
from pixelpong.play.player import Player
from pixelpong.pong.emulator import Emulator
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole
from pixelpong.run.words import signed
from pixelpong.seeding import make_rng

SURVEY_STEPS = 100_000
"""Steps of sampled play, enough to meet every row that is needed."""

_ROW_OVERHEAD = 4
"""Bytes of a row besides its numbers: its place, and its step."""

_FINEST, _COARSER, _SMALLEST_STEP = 0.2, 1.05, 1e-6
"""The finest steps, in parts of what the rows change; the least that they become coarser by."""

_STEPS = 250
"""Steps of a game that are surveyed at once."""

EVALUATION_SEED = 1_000_003
"""Seed of the evaluation: no training uses it, so no agent was chosen by these games."""


def write_agent(
    run: RunDirectory,
    which: str,
    path: Path,
    *,
    max_bytes: int,
    episodes: int,
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Write the file, completely or not at all.

    Args:
        run: the agent's run.
        which: see `pixelpong.agent.choice.Agents.load`.
        path: of the file.
        max_bytes: the size limit of its first layer.
        episodes: of its evaluation, each of greedy and of sampled play.
        should_stop: called from time to time.

    Raises:
        CheckpointError: there is no such agent.
        NumericsError: its numbers are too large for a small file.
        RunError: the file cannot be written.
        Interrupted: `should_stop` returned True; nothing is written.
    """
    agent = Agents.of_run(run).load(which)
    counts = _survey(agent, run.config, should_stop)
    rows, steps = _choose_steps(agent, max_bytes, counts)
    small = Agent.decode(agent.encode(rows, steps), path)
    results = {}
    for way in ("greedy", "sampled"):
        how = {"sampled": way == "sampled", "seed": EVALUATION_SEED}
        results[way] = evaluate(Policy(small), episodes, **how).to_dict()
    about = agent.about | {
        "config": vars(run.config),
        "evaluation_seed": EVALUATION_SEED,
        "evaluation": results,
        "versions": run.versions,
    }
    shipped = dataclasses.replace(agent, about=about)
    content = shipped.encode(rows, steps)
    write_whole(path, content)
    return {"file": str(path), "bytes": len(content), "rows": len(rows), **about}


def describe_agent(report: dict[str, Any]) -> str:
    """The report of `write_agent`, with how well the agent plays."""
    lines = [
        f"{report['file']}: update {report['update']}, {report['rows']:,} rows of the first layer, "
        f"{report['bytes']:,} bytes"
    ]
    for way, result in report["evaluation"].items():
        lines.append(f"{way}: mean return {signed(result['mean_return'], 2)}")
    return "\n".join(lines)


def _choose_steps(
    agent: Agent, max_bytes: int, counts: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The first-layer rows to keep, ascending, and the step of each.

    An error in a row that is needed p times a game adds p times its square to the errors of the
    hidden layer. A step of p to the power of -1/2 would keep that sum smallest, for numbers that
    are as large in all rows; rare rows have changed less, and -1/4 was measured to be better.
    """
    W1 = agent.params["W1"]
    rows = np.flatnonzero((counts > 0) & W1.reshape(len(W1), -1).any(axis=1))
    change = agent.change_of(rows)
    shares = counts[rows] / counts.max()
    signal = np.sqrt((shares * np.square(change).mean(axis=1)).sum() / np.sqrt(shares).sum())
    steps = max(_FINEST * signal, _SMALLEST_STEP) * shares**-0.25
    while True:
        is_kept = (np.abs(change) > steps[:, None] / 2).any(axis=1)
        size = len(squeeze(change[is_kept] / steps[is_kept, None]))
        if size + _ROW_OVERHEAD * is_kept.sum() <= max_bytes or not is_kept.any():
            return rows[is_kept], steps[is_kept]
        steps = steps * max(_COARSER, (size / max_bytes) ** 0.8)


def _survey(agent: Agent, config: Config, should_stop: Callable[[], bool]) -> NDArray[np.int64]:
    """How often sampled play needs each row of the first layer."""
    if agent.algorithm != "ppo":
        return _survey_classic(agent, should_stop)
    counts = _survey_fast(agent, BUILTIN, should_stop)
    if config.opponent != BUILTIN:
        counts += _survey_fast(agent, SELF, should_stop)
    return counts


def _survey_fast(agent: Agent, opponent: str, should_stop: Callable[[], bool]) -> NDArray[np.int64]:
    """The rows needed against an opponent; against itself, those of both sides."""
    player = Player(agent.protocol, "ppo")
    counts = np.zeros(len(agent.params["W1"]), np.int64)
    rng, stream = make_rng(0, "play"), None
    for _ in range(0, SURVEY_STEPS, _STEPS):
        if should_stop():
            raise Interrupted
        item = Item("train", 0, 0, 0, steps=_STEPS, streams=stream, opponent=opponent)
        played = player.play(item, agent.params, rng)
        stream = played.streams
        for side in played.sides:
            counts += np.bincount(side.indices, minlength=len(counts))
    return counts


def _survey_classic(agent: Agent, should_stop: Callable[[], bool]) -> NDArray[np.int64]:
    """The rows that the classic network needs."""
    emulator, policy = Emulator(agent.protocol), agent.make_network()
    counts = np.zeros(len(agent.params["W1"]), np.int64)
    rng = make_rng(0, "play")
    width = 2 + agent.protocol.max_frame_skip
    for step in range(SURVEY_STEPS):
        if emulator.is_over or step == 0:
            emulator.reset()
            policy.reset()
            if should_stop():
                raise Interrupted
        draws = rng.random(width).tolist()
        action = policy.act(emulator.screen, draws[0])
        counts[policy.inputs()] += 1
        emulator.step(action, draws[1:])
    return counts
