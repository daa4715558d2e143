"""The result of a training, read from its run directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.run.record import Record


@dataclass(frozen=True)
class Result:
    """The result of a training so far."""

    state: str  # of the run, see `pixelpong.run.record.STATES`
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
    found = Record.read(path)
    greedy, sha256 = found.greedy, ""
    if found.is_done and found.run is not None:
        sha256 = found.run.checkpoints.load_latest().card["about"]["params_sha256"]
    return Result(
        state=found.state,
        problem=found.problem,
        is_done=found.is_done,
        is_won=found.is_won,
        steps=found.steps,
        seconds=greedy.total_seconds if greedy and found.is_won else found.total_seconds,
        final_return=greedy.mean_return if greedy else found.mean_return_100,
        final_ci95=greedy.ci95 if greedy else None,
        params_sha256=sha256,
        curve=tuple(zip(*found.curve(), strict=True)) if found.is_done else (),
    )
