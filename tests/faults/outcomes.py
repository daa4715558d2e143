"""All that a training leaves, but for its clocks: what two of them are compared by."""

from __future__ import annotations

from typing import Any

from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory


def outcome_of(run: RunDirectory) -> dict[str, Any]:
    """The last checkpoint to the bit, every line, every agent; wall times are left out."""
    checkpoint = run.checkpoints.load_latest()
    found: dict[str, Any] = {"arrays": fingerprint(checkpoint.arrays)}
    found["card"] = _without_clocks(checkpoint.card)
    for file in run.line_files:
        lines = list(file.read())
        for line in lines:
            line.pop("timing", None)
        found[file.path.name] = lines
    for path in run.agents.folder.iterdir():
        found[f"agent {path.name}"] = path.read_bytes()
    return found


def _without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_clocks(v) for name, v in value.items() if "seconds" not in name}
    return [_without_clocks(each) for each in value] if isinstance(value, list) else value


def updates_of(run: RunDirectory) -> list[int]:
    """The updates of which there is a line, in the order of the file."""
    return [line["update"] for line in run.metrics.read()]
