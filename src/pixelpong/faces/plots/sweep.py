"""The picture of a sweep: how each setting learned, when it won, how well it plays.

A setting is a group of trainings that differ in nothing but the seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from pixelpong.sweep.results import Result

Groups = Mapping[str, Sequence[Result]]  # by the setting's name; at least one result in each

MAX_GROUPS = 12  # settings that are drawn; more could not be told apart
FEWEST = 4  # seeds for a 95 % interval; that of fewer would say nothing
_GRID = 200


def plot_sweep(groups: Groups, path: Path) -> None:
    """Draw the results of trainings to a file."""
    require("Pictures need", "matplotlib", extra="plot")
    with house_style():
        content = render(draw_sweep(groups), path.suffix.removeprefix("."))
    write_whole(path, content)


def draw_sweep(groups: Groups) -> Figure:
    """Curves, times to win and performance profiles, with 95 % intervals."""
    shown = dict(list(groups.items())[:MAX_GROUPS])
    has_won = any(it.is_won for results in shown.values() for it in results)
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


def _draw_curves(axes: Any, groups: Groups, has_won: bool) -> None:
    unit, word = scale_of(max(max(it.steps, 1) for group in groups.values() for it in group))
    for number, results in enumerate(groups.values()):
        style = line_style(number)
        known = [np.array(it.curve or [(0, -21.0)]).T for it in results]
        curves = [(steps / unit, values) for steps, values in known]
        grid = np.linspace(0, max(steps[-1] for steps, _ in curves), _GRID)
        # One that has ended stays where it ended.
        table = np.array([np.interp(grid, steps, values) for steps, values in curves])
        low, high = np.percentile(table, [25, 75], axis=0)
        if len(groups) == 1:
            for values in table:
                axes.plot(grid, values, color=style["color"], linewidth=0.6, alpha=0.5)
        axes.fill_between(grid, low, high, color=style["color"], alpha=0.18, linewidth=0)
        axes.plot(grid, statistics.interquartile_mean(table.T), **style)
        won = [result.steps / unit for result in results if result.is_won]
        axes.plot(won, [18] * len(won), "v", color=style["color"], markeredgecolor="white")
    axes.set_ylim(-21.8, 21.8)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"steps of the agent{word}")
    axes.set_ylabel("return, estimated from the last 1,000 points")
    title = "How they learned: interquartile mean over the seeds, band of the middle half"
    axes.set_title(title + "; ▼ won" * has_won)


def _draw_times(axes: Any, groups: Groups, has_won: bool) -> None:
    """Seconds to win, one row per setting; if none has won, seconds of training."""
    names = list(groups)
    for number, results in enumerate(groups.values()):
        style = line_style(number)
        times = [it.seconds or 0.0 for it in results if it.is_won or not has_won]
        count = f"{sum(result.is_won for result in results)} of {len(results)} won"
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
    axes.set(ylim=(len(names) - 0.4, -0.6), xlabel="seconds", yticks=range(len(names)))
    axes.set_yticklabels([plain(name) or "all seeds" for name in names], fontsize=9)
    axes.set_xlim(left=0)
    what = "Time to win" if has_won else "Time of training"
    axes.set_title(f"{what}: median, 95 % interval")


def _draw_profiles(axes: Any, groups: Groups) -> None:
    scores = {
        name: [it.final_return for it in results if it.final_return is not None] or [-21.0]
        for name, results in groups.items()
    }
    known = [score for each in scores.values() for score in each]
    thresholds = np.linspace(min(known) - 0.5, max(known) + 0.5, _GRID)
    for number, (name, each) in enumerate(scores.items()):
        style = line_style(number)
        if len(each) >= FEWEST:
            low, high = statistics.profile_band(each, thresholds)
            axes.fill_between(thresholds, low, high, color=style["color"], alpha=0.15, linewidth=0)
        shares = statistics.performance_profile(each, thresholds)
        axes.plot(thresholds, shares, **style, label=plain(name) or "all seeds")
    axes.set(ylim=(-0.03, 1.03), xlabel="final return", ylabel="share of trainings above it")
    axes.set_title("Performance profile, 95 % band")
