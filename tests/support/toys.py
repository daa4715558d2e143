"""The toy trainings that the tests share: well under a second each, of games cut short."""

from __future__ import annotations

from typing import Any

from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.loop import Updated, train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory

SHORT = 300  # frames of a short game: 75 steps, in which a point is lost

TOY: dict[str, dict[str, Any]] = {
    "classic": {"hidden": 20, "batch_size": 3, "learning_rate": 3e-3},
    "fast": {"hidden": 16, "num_envs": 4, "num_steps": 40},
    "atari": {
        "game": "breakout", "hidden": 16, "num_envs": 4, "num_steps": 40, "anneal_steps": 480,
        "final_episodes": 0,
    },
}  # fmt: skip


def toy_config(preset: str, **changes: Any) -> Config:
    """Three updates, each saved, in this process; `changes` come on top."""
    common: dict[str, Any] = {"max_frames": SHORT, "engine": "serial", "save_every": 1}
    common |= {"updates": 3, "until_return": None}
    return load_preset(preset).updated(common | TOY[preset] | changes, "test")


def with_updates(run: RunDirectory, updates: int) -> RunDirectory:
    """The same run, to be trained until another update."""
    return run.with_config(run.config.updated({"updates": updates}, "test"))


def stop_after(run: RunDirectory, update: int) -> None:
    """Train, and stop as soon as an update is complete."""
    done = [0]

    def show(event: object) -> None:
        if isinstance(event, Updated):
            done.append(event.progress.update)

    outcome = train(run, show, lambda: done[-1] >= update)
    assert (outcome.reason, outcome.progress.update) == ("interrupted", update)


def toy_evaluation(update: int, mean: float, **more: Any) -> dict[str, Any]:
    """A line of ``evaluations.jsonl`` about 200 equal games."""
    found = {"mean_return": mean, "std": 1.0, "ci95": [mean - 0.5, mean + 0.5]}
    return {"update": update, "returns": [mean] * 200, "mean_steps": 9.0} | found | more


def result_of(run: RunDirectory) -> dict[str, Any]:
    """What a training comes to: its last checkpoint and every line, without the wall times."""
    checkpoint = run.checkpoints.load_latest()
    found: dict[str, Any] = {"arrays": fingerprint(checkpoint.arrays)}
    found["card"] = _without_times(checkpoint.card)
    for file in run.line_files:
        found[file.path.name] = _without_times(list(file.read()))
    return found


def same_training(run: RunDirectory, other: RunDirectory) -> list[str]:
    """The names of all in which two trainings differ, their saved agents too."""
    results = []
    for each in run, other:
        agents = {path.name: path.read_bytes() for path in each.agents.folder.glob("[!.]*")}
        results.append(result_of(each) | agents)
    one, two = results
    return [name for name in one | two if one.get(name) != two.get(name)]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        kept = (name for name in value if name != "timing" and "seconds" not in name)
        return {name: _without_times(value[name]) for name in kept}
    return [_without_times(each) for each in value] if isinstance(value, list) else value
