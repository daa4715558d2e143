"""Figures of one episode: what the network sees at a step, and what it thinks at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.explain import Explanations
from pixelpong.agent.legend import ACTION_COLOURS, ACTION_NAMES, PIXEL_COLOURS, PIXEL_NAMES
from pixelpong.config import Config
from pixelpong.env.preprocess import preprocess
from pixelpong.faces.plots.drawing import (
    BLACK,
    GREY,
    VERMILION,
    Figure,
    new_figure,
    pixel_colours,
    plain,
    saliency_colours,
)
from pixelpong.faces.plots.subjects import Subject
from pixelpong.items import DOWN, STAY, UP

_COLUMNS = 240
"""The most means drawn for a whole episode."""

_DETAIL = 160
"""Steps drawn one by one."""


def draw_frames(subject: Subject) -> Figure:
    """A frame, the same preprocessed, what the network sees, and what moved its decision.

    Raises:
        RunError, CheckpointError, EmulatorError: as `Subject.explanations`.
    """
    explained = subject.explanations
    moment, explanation = explained.moment, explained.explanation
    figure = new_figure(15, 4.5)
    panels = figure.subplots(1, 5, width_ratios=(160 / 210, 1, 1, 1, 1))
    panels[0].imshow(moment.frame, interpolation="nearest")
    panels[0].axhspan(34.5, 194.5, fill=False, edgecolor=BLACK, linestyle="--", linewidth=1.3)
    panels[0].set_title("frame, 210 × 160\ndashed: the field")
    frames = {"one step before": explained.frame_before, "now": moment.frame}
    for axes, (when, frame) in zip(panels[1:3], frames.items(), strict=True):
        axes.imshow(1 - preprocess(frame), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(f"preprocessed, 80 × 80\n{when}")
    _draw_field(panels[3], explanation.field)
    is_classic = explained.values is None
    seen = "difference: +1 appeared, −1 vanished" if is_classic else "by cells and pairs of cells"
    panels[3].set_title(f"what the network sees\n{seen}")
    _draw_saliency(panels[4], explanation.saliency)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set(visible=True, color="#999999")
    title, agent = _title(explained)
    figure.suptitle(f"{title}, step {moment.step}: {_thoughts(explained)}\n{agent}", fontsize=12)
    return figure


def _draw_field(axes: Any, field: NDArray[np.uint8]) -> None:
    from matplotlib.patches import Patch

    axes.imshow(field, cmap=pixel_colours(), vmin=-0.5, vmax=3.5, interpolation="nearest")
    handles = [
        Patch(facecolor=PIXEL_COLOURS[state], edgecolor=GREY, label=name)
        for state, name in PIXEL_NAMES.items()
        if (field == state).any()
    ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=3, fontsize=9,
        handlelength=1, columnspacing=1, handletextpad=0.4,
    )  # fmt: skip


def _draw_saliency(axes: Any, saliency: NDArray[np.float64]) -> None:
    most = float(np.abs(saliency).max()) or 1.0
    image = axes.imshow(
        saliency, cmap=saliency_colours(), vmin=-most, vmax=most, interpolation="nearest"
    )
    place = axes.inset_axes((0.1, -0.075, 0.8, 0.04))
    bar = axes.figure.colorbar(image, cax=place, orientation="horizontal")
    labels = [f"DOWN {most:.2g}", "0", f"UP {most:.2g}"]
    bar.set_ticks([-most, 0, most], labels=labels, fontsize=9)
    bar.ax.grid(visible=False)
    axes.set_title("what moves the decision\nlogit UP − logit DOWN, by pixel")


def _thoughts(explained: Explanations) -> str:
    """The probabilities and the value at the moment, and the action."""
    moment, explanation = explained.moment, explained.explanation
    assert moment.action is not None, "the moment after the end"
    chances = ", ".join(
        f"{ACTION_NAMES[action].upper()} {100 * chance:.0f} %"
        for action, chance in zip(explained.actions, explanation.probabilities, strict=True)
    )
    value = explanation.value
    worth = "" if value is None else f", value {value:+.2f}".replace("-", "−")
    return f"{chances}{worth}; it went {ACTION_NAMES[moment.action].upper()}"


def _title(explained: Explanations) -> tuple[str, str]:
    """The titles of the episode and of the agent that explains it."""
    chosen = explained.chosen
    agent = f"explained by the agent of update {chosen.agent.about['update']}, which played it"
    return plain(chosen.title.replace("return -", "return −")), agent


def draw_episode(subject: Subject) -> Figure:
    """Probabilities, value and advantage along an episode; on the right, a part in detail.

    Raises:
        RunError, CheckpointError, EmulatorError: as `Subject.explanations`.
    """
    explained, config = subject.explanations, subject.run.config
    advantages = explained.advantages(config)
    rows = [("probability", None), (_advantage_title(explained, config), advantages)]
    if explained.values is not None:
        rows.insert(1, ("value of the point", explained.values[:-1]))
    pieces = _pieces(explained.rewards)
    figure = new_figure(8 + 6 * (len(pieces) - 1), 1.5 + 2.5 * len(rows))
    panels = figure.subplots(
        len(rows), len(pieces), sharex="col", sharey="row", squeeze=False,
        width_ratios=(1.7, 1)[: len(pieces)],
    )  # fmt: skip
    for column, piece in enumerate(pieces):
        for axes, (title, numbers) in zip(panels[:, column], rows, strict=True):
            if numbers is None:
                _draw_chances(axes, explained, piece)
            else:
                colour = VERMILION if numbers is advantages else BLACK
                axes.axhline(0, color=GREY, linewidth=0.8)
                means, edges = _means(numbers[:, None], piece)
                axes.stairs(means[:, 0], edges, color=colour, linewidth=1.3, baseline=None)
            if column == 0:
                axes.set_ylabel(title)
        _mark_points(panels[:, column], explained.rewards, piece)
        first, last, block = piece
        unit = "every step" if block == 1 else f"means of {block} steps"
        where = "the whole episode" if column == 0 else f"steps {first} to {last}"
        panels[0, column].set_title(f"{where}, {unit}", pad=22, fontsize=11)
        panels[-1, column].set(xlabel="step of the episode", xlim=(first, last))
    panels[0, 0].annotate(
        "points: ▲ won, ▽ lost", (0, 1), xycoords="axes fraction", xytext=(0, 17),
        textcoords="offset points", fontsize=10, color=GREY, va="bottom",
    )  # fmt: skip
    figure.suptitle("\n".join(_title(explained)), fontsize=12)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=3)
    return figure


def _advantage_title(explained: Explanations, config: Config) -> str:
    discount = f"discount {config.learning.discount:g}"
    if explained.values is None:
        return f"advantage: standardised\nreturn, {discount}"
    return f"generalised advantage\n{discount}, λ {config.ppo.gae_lambda:g}"


def _draw_chances(axes: Any, explained: Explanations, piece: tuple[int, int, int]) -> None:
    shares, edges = _means(explained.probabilities, piece)
    floor = np.zeros(len(shares))
    for action in (DOWN, STAY, UP):  # from the bottom up
        if action in explained.actions:
            top = floor + shares[:, explained.actions.index(action)]
            axes.stairs(
                top, edges, baseline=floor, fill=True, color=ACTION_COLOURS[action], linewidth=0,
                label=ACTION_NAMES[action].upper(),
            )  # fmt: skip
            floor = top
    axes.set_ylim(0, 1)
    axes.grid(visible=False)


def _means(values: NDArray[Any], piece: tuple[int, int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Means of [T, K] over blocks of a piece: [blocks, K], and the blocks' limits in steps."""
    first, last, block = piece
    edges = np.arange(first, last + block, block)[: -(-(last - first) // block) + 1]
    sums = np.add.reduceat(values[:last], edges[:-1], axis=0)
    return sums / np.diff(np.minimum(edges, last))[:, None], edges


def _pieces(rewards: NDArray[Any]) -> list[tuple[int, int, int]]:
    """First and last step, and steps per mean, of the whole episode and of a part of a long one.

    The part ends soon after a point, a won one if there is any.
    """
    length = len(rewards)
    whole = (0, length, max(1, -(-length // _COLUMNS)))
    if length <= _DETAIL:
        return [whole]
    points, won = np.flatnonzero(rewards), np.flatnonzero(rewards > 0)
    ends = won if len(won) else points
    middle = int(ends[len(ends) // 2]) if len(ends) else length
    begin = max(0, min(middle + 20, length) - _DETAIL)
    return [whole, (begin, begin + _DETAIL, 1)]


def _mark_points(panels: Any, rewards: NDArray[Any], piece: tuple[int, int, int]) -> None:
    """Draw a line through all panels at each point, and above it a mark for its winner."""
    first, last, _ = piece
    for step in np.flatnonzero(rewards[:last]):
        if step < first:
            continue
        is_won = rewards[step] > 0
        for axes in panels:
            axes.axvline(
                step + 1, color=BLACK, linewidth=0.9, linestyle="-" if is_won else (0, (2, 2))
            )
        panels[0].annotate(
            "▲" if is_won else "▽", (step + 1, 1), xycoords=("data", "axes fraction"),
            xytext=(0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=9,
            annotation_clip=False,
        )  # fmt: skip
