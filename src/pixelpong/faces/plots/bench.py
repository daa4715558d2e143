"""The plot of ``bench solve``: every seed's curve, their median and band. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.faces.plots.drawing import (
    Figure,
    house_style,
    line_style,
    new_figure,
    render,
    require_matplotlib,
    write_files,
)

_GRID = 200


def plot_solve(report: dict[str, Any], path: Path) -> None:
    """Draw the estimated return over the steps played.

    Args:
        report: of `pixelpong.bench.solve.solve`.
        path: the file; its ending says of which kind, as svg or png.

    Raises:
        ConfigError: matplotlib is not installed.
        RunError: the file cannot be written.
    """
    require_matplotlib("bench")
    with house_style():
        content = render(_draw(report), path.suffix.removeprefix("."))
    write_files(path.parent, {path.name: content})


def _draw(report: dict[str, Any]) -> Figure:
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    curves = []
    for number, result in enumerate(report["seeds"]):
        steps, values = _known(result["curve"])
        curves.append((steps, values))
        style = line_style(number) | {"linewidth": 1}
        axes.plot(steps, values, **style, label=f"seed {result['seed']}")
        if result["is_won"]:
            axes.plot(result["steps"] / 1e6, 18, marker="v", color="black", markersize=6, zorder=5)
    grid, low, middle, high = _band(curves)
    axes.fill_between(grid, low, high, alpha=0.15, color="black", linewidth=0)
    axes.plot(grid, middle, color="black", linewidth=2, label="median, band of all")
    axes.axhline(18, color="grey", linestyle=":", linewidth=1)
    axes.set(
        xlabel="steps of the agent, millions",
        ylabel="return, estimated from the last 1,000 points",
        ylim=(-21.5, 21.5),
        title="From nothing to winning (▼ the checkpoint that passed)",
    )
    axes.legend(loc="lower right", fontsize=8)
    return figure


def _known(curve: dict[str, Sequence[Any]]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    pairs = [
        (step / 1e6, value)
        for step, value in zip(curve["steps"], curve["estimated_return"], strict=True)
        if value is not None
    ]
    steps, values = zip(*pairs, strict=True) if pairs else ((0.0,), (-21.0,))
    return np.array(steps), np.array(values)


def _band(curves: Sequence[tuple[Any, Any]]) -> tuple[Any, ...]:
    """Lowest, median and highest over the seeds; one that has ended stays where it ended."""
    grid = np.linspace(0, max(steps[-1] for steps, _ in curves), _GRID)
    table = np.array([np.interp(grid, steps, values) for steps, values in curves])
    return grid, table.min(axis=0), np.median(table, axis=0), table.max(axis=0)
