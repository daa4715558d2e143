"""The first layer as pictures: for each hidden unit, the weight of each pixel of the field.

White is positive, black negative, grey zero, as in Karpathy's "Pong from Pixels". Inputs that were
never on still have their random weights, which mean nothing: they are drawn grey. A unit of the
gated network sees each pixel through thousands of inputs, whose random weights would hide what was
learned; so the pictures show its change since the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.legend import PIXEL_NAMES
from pixelpong.agent.network import APPEARED, STAYED, VANISHED
from pixelpong.config import Config
from pixelpong.env import features
from pixelpong.faces.plots.drawing import Figure, new_figure
from pixelpong.faces.plots.subjects import Subject
from pixelpong.items import ACTIONS, DOWN, UP
from pixelpong.learn import gated
from pixelpong.learners import rows_in
from pixelpong.run.checkpoints import Checkpoint
from pixelpong.seeding import make_rng

_CLASSIC_GRID = (5, 8)
"""Rows and columns: 40 units, as many as in Karpathy's picture."""

_GATED_UNITS = 10
"""Columns."""

_STATES = (STAYED, APPEARED, VANISHED)
"""In the order of the network's inputs."""

_AGENT_BAND = features.PAIR_COLUMNS // features.PAIR_BAND - 1
"""The rightmost columns, in which the agent's paddle is."""

_PAIR_ASPECT = features.PAIR_SHAPE[0] / features.PAIR_SHAPE[1]
"""Height by width of a cell that forms pairs."""


def draw_weights(subject: Subject) -> Figure:
    """The weights of the best checkpoint.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    checkpoint = subject.run.checkpoints.load_best()
    is_gated = subject.run.config.learning.algorithm == "ppo"
    return (_draw_gated if is_gated else _draw_classic)(subject, checkpoint)


def _draw_classic(subject: Subject, checkpoint: Checkpoint) -> Figure:
    W2 = checkpoint.params["W2"]
    W1 = _without_untouched(checkpoint.params["W1"], checkpoint.optimizer["W1"])
    rows, columns = _CLASSIC_GRID
    chosen = _strongest(np.abs(W2) * np.linalg.norm(W1, axis=0))[: rows * columns]
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = new_figure(1.45 * columns + 0.4, 1.72 * rows + 1.1)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, unit in zip(panels, chosen, strict=False):
        _tile(axes, W1[:, unit].reshape(80, 80))
        axes.set_title(f"{'▲' if W2[unit] > 0 else '▼'} {abs(W2[unit]):.2f}", fontsize=10, pad=3)
    for axes in panels[len(chosen) :]:
        axes.set_axis_off()
    figure.suptitle(
        f"First-layer weights of {subject.name}, update {checkpoint.update}: the {len(chosen)} "
        f"strongest of {len(W2)} units\n"
        "white: the unit is more active where a pixel appears, black: less; each picture has its "
        "own scale\n▲ ▼ the active unit moves the decision to UP or DOWN, with this weight",
        fontsize=11,
    )
    return figure


def _draw_gated(subject: Subject, checkpoint: Checkpoint) -> Figure:
    W1, W2, memory = (
        checkpoint.params["W1"], checkpoint.params["W2"], checkpoint.optimizer["v.W1"],
    )  # fmt: skip
    change = change_of(W1, memory, subject.run.config)
    what = "First-layer weights" if change is None else "What training did to the first layer"
    W1 = _without_untouched(W1, memory) if change is None else change
    leaning = W2[ACTIONS.index(UP)] - W2[ACTIONS.index(DOWN)]
    strength = np.linalg.norm(leaning, axis=1) * np.linalg.norm(W1, axis=(0, 2))
    chosen = _strongest(strength)[:_GATED_UNITS]
    pictures = spread_gated(W1)
    names = [PIXEL_NAMES[state] for state in _STATES]
    kinds = dict(zip(names, pictures.cells, strict=True)) | {"pairs": pictures.pairs}
    rows = [
        (f"{'ab'[part]}: {name}", picture[..., part], _PAIR_ASPECT if name == "pairs" else 1.0)
        for part in (0, 1)
        for name, picture in kinds.items()
    ]
    figure = new_figure(1.12 * len(chosen) + 1.6, 1.13 * len(rows) + 1.7)
    panels = figure.subplots(len(rows), len(chosen), squeeze=False)
    for line, (name, picture, aspect) in zip(panels, rows, strict=True):
        for axes, unit in zip(line, chosen, strict=True):
            _tile(axes, picture[..., unit], aspect)
        line[0].set_ylabel(name, fontsize=11, rotation=0, ha="right", va="center", labelpad=6)
    for axes, unit in zip(panels[0], chosen, strict=True):
        axes.set_title(f"unit {unit}", fontsize=10, pad=3)
    figure.suptitle(
        f"{what} of {subject.name}, by update {checkpoint.update}: the {len(chosen)} strongest of "
        f"{W1.shape[1]} units, each max(a, 0) and max(a, 0) · b\n"
        "stayed, appeared, vanished: what such a pixel adds to the sum a or b, through the three "
        "cells it lies in\n"
        "pairs that appear: what something adds, by where it lies, while something else is at the "
        "middle of the right edge\n"
        "white +, black −, each picture on a scale of its own; "
        f"{100 * pictures.pairs_share:.0f} % of the squares of all numbers are those of pairs",
        fontsize=11,
    )
    return figure


@dataclass(frozen=True)
class GatedPictures:
    """The gated network's first layer, spread over the field.

    Attributes:
        cells: [3, 80, 80, H, 2], what a pixel adds to each unit's two sums through its cells, if it
            stayed, appeared or vanished.
        pairs: [2 · PAIR_ROWS − 1, PAIR_COLUMNS − 1, H, 2], for pairs that appear with a cell in the
            rightmost band: what a cell at each number of rows below and columns left of it adds,
            drawn at its place on the screen.
        pairs_share: the pairs' share of the squared weights.
    """

    cells: NDArray[Any]
    pairs: NDArray[Any]
    pairs_share: float


def spread_gated(W1: NDArray[Any]) -> GatedPictures:
    """The pictures of a first layer [NUM_INPUTS, H, 2]."""
    num, hidden = features.NUM_FEATURES, W1.shape[1:]
    by_state = W1[: 3 * num].reshape(3, num, *hidden)
    first = features.NUM_CELLS + features.BAND_STARTS[_AGENT_BAND] * features.NUM_OFFSETS
    appeared = by_state[_STATES.index(APPEARED), first:num]
    pairs = appeared.reshape(-1, features.NUM_OFFSETS, *hidden)
    squares = np.square(W1[: 3 * num], dtype=np.float64).reshape(3, num, -1).sum(axis=(0, 2))
    share = squares[features.NUM_CELLS :].sum() / max(squares.sum(), 1e-300)
    return GatedPictures(features.spread_cells(W1), pairs[::-1].swapaxes(0, 1), float(share))


def change_of(W1: NDArray[Any], memory: NDArray[Any], config: Config) -> NDArray[Any] | None:
    """The weights less their values before training; None if those are unknown.

    Those values follow from the seed; rows that training never touched confirm it.
    """
    rng = make_rng(config.seed, "params")
    before: NDArray[Any] = gated.init_params(rng, len(W1), W1.shape[1], str(W1.dtype))["W1"]
    untouched = np.ones(len(W1), np.bool_)
    untouched[rows_in(memory)] = False
    return W1 - before if np.array_equal(before[untouched], W1[untouched]) else None


def _without_untouched(W1: NDArray[Any], memory: NDArray[Any]) -> NDArray[Any]:
    """The weights, 0 for rows that never had a gradient."""
    touched, rows = np.zeros_like(W1), rows_in(memory)
    touched[rows] = W1[rows]
    return touched


def _strongest(strength: NDArray[Any]) -> NDArray[np.intp]:
    return np.argsort(-strength, kind="stable")


def _tile(axes: Any, picture: NDArray[Any], aspect: float = 1.0) -> None:
    largest = float(np.percentile(np.abs(picture), 99.5)) or float(np.abs(picture).max()) or 1.0
    axes.imshow(
        picture, cmap="gray", vmin=-largest, vmax=largest, interpolation="nearest", aspect=aspect
    )
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#BBBBBB", linewidth=0.8)
