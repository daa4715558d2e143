"""The result of a training, read from its run directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.run.directory import RunDirectory
from pixelpong.run.states import STOPPED, WON
from pixelpong.run.summary import Summary, summarize


@dataclass(frozen=True)
class Result:
    """The result of a training so far."""

    state: str  # of the run, see `pixelpong.run.states`
    problem: str  # why it failed, or ""
    is_done: bool  # whether nothing is left to train
    is_won: bool
    steps: int
    seconds: float | None  # until it won, evaluations included; otherwise of the training
    final_return: float | None  # mean of greedy play, or else of the last 100 episodes
    final_ci95: tuple[float, float] | None  # of greedy play
    params_sha256: str  # of the final parameters; "" until it is done
    curve: tuple[tuple[int, float], ...]  # (steps, estimated return), where there is an estimate

    def to_row(self) -> dict[str, Any]:
        """As a row of the table."""
        row = {name: value for name, value in vars(self).items() if name != "curve"}
        row["final_low"], row["final_high"] = row.pop("final_ci95") or (None, None)
        return row


def read_result(path: Path) -> Result:
    """The result of the run at `path`, as it is now."""
    found = summarize(path)
    is_done = _is_done(found)
    greedy, sha256, curve = found.greedy, "", []
    if is_done:
        run = RunDirectory.open(path)
        sha256 = run.checkpoints.load_latest().card["params_sha256"]
        curve = [(line["steps"], line["estimated_return"]) for line in run.metrics.read()]
    is_won = greedy is not None and greedy.is_won
    return Result(
        state=found.state,
        problem=found.problem,
        is_done=is_done,
        is_won=is_won,
        steps=found.steps,
        seconds=greedy.seconds if greedy is not None and is_won else found.seconds,
        final_return=greedy.mean if greedy else found.mean_return_100,
        final_ci95=greedy.ci95 if greedy else None,
        params_sha256=sha256,
        curve=tuple((steps, value) for steps, value in curve if value is not None),
    )


def _is_done(found: Summary) -> bool:
    """Whether nothing is left; a training killed in its last evaluation must play that again."""
    if found.state != STOPPED or found.config is None:
        return found.state == WON
    is_judged = found.greedy is not None and found.greedy.update == found.update
    return is_judged or found.config.budget.until_return is None
