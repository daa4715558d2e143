"""What came of a training, read from its run directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.states import STOPPED, WON
from pixelpong.run.summary import Summary, summarize


@dataclass(frozen=True)
class Result:
    """What came of a training so far.

    Attributes:
        state: of the run, see `pixelpong.run.states`.
        problem: why it failed; "" if it did not.
        is_done: whether nothing is left to train.
        steps: decisions of the agent.
        seconds: wall time until it won, evaluations included; if it did not, of the training.
        final_return: mean of greedy play if it was evaluated, else of the last 100 episodes.
        final_ci95: 95 % interval of greedy play.
        params_sha256: of the final parameters; "" until it is done.
        curve: (steps, estimated return), where there is an estimate.
    """

    state: str
    problem: str
    is_done: bool
    is_won: bool
    steps: int
    seconds: float | None
    final_return: float | None
    final_ci95: tuple[float, float] | None
    params_sha256: str
    curve: tuple[tuple[int, float], ...]

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
        sha256 = fingerprint(run.checkpoints.load_latest().params)
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
    """One that was killed while its last games were evaluated has these to play again."""
    if found.state != STOPPED or found.config is None:
        return found.state == WON
    is_judged = found.greedy is not None and found.greedy.update == found.update
    return is_judged or found.config.budget.until_return is None
