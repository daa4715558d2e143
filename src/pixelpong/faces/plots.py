"""``pixelpong plot RUN…``: a picture of one or several runs, in a file.

    curve    estimated return over the steps, evaluations; of a single run also its episodes
    health   entropy, size of the gradient, losses, speed
    sweep    curves, and times to win, of the settings of a sweep

Runs that differ only in the seed are one line: the mean of the seeds, with a band from the lowest
to the highest, as far as all of them go. Each seed is a thin line, up to its own end. Copies of a
seed count once.

The colours are those of Okabe and Ito, which colour-blind people can tell apart. Lines also differ
in their dashes, so that a grey print works too. The same figure is the same bytes: no date, no
random names. This is the only module that needs matplotlib.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.faces.extras import require
from pixelpong.run.files import require_place, write_whole
from pixelpong.run.record import Record
from pixelpong.sweep.results import Setting, make_settings, seconds_of

Figure = Any  # a matplotlib Figure; the library is an extra, and may be missing
Line = tuple[NDArray[Any], NDArray[Any]]  # of one seed: steps [N], ascending, and values [N]
Settings = Mapping[str, Setting]  # by their names in a legend

FORMATS = ("png", "svg", "pdf")
MAX_SETTINGS = 12  # of a sweep that are drawn; more could not be told apart

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
BLACK, GREY = "#000000", "#767676"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)),
)  # fmt: skip

_STYLE: Any = {
    "font.size": 11, "axes.titlesize": 12, "axes.labelsize": 11, "legend.fontsize": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "axes.unicode_minus": True, "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8, "lines.linewidth": 1.8, "legend.frameon": False, "figure.dpi": 160,
    "savefig.dpi": 160, "savefig.facecolor": "white", "svg.hashsalt": "pixelpong",
}  # fmt: skip
_POINTS, _MANY = 200, 3000  # of a mean; more dots than this become one bitmap in an SVG

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


def plot(runs: Sequence[Record], kind: str, path: Path | None) -> Path:
    """Draw runs to a file, by default in the first run; its ending chooses the format."""
    file = path or runs[0].path / "plots" / f"{kind}.png"
    if path is not None:
        require_place(path)
    content = draw_plot(runs, kind, file.suffix.lower().removeprefix("."))
    write_whole(file, content, make_folder=path is None)
    return file


def draw_plot(runs: Sequence[Record], kind: str, format: str) -> bytes:
    """A picture of one or more runs, as the bytes of a file in one of `FORMATS`."""
    for what, name, names in (("kind of picture", kind, KINDS), ("format", format, FORMATS)):
        if name not in names:
            raise ConfigError(expected(f"a {what}", repr(name), f"use {', '.join(names)}"))
    require("Pictures need", "matplotlib", extra="plot")
    with house_style():
        return render(KINDS[kind](name_settings(runs)), format)


def name_settings(runs: Sequence[Record]) -> Settings:
    """The settings of runs, each by its name in a legend."""
    for run in runs:
        if run.config is None or not run.steps:
            raise RunError(run.problem or f"{run.path} has no update yet: train it first.")
    settings: dict[str, Setting] = {}
    for setting in make_settings(runs):
        run, *others = setting.records
        name = run.name
        if others:
            what = setting.label or (run.config.preset if run.config else "")
            name = f"{what}, {len(setting.records)} seeds"
        settings[plain(str(run.path) if plain(name) in settings else name)] = setting
    return settings


def draw_curve(settings: Settings) -> Figure:
    """The estimated return over the steps, and the evaluations; of a single run its episodes."""
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    unit = _draw_returns(axes, settings)
    for number, setting in enumerate(settings.values()):
        run, *others = setting.records
        if run.evaluations and not others:
            at = run.steps_at(it.update for it in run.evaluations)
            means = [it.mean_return for it in run.evaluations]
            ends = np.transpose([it.ci95 for it in run.evaluations])
            axes.errorbar(
                at / unit, means, abs(ends - means), fmt="D", color=line_style(number)["color"],
                markeredgecolor="white", markersize=6, capsize=3, elinewidth=1.4, zorder=4,
            )  # fmt: skip
    runs = [run for setting in settings.values() for run in setting.records]
    if len(runs) == 1:
        steps, returns = runs[0].returns()
        axes.plot(
            steps / unit, returns, linestyle="none", marker=".", color="#A0A0A0", zorder=1,
            markeredgewidth=0, markersize=6 if len(returns) < 600 else 3.5,
            rasterized=len(returns) > _MANY,
        )  # fmt: skip
    if not math.isfinite(axes.dataLim.ymax):
        raise RunError("There is no estimated return to draw yet: train for 1,000 points or more.")
    axes.set_ylim(-21.8, min(21.8, axes.dataLim.ymax + 2))  # early runs would be a flat line
    axes.set_title(_title("Learning curve", settings) + "\n")
    note = "dot: an episode" if len(runs) == 1 else "band: lowest to highest seed, as far as all go"
    note += "; diamond: greedy evaluation with its 95 % interval"
    axes.text(0, 1.02, note, transform=axes.transAxes, color=GREY, fontsize=10)
    axes.legend(loc="best")
    return figure


def draw_health(settings: Settings) -> Figure:
    """Early signs of a training that goes wrong, and its speed: running medians."""
    signs = {
        sign: {name: found for name, it in settings.items() if (found := find_lines(it, sign))}
        for sign in _SIGNS
    }
    signs = {sign: lines for sign, lines in signs.items() if lines}
    rows = math.ceil(len(signs) / 3)
    figure = new_figure(12, 2.7 * rows + 0.8)
    for place, (sign, lines) in enumerate(signs.items()):
        axes = figure.add_subplot(rows, 3, place + 1)
        unit = _label_steps(axes, settings, has_words=place >= len(signs) - 3)
        for number, seeds in enumerate(lines.values()):
            if len(seeds) == 1:  # each update
                axes.plot(
                    seeds[0][0] / unit, seeds[0][1], color=line_style(number)["color"], alpha=0.3,
                    linewidth=0.7, rasterized=len(seeds[0][0]) > _MANY,
                )  # fmt: skip
        medians = {name: [_smooth(*seed) for seed in seeds] for name, seeds in lines.items()}
        _draw_lines(axes, medians, unit)
        _scale_values(axes, np.concatenate([v for seeds in lines.values() for _, v in seeds]))
        if sign == "entropy":
            _draw_most_entropy(axes, settings)
        axes.set_title(_SIGNS[sign], fontsize=11)
    figure.suptitle(_title("Health of the training", settings), fontsize=13)
    _draw_legend(figure, settings)
    return figure


def draw_sweep(settings: Settings) -> Figure:
    """Curves, and times to win with their 95 % intervals."""
    settings = dict(list(settings.items())[:MAX_SETTINGS])
    figure = new_figure(10, 8.5)
    curves, times = figure.subplots(2, height_ratios=[1.15, 1])
    unit = _draw_returns(curves, settings)
    has_won = any(it.won for it in settings.values())
    for number, setting in enumerate(settings.values()):
        style, won = line_style(number), setting.won
        dots = {"color": style["color"], "markeredgecolor": "white", "linestyle": "none"}
        wins = [it.steps / unit for it in won], [it.best_known for it in won]
        curves.plot(*wins, marker="v", **dots)
        seconds = [seconds_of(it) or 0.0 for it in (won if has_won else setting.records)]
        times.plot(seconds, [number] * len(seconds), marker="o", alpha=0.6, **dots)
        if found := setting.summarize()["seconds"]:
            middle, ends = found["middle"], found["ci95"] or (math.nan, math.nan)
            reach = abs(np.reshape(ends, (2, 1)) - middle)
            times.errorbar(middle, number, xerr=reach, fmt="D", color=BLACK, capsize=4, zorder=4)
        times.annotate(
            f"{len(won)} of {len(setting.records)} won", (1, number), (0, 12), ha="right",
            color=GREY, xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=9,
        )  # fmt: skip
    curves.set_ylim(-21.8, 21.8)
    curves.set_title("Mean and range of the seeds, as far as all go" + "; ▼ won" * has_won)
    times.set(ylim=(len(settings) - 0.4, -0.6), xlabel="seconds", yticks=range(len(settings)))
    times.set_yticklabels(list(settings), fontsize=9)
    times.set_xlim(left=0)
    times.set_title("Time to win: median, 95 % interval" if has_won else "Time of training")
    _draw_legend(figure, settings)
    return figure


KINDS = {"curve": draw_curve, "health": draw_health, "sweep": draw_sweep}


def find_lines(setting: Setting, name: str = "estimated_return") -> list[Line]:
    """The steps and a column of each seed that has it."""
    return [line for line in (run.curve(name) for run in setting.records) if len(line[0])]


def _draw_returns(axes: Any, settings: Settings) -> float:
    """Draw the estimated returns; return the unit of the steps."""
    unit = _label_steps(axes, settings)
    _draw_lines(axes, {name: find_lines(setting) for name, setting in settings.items()}, unit)
    axes.set_ylabel("return, estimated from the last 1,000 points")
    return unit


def _draw_lines(axes: Any, lines: Mapping[str, Sequence[Line]], unit: float) -> None:
    """A line for each setting: that of its seed, or the mean of several with their band."""
    for number, (name, seeds) in enumerate(lines.items()):
        style = line_style(number)
        steps, values = seeds[0] if seeds else (np.empty(0), np.empty(0))
        if len(seeds) > 1:
            for each in seeds:
                axes.plot(each[0] / unit, each[1], color=style["color"], linewidth=0.6, alpha=0.5)
            begin, end = max(each[0][0] for each in seeds), min(each[0][-1] for each in seeds)
            steps = np.linspace(begin, max(begin, end), _POINTS)
            table = np.array([np.interp(steps, *each) for each in seeds])
            low, high, values = table.min(axis=0), table.max(axis=0), table.mean(axis=0)
            axes.fill_between(steps / unit, low, high, color=style["color"], alpha=0.15, lw=0)
        axes.plot(steps / unit, values, label=name, **style)


def _smooth(steps: NDArray[Any], values: NDArray[Any]) -> Line:
    """Medians of a 25th of the values, in at most some 400 places."""
    window = max(1, len(values) // 25)
    every = max(1, len(values) // 400)
    medians = np.median(sliding_window_view(values, window)[::every], axis=1)
    return steps[(window - 1) // 2 :: every][: len(medians)], medians


def _draw_most_entropy(axes: Any, settings: Settings) -> None:
    configs = [setting.records[0].config for setting in settings.values()]
    for actions in sorted({_ACTIONS[it.learning.algorithm] for it in configs if it}):
        axes.axhline(math.log(actions), color=GREY, linewidth=1, linestyle=":")
        axes.annotate(
            f"ln {actions}: all actions alike", (1, math.log(actions)), (0, 2), ha="right",
            xycoords=("axes fraction", "data"), textcoords="offset points", color=GREY, fontsize=9,
        )  # fmt: skip
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.15 * math.log(actions)))


def _scale_values(axes: Any, values: NDArray[Any]) -> None:
    """Start at zero; if the values differ by orders of magnitude, use a logarithmic scale."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 200 * float(np.median(values)):
        axes.set_yscale("log")
    elif low >= 0:
        axes.set_ylim(0, 1.08 * high if high > 0 else 1)
    if high >= 1e4 or high < 1e-2:
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)


def _label_steps(axes: Any, settings: Settings, *, has_words: bool = True) -> float:
    """Label the axis of the steps, which starts at zero; return what to divide them by."""
    last = max(run.steps for setting in settings.values() for run in setting.records)
    unit, word = scale_of(last)
    axes.set_xlabel(f"steps of the agent{word}" * has_words)
    axes.set_xlim(0, 1.02 * last / unit)
    return unit


def _draw_legend(figure: Figure, settings: Settings) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if len(settings) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)


def _title(what: str, settings: Settings) -> str:
    (name, setting), *others = settings.items()
    config = setting.records[0].config
    if not others and len(setting.records) == 1 and config:
        return f"{what} of {name}: {config.preset} on {config.environment.environment}"
    return f"{what} of {sum(len(each.records) for each in settings.values())} runs"


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """While inside, draw in our style, whatever the user's own settings are."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # in a run's name
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure without a window, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def render(figure: Figure, format: str) -> bytes:
    """The figure as the bytes of a file in one of `FORMATS`."""
    buffer, keys = io.BytesIO(), {"svg": "Date", "png": "Software", "pdf": "CreationDate"}
    figure.savefig(buffer, format=format, metadata={keys[format]: None})
    return buffer.getvalue()


def plain(text: str) -> str:
    """Escape text so that matplotlib draws it literally: no formula, no hidden label."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return " " * text.startswith("_") + printable.replace("$", r"\$")


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes of the `number`-th of several lines."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def scale_of(largest: float) -> tuple[float, str]:
    """What to divide large counts by, and the name of that unit.

    >>> scale_of(3_500_000), scale_of(120)
    ((1000000.0, ', millions'), (1.0, ''))
    """
    for size, name in ((1e6, ", millions"), (1e3, ", thousands")):
        if largest >= 2 * size:
            return size, name
    return 1.0, ""
