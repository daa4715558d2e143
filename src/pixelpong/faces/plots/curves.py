"""Figures over the steps of a training: the learning curve, the points, its health."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import RunError, expected
from pixelpong.faces.plots.drawing import (
    BLACK,
    GREY,
    Figure,
    line_style,
    new_figure,
    scale_of,
)
from pixelpong.faces.plots.subjects import Subject
from pixelpong.run.table import running

EPISODES = 100
"""Episodes in the mean return, as everywhere."""

POINTS = 1000
"""Points in shares and lengths, as everywhere."""

_MANY = 3000
"""More dots than this become one bitmap in an SVG, which would otherwise have megabytes."""

_SIGNS = {
    "entropy": "entropy of the policy, nats",
    "up_share": "share of steps that go up",
    "grad_norm": "norm of the gradient",
    "kl": "KL divergence of an update",
    "clip_share": "share of steps clipped",
    "value_loss": "squared error of the value",
    "learning_rate": "learning rate",
    "steps_per_second": "steps per second",
    "busy_share": "share of time workers play",
}
"""The panels of the health: columns of the metrics, and their titles."""

_MOST_ENTROPY = {"ppo": (math.log(3), "ln 3"), "reinforce": (math.log(2), "ln 2")}
_DOTTED: dict[str, Any] = {"color": GREY, "linewidth": 1, "linestyle": (0, (1, 3))}


def draw_curve(subjects: Sequence[Subject]) -> Figure:
    """The return over the steps: running mean, band, evaluations.

    Raises:
        RunError: a run has no metrics yet, or no finished episode.
    """
    for subject in subjects:
        _require(len(subject.episodes.returns), "a finished episode", subject)
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    unit, is_single = _steps_axis(axes, subjects), len(subjects) == 1
    highest = max(_draw_return(axes, subjects, number, unit) for number in range(len(subjects)))
    if all(map(_is_pong, subjects)):  # up to the highest value: early runs would be a flat line
        axes.set_ylim(-21.8, min(21.8, highest + 2))
    what = "" if is_single else f", mean of the last {EPISODES} episodes"
    axes.set_ylabel(f"return of an episode{what}")
    axes.set_title(_title("Learning curve", subjects) + "\n", fontsize=12)
    band = f"band: the middle 80 % of the last {EPISODES} episodes"
    if any(len(subject.evaluations) for subject in subjects):
        band += "; diamond: evaluation with its 95 % interval"
    axes.text(0, 1.02, band, transform=axes.transAxes, color=GREY)
    axes.legend(loc="best")
    return figure


def _draw_return(axes: Any, subjects: Sequence[Subject], number: int, unit: float) -> float:
    """Draw one run's return; return the highest value drawn."""
    subject, style, is_single = subjects[number], line_style(number), len(subjects) == 1
    steps, returns = subject.episodes.steps, subject.episodes.returns
    evaluated, means, lows, highs = subject.evaluations.T
    curve = running(returns, EPISODES, steps)
    at = steps[curve.places - 1] / unit
    if is_single:
        _dots(axes, steps / unit, returns, "an episode")
    axes.fill_between(
        at, curve.low, curve.high, color=style["color"], linewidth=0,
        alpha=0.15 if len(subjects) <= 3 else 0.07,
    )  # fmt: skip
    name = f"mean of the last {EPISODES} episodes" if is_single else subject.name
    axes.plot(at, curve.mean, label=name, **style)
    tops = [*(returns if is_single else curve.high), *curve.high, *highs]
    if is_single and _is_pong(subject):
        estimated, values = subject.column("estimated_return")
        tops += values.tolist()
        known = f"return that the last {POINTS:,} points lead to" if len(values) else None
        axes.plot(estimated / unit, values, label=known, **line_style(1) | {"linewidth": 1.3})
    if len(evaluated):
        axes.errorbar(
            evaluated / unit, means, yerr=[means - lows, highs - means], fmt="D", markersize=6,
            color=BLACK if is_single else style["color"], markeredgecolor="white", capsize=3,
            elinewidth=1.4, label="greedy evaluation" if is_single else None, zorder=4,
        )  # fmt: skip
    return float(max(tops))


def draw_points(subjects: Sequence[Subject]) -> Figure:
    """The share of points won, and how long a point takes.

    Raises:
        RunError: a run has no metrics yet, or no point in them.
    """
    for subject in subjects:
        _require(len(_share_won(subject)[0]), "a point", subject)
    figure = new_figure(8, 7.5)
    upper, lower = figure.subplots(2, 1, sharex=True)
    unit, is_single = _steps_axis(lower, subjects), len(subjects) == 1
    for number, subject in enumerate(subjects):
        if is_single:
            steps, shares = subject.column("points_won_share")
            _dots(upper, steps / unit, shares, "an update")
            steps, lengths = subject.column("steps_per_point")
            _dots(lower, steps / unit, lengths, "an update, all points")
        steps, shares = _share_won(subject)
        name = f"the last {POINTS:,} points" if is_single else subject.name
        upper.plot(steps / unit, shares, label=name, **line_style(number))
        _draw_lengths(lower, subject, unit, number, is_single)
    upper.axhline(0.5, **_DOTTED)
    upper.set(ylim=(-0.03, 1.03), ylabel="share of points won")
    lower.set_ylabel("steps a point")
    lower.set_ylim(0, 1.08 * lower.dataLim.ymax)
    upper.set_title(_title("Points", subjects))
    upper.legend(loc="best")
    if is_single:
        lower.legend(loc="best")
    return figure


def _share_won(subject: Subject) -> tuple[NDArray[Any], NDArray[Any]]:
    """Steps and running share; from finished episodes if old metrics do not have it."""
    steps, shares = subject.column("points_won_1000")
    rallies = subject.episodes
    if len(steps) or not len(rallies.is_won):
        return steps, shares
    mean = running(rallies.is_won.astype(np.float64), POINTS, rallies.rally_steps)
    return rallies.rally_steps[mean.places - 1], mean.mean


def _draw_lengths(axes: Any, subject: Subject, unit: float, number: int, is_single: bool) -> None:
    rallies = subject.episodes
    parts = {subject.name: np.ones(len(rallies.is_won), np.bool_)}
    if is_single:
        words = {"won": rallies.is_won, "lost": ~rallies.is_won}
        parts = {f"{word}: mean of the last {POINTS:,}": part for word, part in words.items()}
    for place, (name, chosen) in enumerate(parts.items(), 0 if is_single else number):
        if chosen.any():
            mean = running(rallies.rally_lengths[chosen], POINTS, rallies.rally_steps[chosen])
            at = rallies.rally_steps[chosen][mean.places - 1] / unit
            axes.plot(at, mean.mean, label=name, **line_style(place))


def draw_health(subjects: Sequence[Subject]) -> Figure:
    """Early signs of a training that goes wrong, and its speed.

    Raises:
        RunError: a run has no metrics yet.
    """
    signs = [sign for sign in _SIGNS if any(len(each.column(sign)[0]) for each in subjects)]
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
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(handles)))
    return figure


def _draw_sign(axes: Any, sign: str, subjects: Sequence[Subject]) -> None:
    unit, _ = scale_of(_last_step(subjects))
    is_single, shown = len(subjects) == 1, []
    for number, subject in enumerate(subjects):
        steps, values = subject.column(sign)
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
    if sign == "entropy":
        _draw_most_entropy(axes, subjects)
    axes.set_title(_SIGNS[sign], fontsize=11)


def _draw_most_entropy(axes: Any, subjects: Sequence[Subject]) -> None:
    highest = axes.get_ylim()[1]
    for algorithm in sorted({each.run.config.learning.algorithm for each in subjects}):
        most, name = _MOST_ENTROPY[algorithm]
        axes.axhline(most, **_DOTTED)
        axes.annotate(
            f"{name}: all actions alike", (1, most), xycoords=("axes fraction", "data"),
            xytext=(0, 2), textcoords="offset points", ha="right", va="bottom", color=GREY,
            fontsize=9,
        )  # fmt: skip
        highest = max(highest, 1.15 * most)
    axes.set_ylim(0, highest)


def _value_axis(axes: Any, values: NDArray[Any]) -> None:
    """Start at zero; if the values differ by orders of magnitude, use a logarithmic scale."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 200 * float(np.median(values)):
        axes.set_yscale("log")
    elif low >= 0:
        axes.set_ylim(0, 1.08 * high if high > 0 else 1)
    if high >= 1e4 or high < 1e-2:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)


def _dots(axes: Any, steps: NDArray[Any], values: NDArray[Any], name: str) -> None:
    axes.plot(
        steps, values, linestyle="none", marker=".", color="#A0A0A0", label=name, markeredgewidth=0,
        markersize=6 if len(values) < 600 else 3.5, rasterized=len(values) > _MANY, zorder=1,
    )  # fmt: skip


def _steps_axis(axes: Any, subjects: Sequence[Subject]) -> float:
    """Label the axis of the steps, which starts at zero; return what to divide them by."""
    last = _last_step(subjects)
    unit, word = scale_of(last)
    axes.set_xlabel(f"steps of the agent{word}")
    axes.set_xlim(0, 1.02 * last / unit)
    return unit


def _last_step(subjects: Sequence[Subject]) -> float:
    return max(1.0, *(float(np.nanmax(subject.metrics["steps"])) for subject in subjects))


def _is_pong(subject: Subject) -> bool:
    """Whether a game goes to 21."""
    return "Pong" in subject.run.config.environment.environment


def _require(number: int, what: str, subject: Subject) -> None:
    if not number:
        raise RunError(expected(f"{what} in {subject.run.path}", "none", "train it longer"))


def _title(what: str, subjects: Sequence[Subject]) -> str:
    games = sorted({subject.run.config.environment.environment for subject in subjects})
    if len(subjects) > 1:
        return f"{what} of {len(subjects)} runs on {' and '.join(games)}"
    return f"{what} of {subjects[0].name}: {subjects[0].run.config.preset} on {games[0]}"
