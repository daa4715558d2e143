"""Figures over the steps of a training: the learning curve, and its health."""

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
    plain,
    scale_of,
)
from pixelpong.faces.plots.running import running
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record

EPISODES = 100  # in the mean return, as everywhere
_MANY = 3000  # more dots than this become one bitmap in an SVG
_SIGNS = {  # the panels of the health: columns of the metrics, and their titles
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
_ACTIONS = {"ppo": 3, "reinforce": 2}


class Subject:
    """One run to draw: its name in a legend, and what it has recorded."""

    def __init__(self, run: RunDirectory, name: str) -> None:
        record = Record.read(run.path)
        self.run, self.name, self.column = run, plain(name), record.curve
        if not record.steps:
            advice = "train it for an update or more"
            raise RunError(expected(f"metrics in {run.path}", "none", advice))
        self.last_step = record.steps
        self.episode_steps, self.returns = record.returns()
        steps = record.at(it.update for it in record.evaluations)
        rows = [
            [step, it.mean_return, *it.ci95]
            for step, it in zip(steps, record.evaluations, strict=True)
            if not math.isnan(step)
        ]
        self.evaluations = np.array(rows, np.float64).reshape(-1, 4)  # of each, with its interval


def name_subjects(runs: Sequence[RunDirectory]) -> list[Subject]:
    """The runs by the names of their folders, or by their paths if two have the same name."""
    names = [run.path.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.path) for run in runs]
    return [Subject(run, name) for run, name in zip(runs, names, strict=True)]


def draw_curve(subjects: Sequence[Subject]) -> Figure:
    """The return over the steps: running mean, band, evaluations."""
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    unit, is_single = _steps_axis(axes, subjects), len(subjects) == 1
    for number, subject in enumerate(subjects):
        if not len(subject.returns):
            what = f"a finished episode in {subject.run.path}"
            raise RunError(expected(what, "none", "train it longer"))
        _draw_return(axes, subject, line_style(number), unit, is_single=is_single)
    axes.set_ylim(-21.8, min(21.8, axes.dataLim.ymax + 2))  # early runs would be a flat line
    what = "" if is_single else f", mean of the last {EPISODES} episodes"
    axes.set_ylabel(f"return of an episode{what}")
    axes.set_title(_title("Learning curve", subjects) + "\n")
    band = f"band: the middle 80 % of the last {EPISODES} episodes"
    if any(len(subject.evaluations) for subject in subjects):
        band += "; diamond: evaluation with its 95 % interval"
    axes.text(0, 1.02, band, transform=axes.transAxes, color=GREY)
    axes.legend(loc="best")
    return figure


def _draw_return(
    axes: Any, subject: Subject, style: dict[str, Any], unit: float, *, is_single: bool
) -> None:
    steps, returns = subject.episode_steps, subject.returns
    curve = running(returns, EPISODES, steps)
    at = steps[curve.places - 1] / unit
    alpha = 0.15 if is_single else 0.07
    axes.fill_between(at, curve.low, curve.high, color=style["color"], linewidth=0, alpha=alpha)
    name = f"mean of the last {EPISODES} episodes" if is_single else subject.name
    axes.plot(at, curve.mean, label=name, **style)
    if is_single:
        axes.plot(
            steps / unit, returns, linestyle="none", marker=".", color="#A0A0A0",
            label="an episode", markeredgewidth=0, markersize=6 if len(returns) < 600 else 3.5,
            rasterized=len(returns) > _MANY, zorder=1,
        )  # fmt: skip
        estimated, values = subject.column("estimated_return")
        if len(values):
            axes.plot(
                estimated / unit, values, label="return estimated from the last 1,000 points",
                **line_style(1) | {"linewidth": 1.3},
            )  # fmt: skip
    if len(subject.evaluations):
        evaluated, means, lows, highs = subject.evaluations.T
        axes.errorbar(
            evaluated / unit, means, yerr=[means - lows, highs - means], fmt="D", markersize=6,
            color=BLACK if is_single else style["color"], markeredgecolor="white", capsize=3,
            elinewidth=1.4, label="greedy evaluation" if is_single else None, zorder=4,
        )  # fmt: skip


def draw_health(subjects: Sequence[Subject]) -> Figure:
    """Early signs of a training that goes wrong, and its speed."""
    signs = [sign for sign in _SIGNS if any(len(each.column(sign)[0]) for each in subjects)]
    rows = max(1, -(-len(signs) // 3))
    figure = new_figure(12, 2.7 * rows + 0.8)
    panels = figure.subplots(rows, 3, sharex=True, squeeze=False).ravel()
    for place, axes in enumerate(panels):
        if place >= len(signs):
            axes.set_axis_off()
            continue
        _draw_sign(axes, signs[place], subjects)
        if place >= len(signs) - 3:
            _steps_axis(axes, subjects)
            axes.tick_params(labelbottom=True)
    figure.suptitle(_title("Health of the training", subjects), fontsize=13)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, max(1, len(handles))))
    return figure


def _draw_sign(axes: Any, sign: str, subjects: Sequence[Subject]) -> None:
    """Each update, thin, and medians over a few of them."""
    unit, _ = scale_of(_last_step(subjects))
    shown = []
    for number, subject in enumerate(subjects):
        steps, values = subject.column(sign)
        if not len(values):
            continue
        style, window = line_style(number), max(1, len(values) // 25)
        smooth = running(values, window)
        axes.plot(
            steps / unit, values, color=style["color"], alpha=0.3, linewidth=0.7,
            rasterized=len(values) > _MANY,
        )  # fmt: skip
        middles = (np.maximum(smooth.places - window, 0) + smooth.places - 1) // 2
        what = "each update" if window == 1 else f"median of {window} updates"
        label = what if len(subjects) == 1 else subject.name
        axes.plot(steps[middles] / unit, smooth.median, label=label, **style)
        shown.append(values)
    _value_axis(axes, np.concatenate(shown))
    if sign == "entropy":
        _draw_most_entropy(axes, subjects)
    axes.set_title(_SIGNS[sign], fontsize=11)


def _draw_most_entropy(axes: Any, subjects: Sequence[Subject]) -> None:
    for algorithm in sorted({each.run.config.learning.algorithm for each in subjects}):
        actions = _ACTIONS[algorithm]
        axes.axhline(math.log(actions), color=GREY, linewidth=1, linestyle=":")
        axes.annotate(
            f"ln {actions}: all actions alike", (1, math.log(actions)), (0, 2), ha="right",
            xycoords=("axes fraction", "data"), textcoords="offset points", color=GREY, fontsize=9,
        )  # fmt: skip
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.15 * math.log(actions)))


def _value_axis(axes: Any, values: NDArray[Any]) -> None:
    """Start at zero; if the values differ by orders of magnitude, use a logarithmic scale."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 200 * float(np.median(values)):
        axes.set_yscale("log")
    elif low >= 0:
        axes.set_ylim(0, 1.08 * high if high > 0 else 1)
    if high >= 1e4 or high < 1e-2:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)


def _steps_axis(axes: Any, subjects: Sequence[Subject]) -> float:
    """Label the axis of the steps, which starts at zero; return what to divide them by."""
    last = _last_step(subjects)
    unit, word = scale_of(last)
    axes.set_xlabel(f"steps of the agent{word}")
    axes.set_xlim(0, 1.02 * last / unit)
    return unit


def _last_step(subjects: Sequence[Subject]) -> float:
    return float(max(subject.last_step for subject in subjects))


def _title(what: str, subjects: Sequence[Subject]) -> str:
    if len(subjects) > 1:
        return f"{what} of {len(subjects)} runs"
    config = subjects[0].run.config
    return f"{what} of {subjects[0].name}: {config.preset} on {config.environment.environment}"
