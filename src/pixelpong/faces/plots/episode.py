"""Figures of one episode: what is seen at a step, and what the agent thinks along the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.looks import Look
from pixelpong.agent.network import APPEARED, OFF, STAYED, VANISHED
from pixelpong.faces.page.reel import ACTION_NAMES
from pixelpong.faces.plots.drawing import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PALE,
    VERMILION,
    Figure,
    new_figure,
    plain,
)
from pixelpong.faces.plots.subjects import Subject
from pixelpong.items import DOWN, STAY, UP

_STATE_COLOURS = {OFF: "#FFFFFF", STAYED: BLACK, APPEARED: BLUE, VANISHED: ORANGE}
_STATE_NAMES = {STAYED: "stayed", APPEARED: "appeared", VANISHED: "vanished"}

_ACTION_COLOURS = {DOWN: ORANGE, STAY: PALE, UP: BLUE}
"""From the bottom up, as dark as differs in a grey print."""

_COLUMNS = 240
"""Means of the whole episode that are drawn at most."""

_DETAIL = 160
"""Steps that are drawn one by one."""


def draw_frames(subject: Subject) -> Figure:
    """A frame, the same preprocessed, what the network sees, and what moved its decision.

    Raises:
        RunError, CheckpointError, EmulatorError: as `Subject.look`.
    """
    look, glimpse = subject.look, subject.look.glimpse
    figure = new_figure(15, 4.5)
    panels = figure.subplots(1, 5, width_ratios=(160 / 210, 1, 1, 1, 1))
    panels[0].imshow(glimpse.frame, interpolation="nearest")
    panels[0].axhspan(34.5, 194.5, fill=False, edgecolor=BLACK, linestyle="--", linewidth=1.3)
    panels[0].set_title("frame, 210 × 160\ndashed: the field")
    for axes, picture, when in zip(
        panels[1:3], (glimpse.before, glimpse.now), ("one step before", "now"), strict=True
    ):
        axes.imshow(1 - picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(f"preprocessed, 80 × 80\n{when}")
    _draw_field(panels[3], look)
    _draw_saliency(panels[4], look)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set(visible=True, color="#999999")
    figure.suptitle(
        f"{_title(look)}, step {glimpse.step}: {_thoughts(look)}\n{_looker(look)}",
        fontsize=12,
    )
    return figure


def _draw_field(axes: Any, look: Look) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    field = look.glimpse.sight.field
    colours = np.array([to_rgb(_STATE_COLOURS[state]) for state in sorted(_STATE_COLOURS)])
    axes.imshow(colours[field], interpolation="nearest")
    shown = [state for state in _STATE_NAMES if (field == state).any()]
    handles = [
        Patch(facecolor=_STATE_COLOURS[state], edgecolor=GREY, label=_STATE_NAMES[state])
        for state in shown
    ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, fontsize=9,
        handlelength=1, columnspacing=1, handletextpad=0.4,
    )  # fmt: skip
    axes.set_title("what the network sees\n" + _inputs_in_words(look))


def _inputs_in_words(look: Look) -> str:
    if look.values is None:
        return "difference: +1 appeared, −1 vanished"
    return "by cells and pairs of cells"


def _draw_saliency(axes: Any, look: Look) -> None:
    saliency = look.glimpse.sight.saliency
    largest = float(np.abs(saliency).max()) or 1.0
    image = axes.imshow(
        saliency, cmap="cividis", vmin=-largest, vmax=largest, interpolation="nearest"
    )
    place = axes.inset_axes((0.1, -0.075, 0.8, 0.04))
    bar = axes.figure.colorbar(image, cax=place, orientation="horizontal")
    ends = [f"DOWN {largest:.2g}", "0", f"UP {largest:.2g}"]
    bar.set_ticks([-largest, 0, largest], labels=ends, fontsize=9)
    bar.ax.grid(visible=False)
    axes.set_title("what moves the decision\nlogit UP − logit DOWN, by pixel")


def _thoughts(look: Look) -> str:
    glimpse = look.glimpse
    chances = ", ".join(
        f"{ACTION_NAMES[action].upper()} {100 * chance:.0f} %"
        for action, chance in zip(look.actions, glimpse.sight.probabilities, strict=True)
    )
    value = glimpse.sight.value
    worth = "" if value is None else f", value {value:+.2f}".replace("-", "−")
    return f"{chances}{worth}; it went {ACTION_NAMES[glimpse.action].upper()}"


def _title(look: Look) -> str:
    return plain(look.show.title.replace("return -", "return −"))


def _looker(look: Look) -> str:
    update = look.show.agent.about["update"]
    if look.show.is_own:
        return f"seen by the agent of update {update}, which played it"
    return f"seen by the agent of update {update}, the nearest that is kept"


def draw_episode(subject: Subject) -> Figure:
    """Probabilities, value and advantage along an episode; on the right, a piece of it, closer.

    Raises:
        RunError, CheckpointError, EmulatorError: as `Subject.look`.
    """
    look = subject.look
    rows = (
        ["chances", "value", "advantage"] if look.values is not None else ["chances", "advantage"]
    )
    pieces = _pieces(look)
    figure = new_figure(8 + 6 * (len(pieces) - 1), 1.5 + 2.5 * len(rows))
    panels = figure.subplots(
        len(rows), len(pieces), sharex="col", sharey="row", squeeze=False,
        width_ratios=(1.7, 1)[: len(pieces)],
    )  # fmt: skip
    advantages = look.advantages(subject.run.config)
    for column, (first, last, block) in enumerate(pieces):
        for axes, row in zip(panels[:, column], rows, strict=True):
            _draw_row(axes, row, look, advantages, (first, last, block))
            _mark_points(axes, look, first, last)
        unit = "every step" if block == 1 else f"means of {block} steps"
        where = "the whole episode" if column == 0 else f"steps {first} to {last}"
        panels[0, column].set_title(f"{where}, {unit}", pad=22, fontsize=11)
        panels[-1, column].set(xlabel="step of the episode", xlim=(first, last))
        _name_points(panels[0, column], look, first, last)
    panels[0, 0].annotate(
        "points: ▲ won, ▽ lost", (0, 1), xycoords="axes fraction", xytext=(0, 17),
        textcoords="offset points", fontsize=10, color=GREY, va="bottom",
    )  # fmt: skip
    for axes, row in zip(panels[:, 0], rows, strict=True):
        axes.set_ylabel(_row_title(row, look, subject))
    figure.suptitle(f"{_title(look)}\n{_looker(look)}", fontsize=12)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=3)
    return figure


def _row_title(row: str, look: Look, subject: Subject) -> str:
    config = subject.run.config
    discount = f"discount {config.learning.discount:g}"
    if row == "chances":
        return "probability"
    if row == "value":
        return "value of the point"
    if look.values is None:
        return f"advantage: standardised\nreturn, {discount}"
    return (
        f"generalised advantage\ndiscount {config.learning.discount:g}, λ {config.ppo.gae_lambda:g}"
    )


def _draw_row(
    axes: Any, row: str, look: Look, advantages: NDArray[Any], piece: tuple[int, int, int]
) -> None:
    first, last, block = piece
    edges = np.arange(first, last + block, block)[: -(-(last - first) // block) + 1]
    if row == "chances":
        shares = _means(look.probabilities, edges, last)
        floor = np.zeros(len(shares))
        for action, colour in _ACTION_COLOURS.items():
            if action in look.actions:
                top = floor + shares[:, look.actions.index(action)]
                axes.stairs(
                    top, edges, baseline=floor, fill=True, color=colour, linewidth=0,
                    label=ACTION_NAMES[action].upper(),
                )  # fmt: skip
                floor = top
        axes.set_ylim(0, 1)
        axes.grid(visible=False)
        return
    assert look.values is not None or row != "value"
    numbers = advantages if row == "advantage" else np.asarray(look.values)[:-1]
    means = _means(numbers[:, None], edges, last)[:, 0]
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.stairs(
        means, edges, color=BLACK if row == "value" else VERMILION, linewidth=1.3, baseline=None
    )


def _means(values: NDArray[Any], edges: NDArray[Any], last: int) -> NDArray[np.float64]:
    """Of [T, K] over the steps between edges: [number of edges − 1, K]."""
    sums = np.add.reduceat(values[:last], edges[:-1], axis=0)
    counts = np.diff(np.minimum(edges, last))
    means: NDArray[np.float64] = sums / counts[:, None]
    return means


def _pieces(look: Look) -> list[tuple[int, int, int]]:
    """First step, last and steps a mean, of the whole episode and, where it is long, of a part."""
    whole = (0, len(look), max(1, -(-len(look) // _COLUMNS)))
    if len(look) <= _DETAIL:
        return [whole]
    begin = _closer(look)
    return [whole, (begin, begin + _DETAIL, 1)]


def _closer(look: Look) -> int:
    """Where the piece begins that is shown closer: it ends soon after a point, a won one if any."""
    points = np.flatnonzero(look.rewards)
    won = np.flatnonzero(look.rewards > 0)
    ends = won if len(won) else points
    middle = int(ends[len(ends) // 2]) if len(ends) else len(look)
    return max(0, min(middle + 20, len(look)) - _DETAIL)


def _mark_points(axes: Any, look: Look, first: int, last: int) -> None:
    for step in np.flatnonzero(look.rewards):
        if first <= step < last:
            is_won = look.rewards[step] > 0
            axes.axvline(
                step + 1, color=BLACK, linewidth=0.9, linestyle="-" if is_won else (0, (2, 2))
            )


def _name_points(axes: Any, look: Look, first: int, last: int) -> None:
    """A mark above each point, which says who won it."""
    for step in np.flatnonzero(look.rewards):
        if first <= step < last:
            axes.annotate(
                "▲" if look.rewards[step] > 0 else "▽", (step + 1, 1),
                xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
                ha="center", va="bottom", fontsize=9, annotation_clip=False,
            )  # fmt: skip
