"""Panels of plots that show the results of runs as dots: times to the win, scores at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pixelpong.evaluation import bootstrap_interval
from pixelpong.faces.palette import BLACK, GREY, colour_of
from pixelpong.faces.scales import PongScale, Scale, ScoreScale, ShareScale
from pixelpong.run.lines import MIN_RUNS
from pixelpong.seeding import make_rng
from pixelpong.sweeps.settings import Setting, seconds_of

Settings = Mapping[str, Setting]  # settings by their names in the legend


def draw_times(times: Any, settings: Settings) -> None:
    """Draw the time of each run that won, with the median and its 95 % interval."""
    has_won = any(setting.won for setting in settings.values())
    for number, (name, setting) in enumerate(settings.items()):
        shown = setting.won if has_won else setting.records
        seconds = [seconds_of(run) or 0.0 for run in shown]
        times.plot(seconds, [number] * len(seconds), "o", color=colour_of(number), alpha=0.6)
        summary = setting.summarize()["seconds"]
        if summary is not None:
            median = summary["median"]
            ends = summary["ci95"] or (median, median)
            lengths = [[abs(end - median)] for end in ends]
            times.errorbar(median, number, xerr=lengths, fmt="D", color=BLACK, capsize=4, zorder=4)
        won = f"{name}: {len(setting.won)} of {len(setting.records)} won"
        write_at_right(times, number - 0.2, won)
    times.set(xlim=(0, None), xlabel="seconds")
    times.set_title("Time to win: median, 95 % interval" if has_won else "Time of training")


def draw_finals(axes: Any, settings: Settings, scale: ScoreScale | ShareScale) -> None:
    """Draw the score of each run that is done, with the mean and its 95 % interval."""
    for number, (name, setting) in enumerate(settings.items()):
        known = [run.best_known for run in setting.records if run.is_done]
        scores = scale.convert(setting.config.game, [it for it in known if it is not None])
        axes.plot(scores, [number] * len(scores), "o", color=colour_of(number), alpha=0.6)
        if len(scores) and np.isfinite(scores).all():
            mean = scores.mean()
            ends = (mean, mean)
            if len(scores) >= MIN_RUNS:
                ends = bootstrap_interval(scores, make_rng(0, "bootstrap"))
            lengths = [[abs(end - mean)] for end in ends]
            axes.errorbar(mean, number, xerr=lengths, fmt="D", color=BLACK, capsize=4, zorder=4)
        write_at_right(axes, number - 0.2, f"{name}: {len(scores)} done")
    axes.set_xlabel(scale.unit)
    axes.set_title("Score at the end: mean, 95 % interval")


def draw_marks(axes: Any, settings: Settings, scale: Scale) -> None:
    """Draw a line at each mark of the scale that the axes reach."""
    high = axes.get_ylim()[1]
    for value, text in scale.marks(settings.values()):
        if value <= high:
            axes.axhline(value, color=GREY, linewidth=1, linestyle=":")
        if not isinstance(scale, PongScale):  # beside the axes, where no curve ends
            text, height = (text, value) if value <= high else (f"{text} ↑", high)
            anchor = {"xy": (1.005, height), "xycoords": axes.get_yaxis_transform()}
            axes.annotate(text.replace(" ", "\n", 1), **anchor, va="center", color=GREY, fontsize=9)
        elif value <= high:
            write_at_right(axes, value, text)


def write_at_right(axes: Any, height: float, text: str) -> None:
    """Write a text at the right end of the axes, above a height."""
    transform = axes.get_yaxis_transform()
    axes.text(1, height, text, transform=transform, ha="right", va="bottom", color=GREY, fontsize=9)
