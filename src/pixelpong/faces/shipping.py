"""A run's agent as one small file: what `pixelpong watch` and `play` have without a run.

Of the first layer only the rows stay that training has changed and play has needed, those that
matter most if there is not room for all, with half a byte a number; the others are as the seed drew
them. What is left out and rounded is little, but not nothing: so the file's own agent is
evaluated, and the result stands in it, beside the configuration and the hash of the parameters as
they were trained.

Made with: pixelpong export RUN --agent FILE
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import load_agent
from pixelpong.agent.file import Agent, Start, decode_agent, encode_agent
from pixelpong.config import Config
from pixelpong.env import make_emulator
from pixelpong.errors import Interrupted
from pixelpong.faces.api.evaluation import evaluate_ways
from pixelpong.faces.text import describe_returns
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole
from pixelpong.seeding import make_rng

SURVEY_STEPS = 100_000
"""Steps of sampled play in which every row that is needed shows itself."""

_ROW_OVERHEAD = 4
"""Bytes of a row beside its numbers: its place, and its scale."""

_MAX_ATTEMPTS, _LIKENESS = 4, 0.3
"""Attempts of a training that are looked for, and the correlation that tells the right one."""

EVALUATION_SEED = 1_000_003
"""Of the evaluation: no training has this one, so no agent was chosen by these games."""


def write_agent(
    run: RunDirectory,
    which: str,
    path: Path,
    *,
    max_bytes: int,
    episodes: int,
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Write the file, whole or not at all.

    Args:
        run: whose agent it is.
        which: `pixelpong.agent.choice.load_agent`.
        path: of the file.
        max_bytes: that its first layer may take.
        episodes: of its evaluation, each of greedy and of sampled play.
        should_stop: asked now and then.

    Raises:
        CheckpointError: there is no such agent.
        NumericsError: its numbers are too large for a small file.
        RunError: the file cannot be written.
        Interrupted: `should_stop` said so; nothing has been written.
    """
    agent = load_agent(run, which)
    start = find_start(agent, run.config)
    rows = _choose_rows(agent, start, max_bytes, should_stop)
    small = decode_agent(encode_agent(agent, rows, bits=4, start=start), str(path))
    ways = evaluate_ways(run.config, small.params, EVALUATION_SEED, episodes, should_stop)
    results = {way: evaluation.to_dict() for way, evaluation in ways.items()}
    about = agent.about | {
        "config": run.config.to_flat(),
        "evaluation_seed": EVALUATION_SEED,
        "evaluation": results,
        "versions": run.versions,
    }
    content = encode_agent(dataclasses.replace(agent, about=about), rows, bits=4, start=start)
    write_whole(path, content)
    return {"file": str(path), "bytes": len(content), "rows": len(rows), **about}


def describe_agent(report: dict[str, Any]) -> str:
    """What was written, and how well it plays."""
    lines = [
        f"{report['file']}: update {report['update']}, {report['rows']:,} rows of the first layer, "
        f"{report['bytes']:,} bytes"
    ]
    lines += [describe_returns(name, result) for name, result in report["evaluation"].items()]
    return "\n".join(lines)


def find_start(agent: Agent, config: Config) -> Start | None:
    """What the agent's first layer was drawn from; None if that is not known any more.

    Most rows have changed little, so the one that was drawn is like the one that was trained.
    """
    W1 = agent.params["W1"]
    if agent.algorithm != "ppo":
        return None
    is_known = W1.any(axis=(1, 2))  # a milestone has no others
    trained = W1[is_known].ravel().astype(np.float64)
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        start = Start(config.seed, attempt)
        drawn = start.draw(W1.shape)[is_known].ravel()
        if trained.size and np.corrcoef(drawn, trained)[0, 1] > _LIKENESS:
            return start
    return None


def _choose_rows(
    agent: Agent, start: Start | None, max_bytes: int, should_stop: Callable[[], bool]
) -> NDArray[np.intp]:
    """The first-layer rows that matter most to sampled play, ascending."""
    counts, W1 = _survey(agent, should_stop), agent.params["W1"]
    rows = np.flatnonzero((counts > 0) & W1.reshape(len(W1), -1).any(axis=1))
    change = W1[rows] if start is None else W1[rows] - start.draw(W1.shape)[rows]
    size = np.linalg.norm(change.reshape(len(rows), W1[0].size), axis=1)
    num_kept = max_bytes // (-(-W1[0].size // 2) + _ROW_OVERHEAD)
    return np.sort(rows[np.argsort(-counts[rows] * size, kind="stable")[:num_kept]])


def _survey(agent: Agent, should_stop: Callable[[], bool]) -> NDArray[np.int64]:
    """How often sampled play needs each row of the first layer."""
    emulator, policy = make_emulator(agent.protocol), agent.make_network()
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
