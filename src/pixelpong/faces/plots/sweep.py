"""The picture of a sweep: how each setting learned, when it won, how well it plays.

Its numbers are those of `pixelpong.sweep.results`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.faces.extras import require
from pixelpong.faces.plots.drawing import (
    BLACK,
    GREY,
    Figure,
    house_style,
    line_style,
    new_figure,
    plain,
    render,
    scale_of,
)
from pixelpong.run.files import write_whole
from pixelpong.sweep import statistics
from pixelpong.sweep.results import FEWEST, Setting, seconds_of

Settings = Sequence[Setting]  # with at least one training each

MAX_SETTINGS = 12  # that are drawn; more could not be told apart
_GRID = 200


def plot_sweep(settings: Settings, path: Path) -> None:
    """Draw the results of trainings to a file."""
    require("Pictures need", "matplotlib", extra="plot")
    with house_style():
        content = render(draw_sweep(settings), path.suffix.removeprefix("."))
    write_whole(path, content)


def draw_sweep(settings: Settings) -> Figure:
    """Curves, times to win and performance profiles, with 95 % intervals."""
    shown = settings[:MAX_SETTINGS]
    has_won = any(setting.won for setting in shown)
    figure = new_figure(10, 8.5)
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.15, 1])
    _draw_curves(upper.add_subplot(), shown, has_won)
    left, right = lower.subplots(1, 2)
    _draw_times(left, shown, has_won)
    _draw_profiles(right, shown)
    handles, labels = right.get_legend_handles_labels()
    if len(shown) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
    return figure


def _draw_curves(axes: Any, settings: Settings, has_won: bool) -> None:
    unit, word = scale_of(max(max(it.steps, 1) for setting in settings for it in setting.records))
    for number, setting in enumerate(settings):
        style = line_style(number)
        if curve := setting.curve():
            grid, middle, low, high = curve
            axes.fill_between(grid / unit, low, high, color=style["color"], alpha=0.18, linewidth=0)
            axes.plot(grid / unit, middle, **style)
        for record in setting.records if len(settings) == 1 else ():
            steps, values = record.curve()
            axes.plot(steps / unit, values, color=style["color"], linewidth=0.6, alpha=0.5)
        won = [record.steps / unit for record in setting.won]
        axes.plot(won, [18] * len(won), "v", color=style["color"], markeredgecolor="white")
    axes.set_ylim(-21.8, 21.8)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"steps of the agent{word}")
    axes.set_ylabel("return, estimated from the last 1,000 points")
    title = "How they learned: interquartile mean over the seeds, band of the middle half"
    axes.set_title(title + "; ▼ won" * has_won)


def _draw_times(axes: Any, settings: Settings, has_won: bool) -> None:
    """Seconds to win, one row per setting; if none has won, seconds of training."""
    for number, setting in enumerate(settings):
        style = line_style(number)
        times = [seconds_of(it) or 0.0 for it in (setting.won if has_won else setting.records)]
        count = f"{len(setting.won)} of {len(setting.records)} won"
        axes.annotate(
            count, (1, number), (0, 12), xycoords=("axes fraction", "data"), ha="right",
            textcoords="offset points", color=GREY, fontsize=9,
        )  # fmt: skip
        if not times:
            continue
        axes.plot(times, [number] * len(times), "o", color=style["color"], alpha=0.5, markersize=5)
        middle, ends = float(statistics.median(times)), None
        if len(times) >= FEWEST:
            low, high = statistics.interval(times, statistics.median)
            ends = [[middle - low], [high - middle]]
        axes.errorbar(
            middle, number, xerr=ends, fmt="D", color=BLACK, capsize=4, markersize=6, zorder=4
        )
    axes.set(ylim=(len(settings) - 0.4, -0.6), xlabel="seconds", yticks=range(len(settings)))
    axes.set_yticklabels([plain(it.label) or "all seeds" for it in settings], fontsize=9)
    axes.set_xlim(left=0)
    what = "Time to win" if has_won else "Time of training"
    axes.set_title(f"{what}: median, 95 % interval")


def _draw_profiles(axes: Any, settings: Settings) -> None:
    scores = [setting.final_returns or [-21.0] for setting in settings]
    known = [score for each in scores for score in each]
    thresholds = np.linspace(min(known) - 0.5, max(known) + 0.5, _GRID)
    for number, (setting, each) in enumerate(zip(settings, scores, strict=True)):
        style = line_style(number)
        if len(each) >= FEWEST:
            low, high = statistics.profile_band(each, thresholds)
            axes.fill_between(thresholds, low, high, color=style["color"], alpha=0.15, linewidth=0)
        shares = statistics.performance_profile(each, thresholds)
        axes.plot(thresholds, shares, **style, label=plain(setting.label) or "all seeds")
    axes.set(ylim=(-0.03, 1.03), xlabel="final return", ylabel="share of trainings above it")
    axes.set_title("Performance profile, 95 % band")
