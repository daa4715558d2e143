"""The picture of a tournament: the ladder of ratings, and who plays how well against whom."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.faces.plots.drawing import (
    BLUE,
    Figure,
    house_style,
    new_figure,
    plain,
    render,
    require_matplotlib,
    saliency_colours,
    write_files,
)

_MAX_NUMBERED = 20
"""Players with whom the matrix still has room for numbers."""

_LONGEST_NAME = 24


def plot_ladder(report: Mapping[str, Any], path: Path) -> None:
    """Draw what came of a tournament.

    Args:
        report: as in ``tournament.json``.
        path: the file; its ending says of which kind, as svg or png.

    Raises:
        ConfigError: matplotlib is not installed.
        RunError: the file cannot be written.
    """
    require_matplotlib()
    with house_style():
        content = render(draw_ladder(report), path.suffix.removeprefix("."))
    write_files(path.parent, {path.name: content})


def draw_ladder(report: Mapping[str, Any]) -> Figure:
    """Ratings with 95 % intervals, and the mean return of each row against each column."""
    players = report["players"]
    size = len(players)
    names = [f"{plain(_shorten(each['name']))}  {rank}" for rank, each in enumerate(players, 1)]
    side = 2 + 0.42 * size
    figure = new_figure(side + 5.5, max(side * 0.75, 3))
    left, right = figure.subplots(1, 2, width_ratios=[5, side], sharey=True)
    ratings = np.array([each["rating"] for each in players])
    ends = np.abs(np.array([each["ci95"] for each in players]) - ratings[:, None]).T
    left.errorbar(ratings, range(size), xerr=ends, fmt="o", color=BLUE, capsize=4)
    left.set(xlabel="rating, Elo", yticks=range(size), ylim=(size - 0.5, -0.5))
    left.set_yticklabels(names)
    left.set_title("Ratings, 95 % interval")
    matrix = np.array(report["matrix"], np.float64)
    image = right.imshow(matrix, cmap=saliency_colours(), vmin=-21, vmax=21, aspect="auto")
    right.set(xticks=range(size), xlabel="against the player of this rank")
    right.set_xticklabels(range(1, size + 1))
    right.set_title("Mean return of the row against the column")
    right.grid(visible=False)
    if size <= _MAX_NUMBERED:
        for (row, column), value in np.ndenumerate(matrix):
            if np.isfinite(value):
                colour = "white" if abs(value) > 14 else "black"
                text = f"{value:+.0f}".replace("-", "−")
                right.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    figure.colorbar(image, ax=right, label="mean return")
    return figure


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"…{name[1 - _LONGEST_NAME :]}"
