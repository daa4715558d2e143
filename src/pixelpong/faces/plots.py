"""``pixelpong plot RUN…``: a picture of one or several runs, in a file.

    curve    estimated return over the steps, evaluations; for a single run also its episodes
    health   entropy, size of the gradient, losses, speed
    sweep    the curve, and the times to win of the settings of a sweep

Runs that differ only in the seed are one line: the mean of the seeds, with a band from the lowest
to the highest, up to the end of the shortest. Each seed is a thin line up to its own end. Copies of
a seed count once.

The colours are those of Okabe and Ito, which colour-blind people can tell apart. Lines also differ
in their dashes, so a grey print works too. The same figure gives the same bytes: no date, no random
names. This is the only module that needs matplotlib.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.errors import ConfigError, RunError, expected, on_one_line
from pixelpong.machine import require
from pixelpong.run.files import require_writable, write_whole
from pixelpong.run.record import Record
from pixelpong.sweeps.sweep import Setting, make_settings, seconds_of

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
    "axes.axisbelow": True, "axes.formatter.limits": (-2, 4), "axes.formatter.use_mathtext": True,
    "grid.color": "#E6E6E6", "grid.linewidth": 0.8, "lines.linewidth": 1.8, "figure.dpi": 160,
    "legend.frameon": False, "savefig.dpi": 160, "savefig.facecolor": "white",
    "svg.hashsalt": "pixelpong",
}  # fmt: skip
_LETTERS_PER_INCH = 8  # of a title
_POINTS = 200  # of a mean
_MANY = 3000  # more dots than this become one bitmap in an SVG
_BLOCKS = 60  # of updates; their medians are drawn

_SIGNS = {  # the panels of the health plot: columns of the metrics, and their titles
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


def plot(runs: Sequence[Record], kind: str, path: Path | None, folder: Path = Path()) -> Path:
    """Draw runs into a file, by default in a `folder`; the suffix chooses the format."""
    file = path or folder / "plots" / f"{kind}.png"
    if path is not None:
        require_writable(path)
    content = draw_plot(runs, kind, file.suffix.lower().removeprefix("."))
    write_whole(file, content, make_folder=path is None)
    return file


def draw_plot(runs: Sequence[Record], kind: str, format: str) -> bytes:
    """A picture of one or more runs, as the bytes of a file in one of `FORMATS`."""
    for what, name, names in (("kind", kind, KINDS), ("format", format, FORMATS)):
        if name not in names:
            raise ConfigError(expected(f"a {what} of {', '.join(names)}", repr(name)))
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
            what = textwrap.shorten(setting.label or setting.config.preset, 80, placeholder=" …")
            name = f"{what}, {len(setting.records)} seeds"
        settings[plain(str(run.path) if plain(name) in settings else name)] = setting
    return settings


def draw_curve(settings: Settings) -> Figure:
    """The estimated return over the steps, and the evaluations; for a single run its episodes."""
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    _draw_returns(axes, settings)
    if not math.isfinite(axes.dataLim.ymax):
        raise RunError("There is no estimated return to draw yet: train for 1,000 points or more.")
    return _finish(figure, "Learning curve", settings)


def draw_sweep(settings: Settings) -> Figure:
    """The curve, and the time of each training that won, with the median and its 95 % interval."""
    settings = dict(list(settings.items())[:MAX_SETTINGS])
    figure = new_figure(10, 8.5)
    curves, times = figure.subplots(2, height_ratios=[1.15, 1])
    _draw_returns(curves, settings)
    has_won = any(setting.won for setting in settings.values())
    for number, (name, setting) in enumerate(settings.items()):
        shown = setting.won if has_won else setting.records
        seconds = [seconds_of(run) or 0.0 for run in shown]
        times.plot(seconds, [number] * len(seconds), "o", color=colour_of(number), alpha=0.6)
        if found := setting.summarize()["seconds"]:
            median = found["median"]
            reach = [[abs(end - median)] for end in found["ci95"] or (median, median)]
            times.errorbar(median, number, xerr=reach, fmt="D", color=BLACK, capsize=4, zorder=4)
        won = f"{name}: {len(setting.won)} of {len(setting.records)} won"
        _write_at_the_end(times, number - 0.2, won)
    times.set(xlim=(0, None), ylim=(len(settings) - 0.5, -0.7), yticks=[], xlabel="seconds")
    times.set_title("Time to win: median, 95 % interval" if has_won else "Time of training")
    return _finish(figure, "Sweep", settings)


def draw_health(settings: Settings) -> Figure:
    """Early signs of a failing training, and its speed, as medians of blocks of updates."""
    signs = [sign for sign in _SIGNS if any(find_lines(it, sign) for it in settings.values())]
    rows = math.ceil(len(signs) / 3)
    figure = new_figure(12, 2.7 * rows + 0.8)
    for place, sign in enumerate(signs, 1):
        axes = figure.add_subplot(rows, 3, place)
        _draw_lines(axes, settings, sign, _smooth)
        if sign == "entropy":
            for algorithm in sorted({it.config.algorithm for it in settings.values()}):
                actions = _ACTIONS[algorithm]
                axes.axhline(math.log(actions), color=GREY, linewidth=1, linestyle=":")
                _write_at_the_end(axes, math.log(actions), f"ln {actions}: all actions alike")
            axes.margins(y=0.15)
        if axes.dataLim.ymin >= 0:
            axes.set_ylim(bottom=0)
        axes.set_title(_SIGNS[sign], fontsize=11)
    return _finish(figure, "Health of the training", settings)


KINDS = {"curve": draw_curve, "health": draw_health, "sweep": draw_sweep}


def find_lines(setting: Setting, name: str) -> list[Line]:
    """The steps and a column of each seed that has it."""
    return [line for line in (run.curve(name) for run in setting.records) if len(line[0])]


def _draw_returns(axes: Any, settings: Settings) -> None:
    """The estimated returns, with the greedy evaluations; for a single run its episodes."""
    _draw_lines(axes, settings, "estimated_return")
    runs = [(number, run) for number, it in enumerate(settings.values()) for run in it.records]
    for number, run in runs:
        if run.evaluations:
            at = run.steps_at(it.update for it in run.evaluations)
            means = [it.mean_return for it in run.evaluations]
            ends = np.transpose([it.ci95 for it in run.evaluations])
            axes.errorbar(
                at, means, abs(ends - means), fmt="D", color=colour_of(number),
                markeredgecolor="white", markersize=6, capsize=3, elinewidth=1.4, zorder=4,
            )  # fmt: skip
        steps, attempts = run.curve("attempt")
        again = steps[1:][np.diff(attempts) > 0]
        if len(again):
            axes.plot(again, np.interp(again, *run.curve()), "X", color=BLACK, markersize=8)
    note = "band: lowest to highest, where all have data; cross: started again"
    if len(runs) == 1:
        note = "dot: an episode"
        steps, returns = runs[0][1].returns()
        axes.plot(
            steps, returns, ".", color="#A0A0A0", zorder=1, markeredgewidth=0, markersize=5,
            rasterized=len(returns) > _MANY,
        )  # fmt: skip
    # Early runs would be a flat line.
    axes.set_ylim(-21.8, np.clip(axes.dataLim.ymax + 2, -19, 21.8))
    axes.set_ylabel("return, estimated from the last 1,000 points")
    note += "; diamond: greedy, 95 % interval"
    axes.set_title(note, color=GREY, fontsize=10, loc="left")


def _draw_lines(
    axes: Any, settings: Settings, name: str, smooth: Callable[..., Line] | None = None
) -> None:
    """A line for each setting: that of its seed, or the mean of several with their band."""
    from matplotlib.ticker import EngFormatter

    for number, (label, setting) in enumerate(settings.items()):
        colour, lines = colour_of(number), find_lines(setting, name)
        seeds = [smooth(*line) for line in lines] if smooth else lines
        for steps, values in lines if len(lines) == 1 else seeds:
            thin = {"linewidth": 0.6, "alpha": 0.4, "rasterized": len(steps) > _MANY}
            axes.plot(steps, values, color=colour, **thin)
        steps, values = seeds[0] if seeds else (np.empty(0), np.empty(0))
        if len(seeds) > 1:
            begin, end = max(each[0][0] for each in seeds), min(each[0][-1] for each in seeds)
            steps = np.linspace(begin, max(begin, end), _POINTS)
            table = np.array([np.interp(steps, *each) for each in seeds])
            low, high, values = table.min(axis=0), table.max(axis=0), table.mean(axis=0)
            axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        dashes = DASHES[number % len(DASHES)]
        axes.plot(steps, values, color=colour, linestyle=dashes, label=label)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set(xlabel="steps of the agent", xlim=(0, None))


def _smooth(steps: NDArray[Any], values: NDArray[Any]) -> Line:
    """Medians of blocks."""
    count = min(len(steps), _BLOCKS)
    blocks = [[np.median(it) for it in np.array_split(each, count)] for each in (steps, values)]
    return np.array(blocks[0]), np.array(blocks[1])


def _write_at_the_end(axes: Any, height: float, text: str) -> None:
    where = axes.get_yaxis_transform()
    axes.text(1, height, text, transform=where, ha="right", va="bottom", color=GREY, fontsize=9)


def _finish(figure: Figure, what: str, settings: Settings) -> Figure:
    """Add the title and the legend."""
    (name, setting), *others = settings.items()
    if others:
        title = f"{what} of {sum(len(it.records) for it in settings.values())} runs"
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
    else:
        config = setting.config
        title = f"{what} of {name} ({config.preset} on {config.protocol})"
    most = int(_LETTERS_PER_INCH * figure.get_figwidth())
    figure.suptitle(textwrap.fill(title, most), fontsize=13)
    return figure


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """While inside, draw in our style, whatever the user's own settings are."""
    _load_matplotlib()
    import matplotlib.style

    with matplotlib.style.context(_STYLE, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # in a run's name
        yield


def _load_matplotlib() -> None:
    """Import matplotlib without what it needs for windows: here it only draws to files.

    A notebook names its own backend in the environment, also for programs that it starts, and
    matplotlib refuses a name that it does not know. So it is imported without that name and gets
    it afterwards, if it knows it. If its folder cannot be written, it says so in its log, and uses
    a temporary one.
    """
    if "matplotlib" in sys.modules:
        return
    log, backend = logging.getLogger("matplotlib"), os.environ.pop("MPLBACKEND", None)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib.font_manager
    finally:
        log.setLevel(level)
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    if backend:
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = backend


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
    return " " * text.startswith("_") + on_one_line(text).replace("$", r"\$")


def colour_of(number: int) -> str:
    """The colour of the `number`-th of several lines."""
    return COLOURS[number % len(COLOURS)]
