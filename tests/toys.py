"""The toy trainings that the tests share: well under a second each, of games cut short."""

from __future__ import annotations

from typing import Any

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory

SHORT = 300
"""Frames of a short game: 75 steps, in which a point is lost."""

TOY: dict[str, dict[str, Any]] = {
    "classic": {"hidden": 20, "batch_size": 3, "learning_rate": 3e-3},
    "fast": {"hidden": 16, "num_envs": 4, "num_steps": 40},
}


def toy_config(preset: str, **changes: Any) -> Config:
    """Three updates, each saved, in this process; `changes` come on top."""
    common = {"max_frames": SHORT, "engine": "serial", "updates": 3, "save_every": 1}
    return load_preset(preset).updated(common | TOY[preset] | changes, "test")


def with_updates(run: RunDirectory, updates: int) -> RunDirectory:
    """The same run, to be trained until another update."""
    return run.with_config(run.config.updated({"updates": updates}, "test"))


def toy_evaluation(update: int, mean: float, **more: Any) -> dict[str, Any]:
    """A line of ``evaluations.jsonl`` about 200 equal games."""
    found = {"mean_return": mean, "std": 1.0, "ci95": [mean - 0.5, mean + 0.5]}
    return {"update": update, "returns": [mean] * 200, "mean_steps": 9.0} | found | more


def lines_of(run: RunDirectory) -> list[dict[str, Any]]:
    """Every line of metrics, episodes and evaluations, without the wall times."""
    lines = [*run.metrics.read(), *run.episodes.read(), *run.evaluations.read()]
    return [{key: value for key, value in line.items() if key != "timing"} for line in lines]


def result_of(run: RunDirectory) -> tuple[int, str, str, list[dict[str, Any]]]:
    """What two trainings are compared by: update, hashes of the newest checkpoint, lines."""
    checkpoint = run.checkpoints.load_latest()
    hashes = checkpoint.card["about"]["params_sha256"], fingerprint(checkpoint.arrays)
    return checkpoint.update, *hashes, lines_of(run)
