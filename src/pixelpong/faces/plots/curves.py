"""Figures over the steps of a training: the learning curve, the points, its health."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import RunError, expected
from pixelpong.faces.plots.drawing import (
    BLACK,
    GREY,
    Figure,
    legend_below,
    line_style,
    new_figure,
    scale_of,
)
from pixelpong.faces.plots.subjects import Subject
from pixelpong.run.table import Running, running

EPISODES = 100
"""The mean return is taken over so many episodes, as everywhere."""

POINTS = 1000
"""Shares and lengths of points are taken over so many, as everywhere."""

_ESTIMATE = f"return that the last {POINTS:,} points lead to"

_MANY = 3000
"""More dots than this are one picture in an SVG, or it would have megabytes."""


def draw_curve(subjects: Sequence[Subject]) -> Figure:
    """The return over the steps: running mean, band, evaluations.

    Raises:
        RunError: a run has no metrics yet, or no finished episode.
    """
    for subject in subjects:
        _require_episodes(subject)
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    unit = _steps_axis(axes, subjects)
    is_single = len(subjects) == 1
    highest = -math.inf
    for number, subject in enumerate(subjects):
        episodes, style = subject.episodes, line_style(number)
        if is_single:
            _dots(axes, episodes.steps / unit, episodes.returns, "an episode")
        curve = running(episodes.returns, EPISODES, episodes.steps)
        name = f"mean of the last {EPISODES} episodes" if is_single else subject.name
        opacity = 0.15 if len(subjects) <= 3 else 0.07
        _banded(axes, episodes.steps / unit, curve, name, style, opacity)
        if is_single and _is_pong(subject):
            steps, values = subject.column("estimated_return")
            known = _ESTIMATE if len(steps) else None
            axes.plot(steps / unit, values, label=known, **line_style(1) | {"linewidth": 1.3})
        _evaluations(axes, subject, unit, style["color"], "greedy evaluation" * is_single)
        dots = episodes.returns.max() if is_single else -math.inf
        highest = max(highest, dots, *curve.high, *subject.evaluations[:, 3])
    _return_axis(axes, subjects, highest)
    what = "" if is_single else f", mean of the last {EPISODES} episodes"
    axes.set_ylabel(f"return of an episode{what}")
    axes.set_title(_title("Learning curve", subjects) + "\n", fontsize=12)
    band = f"band: the middle 80 % of the last {EPISODES} episodes"
    if any(len(subject.evaluations) for subject in subjects):
        band += "; ◆ evaluation with its 95 % interval"
    axes.text(0, 1.02, band.replace("◆", "diamond:"), transform=axes.transAxes, color=GREY)
    axes.legend(loc="best")
    return figure


def draw_points(subjects: Sequence[Subject]) -> Figure:
    """The share of points won, and how long a point takes.

    Raises:
        RunError: a run has no metrics yet, or no point in them.
    """
    for subject in subjects:
        if not len(_share_won(subject)[0]):
            raise RunError(expected(f"a point in {subject.run.path}", "none", "train it longer"))
    figure = new_figure(8, 7.5)
    upper, lower = figure.subplots(2, 1, sharex=True)
    unit, is_single = _steps_axis(lower, subjects), len(subjects) == 1
    for number, subject in enumerate(subjects):
        _draw_share(upper, subject, unit, number, is_single)
        _draw_lengths(lower, subject, unit, number, is_single)
    upper.axhline(0.5, color=GREY, linewidth=1, linestyle=(0, (1, 3)))
    upper.set(ylim=(-0.03, 1.03), ylabel="share of points won")
    lower.set_ylabel("steps a point")
    lower.set_ylim(0, 1.08 * lower.dataLim.ymax)
    upper.set_title(_title("Points", subjects))
    upper.legend(loc="best")
    if is_single:
        lower.legend(loc="best")
    return figure


def _draw_share(axes: Any, subject: Subject, unit: float, number: int, is_single: bool) -> None:
    if is_single:
        steps, shares = subject.column("points_won_share")
        _dots(axes, steps / unit, shares, "an update")
    steps, shares = _share_won(subject)
    name = f"the last {POINTS:,} points" if is_single else subject.name
    axes.plot(steps / unit, shares, label=name, **line_style(number))


def _share_won(subject: Subject) -> tuple[NDArray[Any], NDArray[Any]]:
    """Steps and running share; from finished episodes where the metrics are too old to have it."""
    steps, shares = subject.column("points_won_1000")
    rallies = subject.episodes
    if len(steps) or not len(rallies.is_won):
        return steps, shares
    mean = running(rallies.is_won.astype(np.float64), POINTS, rallies.rally_steps)
    return rallies.rally_steps[mean.places - 1], mean.mean


def _draw_lengths(axes: Any, subject: Subject, unit: float, number: int, is_single: bool) -> None:
    steps, lengths = subject.column("steps_per_point")
    if is_single:
        _dots(axes, steps / unit, lengths, "an update, all points")
    rallies, style = subject.episodes, line_style(number)
    parts = [("won", rallies.is_won), ("lost", ~rallies.is_won)]
    if not is_single:
        parts = [("", np.full(len(rallies.is_won), True))]
    for place, (word, chosen) in enumerate(parts):
        if not chosen.any():
            continue
        mean = running(rallies.rally_lengths[chosen], POINTS, rallies.rally_steps[chosen])
        at = rallies.rally_steps[chosen][mean.places - 1] / unit
        look = line_style(place) if is_single else style
        name = f"{word}: mean of the last {POINTS:,}" if is_single else subject.name
        axes.plot(at, mean.mean, label=name, **look)


@dataclass(frozen=True)
class _Sign:
    """One panel of the health: a column of the metrics, and what it is called."""

    column: str
    title: str
    limit: float | None = None
    limit_name: str = ""


_SIGNS = (
    _Sign("entropy", "entropy of the policy, nats"),
    _Sign("up_share", "share of steps that go up"),
    _Sign("grad_norm", "norm of the gradient"),
    _Sign("kl", "KL divergence of an update"),
    _Sign("clip_share", "share of steps clipped"),
    _Sign("value_loss", "squared error of the value"),
    _Sign("learning_rate", "learning rate"),
    _Sign("steps_per_second", "steps a second"),
    _Sign("busy_share", "share of time workers play"),
)

_MOST_ENTROPY = {"ppo": (math.log(3), "ln 3"), "reinforce": (math.log(2), "ln 2")}


def draw_health(subjects: Sequence[Subject]) -> Figure:
    """What tells early that a training goes wrong, and how fast it goes.

    Raises:
        RunError: a run has no metrics yet.
    """
    signs = [
        sign for sign in _SIGNS if any(len(subject.column(sign.column)[0]) for subject in subjects)
    ]
    if not signs:
        what = f"figures of an update in {subjects[0].run.path}"
        raise RunError(expected(what, "none", "was it written by pixelpong?"))
    rows = -(-len(signs) // 3)
    figure = new_figure(12, 2.7 * rows + 0.8)
    panels = figure.subplots(rows, 3, sharex=True, squeeze=False).ravel()
    for axes, sign in zip(panels, signs, strict=False):
        _draw_sign(axes, sign, subjects)
    for axes in panels[len(signs) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(signs) - 3) : len(signs)]:
        _steps_axis(axes, subjects)
        axes.tick_params(labelbottom=True)
    figure.suptitle(_title("Health of the training", subjects), fontsize=13)
    legend_below(figure, panels[0])
    return figure


def _draw_sign(axes: Any, sign: _Sign, subjects: Sequence[Subject]) -> None:
    unit, _ = scale_of(_last_step(subjects))
    is_single, shown = len(subjects) == 1, []
    for number, subject in enumerate(subjects):
        steps, values = subject.column(sign.column)
        if not len(values):
            continue
        window = max(1, len(values) // 25)
        smooth = running(values, window)
        if is_single:
            axes.plot(
                steps / unit, values, color="#9DB7CC", linewidth=0.7, label="each update",
                rasterized=len(values) > _MANY,
            )  # fmt: skip
        name = f"median of {window} updates around" if is_single else subject.name
        middles = (np.maximum(smooth.places - window, 0) + smooth.places - 1) // 2
        axes.plot(steps[middles] / unit, smooth.median, label=name, **line_style(number))
        shown.append(values if is_single else smooth.median)
    _value_axis(axes, np.concatenate(shown))
    if sign.column == "entropy":
        for most, name in {_MOST_ENTROPY[each.run.config.learning.algorithm] for each in subjects}:
            axes.axhline(most, color=GREY, linewidth=1, linestyle=(0, (1, 3)))
            axes.annotate(
                f"{name}: all actions alike", (1, most), xycoords=("axes fraction", "data"),
                xytext=(0, 2), textcoords="offset points", ha="right", va="bottom", color=GREY,
                fontsize=9,
            )  # fmt: skip
        axes.set_ylim(0, 1.15 * max(axes.get_ylim()[1] / 1.15, most))
    axes.set_title(sign.title, fontsize=11)


def _value_axis(axes: Any, values: NDArray[Any]) -> None:
    """From zero on; where the values differ by orders of magnitude, in steps of tenfold."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 200 * float(np.median(values)):
        axes.set_yscale("log")
    elif low >= 0:
        axes.set_ylim(0, 1.08 * high if high > 0 else 1)
    if high >= 1e4 or high < 1e-2:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)


def _banded(
    axes: Any,
    steps: NDArray[Any],
    curve: Running,
    name: str,
    style: dict[str, Any],
    opacity: float,
) -> None:
    at = steps[curve.places - 1]
    axes.fill_between(at, curve.low, curve.high, color=style["color"], alpha=opacity, linewidth=0)
    axes.plot(at, curve.mean, label=name, **style)


def _dots(axes: Any, steps: NDArray[Any], values: NDArray[Any], name: str) -> None:
    axes.plot(
        steps, values, linestyle="none", marker=".", color="#A0A0A0", label=name, markeredgewidth=0,
        markersize=6 if len(values) < 600 else 3.5, rasterized=len(values) > _MANY, zorder=1,
    )  # fmt: skip


def _evaluations(axes: Any, subject: Subject, unit: float, colour: str, name: str) -> None:
    steps, means, lows, highs = subject.evaluations.T
    if len(steps):
        axes.errorbar(
            steps / unit, means, yerr=[means - lows, highs - means], fmt="D", markersize=6,
            color=BLACK if name else colour, markeredgecolor="white", capsize=3,
            elinewidth=1.4, label=name or None, zorder=4,
        )  # fmt: skip


def _steps_axis(axes: Any, subjects: Sequence[Subject]) -> float:
    """Name the axis of the steps, which starts at zero; what to divide them by."""
    last = _last_step(subjects)
    unit, word = scale_of(last)
    axes.set_xlabel(f"steps of the agent{word}")
    axes.set_xlim(0, 1.02 * last / unit)
    return unit


def _last_step(subjects: Sequence[Subject]) -> float:
    return max(1.0, *(float(np.nanmax(subject.metrics["steps"])) for subject in subjects))


def _return_axis(axes: Any, subjects: Sequence[Subject], highest: float) -> None:
    """For Pong from −21 on, as high as was reached, so that early runs are not a line below."""
    if all(map(_is_pong, subjects)):
        axes.set_ylim(-21.8, min(21.8, highest + 2))


def _is_pong(subject: Subject) -> bool:
    """Whether a game goes to 21."""
    return "Pong" in subject.run.config.environment.environment


def _require_episodes(subject: Subject) -> None:
    if not len(subject.episodes.returns):
        what = f"a finished episode in {subject.run.path}"
        raise RunError(expected(what, "none", "train it longer"))


def _title(what: str, subjects: Sequence[Subject]) -> str:
    first = subjects[0]
    games = sorted({subject.run.config.environment.environment for subject in subjects})
    if len(subjects) > 1:
        return f"{what} of {len(subjects)} runs on {' and '.join(games)}"
    return f"{what} of {first.name}: {first.run.config.preset} on {games[0]}"
