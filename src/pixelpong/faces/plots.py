"""``pixelpong plot RUN…``: a picture of one or several runs, in a file.

    curve    the estimated return over the steps, evaluations, and the episodes of a single run
    health   entropy, size of the gradient, losses, speed
    sweep    the curve, and the times to the win for each setting of a sweep

In games other than Pong, the mean score of the last 100 games replaces the estimated return, and
the scores at the end replace the times to the win.

Runs that differ only in the seed share one line, the mean of the seeds, with a band from the lowest
to the highest, up to the end of the shortest run. Each seed also has a thin line up to its own end.
Copies of a seed count once.

The same plot gives the same bytes, because a file has
no date and no random names. This is the only module that needs matplotlib.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridges import cartridge
from pixelpong.config import ALGORITHMS, Config
from pixelpong.errors import ConfigError, RunError, list_words, must_be, number_of, on_one_line
from pixelpong.faces.palette import BLACK, DASHES, GREY, colour_of
from pixelpong.faces.panels import (
    Settings,
    draw_finals,
    draw_marks,
    draw_times,
    write_at_right,
)
from pixelpong.faces.scales import PongScale, Scale, make_scale
from pixelpong.machine import require
from pixelpong.run.files import require_writable, write_whole
from pixelpong.run.record import Record
from pixelpong.sweeps.settings import Setting, make_settings

Figure = Any  # a matplotlib Figure; the library is an extra, and may be missing

FORMATS = ("png", "svg", "pdf")
MAX_SETTINGS = 12  # most settings drawn for a sweep; more could not be told apart

_STYLE: Any = {
    "font.size": 11, "axes.titlesize": 12, "axes.labelsize": 11, "legend.fontsize": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "axes.formatter.limits": (-2, 4), "axes.formatter.use_mathtext": True,
    "grid.color": "#E6E6E6", "grid.linewidth": 0.8, "lines.linewidth": 1.8, "figure.dpi": 160,
    "legend.frameon": False, "savefig.dpi": 160, "savefig.facecolor": "white",
    "svg.hashsalt": "pixelpong",
}  # fmt: skip
_LETTERS_PER_INCH = 8  # number of letters that fit into an inch of a title
_MEAN_POINTS = 200  # number of points in the line of a mean
_MANY_POINTS = 3000  # more points than this become one bitmap in an SVG
_NUM_BLOCKS = 60  # number of blocks of updates, whose medians form a smoothed line

# The panels of the health plot: columns of the metrics and their titles.
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


class Line(NamedTuple):
    """A metric of one seed over the steps."""

    steps: NDArray[Any]  # [N], ascending
    values: NDArray[Any]  # [N]


def plot(runs: Sequence[Record], kind: str, path: Path | None, folder: Path = Path()) -> Path:
    """Plot runs to a file, by default in `folder`; its ending decides the format."""
    file = path or folder / "plots" / f"{kind}.png"
    if path is not None:
        require_writable(path)
    content = draw_plot(runs, kind, file.suffix.lower().removeprefix("."))
    write_whole(file, content, make_folder=path is None)
    return file


def draw_plot(runs: Sequence[Record], kind: str, file_format: str) -> bytes:
    """Plot one or more runs; return the bytes of a file in one of `FORMATS`."""
    if kind not in KINDS:
        raise ConfigError(must_be("kind", list_words(list(KINDS), "or"), repr(kind)))
    if file_format not in FORMATS:
        names = list_words([f".{name}" for name in FORMATS], "or")
        raise ConfigError(f"The name of a plot must end in {names}, not .{file_format}.")
    require("Plots need", "matplotlib", extra="plot")
    with house_style():
        return render(KINDS[kind](name_settings(runs)), file_format)


def name_settings(runs: Sequence[Record]) -> Settings:
    """Return the settings of runs, keyed by their names in the legend."""
    for run in runs:
        if run.config is None or not run.steps:
            raise RunError(run.problem or f"{run.path} has no update to plot yet; train it first.")
    settings: dict[str, Setting] = {}
    for setting in make_settings(runs):
        first, name = setting.records[0], setting.records[0].name
        if len(setting.records) > 1:
            label = textwrap.shorten(setting.label or setting.config.preset, 80, placeholder=" …")
            name = f"{label}, {len(setting.records)} seeds"
        if escape(name) in settings:
            name = str(first.path)
        settings[escape(name)] = setting
    return settings


def draw_curve(settings: Settings) -> Figure:
    """Plot the estimated return over the steps, evaluations, and the episodes of a single run."""
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    scale = make_scale(settings.values())
    _draw_returns(axes, settings, scale)
    if not math.isfinite(axes.dataLim.ymax):
        raise RunError(scale.empty)
    draw_marks(axes, settings, scale)
    return _finish(figure, "Learning curve", settings)


def draw_sweep(settings: Settings) -> Figure:
    """Plot the curve, and below it the times to the win, or the scores at the end."""
    num_hidden = max(0, len(settings) - MAX_SETTINGS)
    settings = dict(list(settings.items())[:MAX_SETTINGS])
    figure = new_figure(10, 8.5)
    curves, results = figure.subplots(2, height_ratios=[1.15, 1])
    scale = make_scale(settings.values())
    _draw_returns(curves, settings, scale)
    draw_marks(curves, settings, scale)
    if isinstance(scale, PongScale):
        draw_times(results, settings)
    else:
        draw_finals(results, settings, scale)
    results.set(ylim=(len(settings) - 0.5, -0.7), yticks=[])
    note = f"{number_of(num_hidden, 'more setting')} not shown" if num_hidden else ""
    return _finish(figure, "Sweep", settings, note)


def draw_health(settings: Settings) -> Figure:
    """Plot early signs of failure, and the speed, as medians over blocks of updates."""
    signs = [sign for sign in _SIGNS if any(find_lines(it, sign) for it in settings.values())]
    rows = math.ceil(len(signs) / 3)
    figure = new_figure(12, 2.7 * rows + 0.8)
    for panel, sign in enumerate(signs, 1):
        axes = figure.add_subplot(rows, 3, panel)
        _draw_lines(axes, settings, sign, is_smooth=True)
        if sign == "entropy":
            for num_actions in sorted({_count_actions(it.config) for it in settings.values()}):
                axes.axhline(math.log(num_actions), color=GREY, linewidth=1, linestyle=":")
                note = f"ln {num_actions}: all actions equally likely"
                write_at_right(axes, math.log(num_actions), note)
            axes.margins(y=0.15)
        if axes.dataLim.ymin >= 0:
            axes.set_ylim(bottom=0)
        axes.set_title(_SIGNS[sign], fontsize=11)
    return _finish(figure, "Health of the training", settings, "medians over blocks of updates")


def _count_actions(config: Config) -> int:
    if config.is_pong:
        return ALGORITHMS[config.algorithm].num_actions
    return len(cartridge(config.game).actions)


KINDS = {"curve": draw_curve, "health": draw_health, "sweep": draw_sweep}


def find_lines(setting: Setting, name: str | None, scale: Scale | None = None) -> list[Line]:
    """Find the lines of a metric, or of the returns on a `scale`, one for each seed that has it."""
    lines = [Line(*run.curve(name)) for run in setting.records]
    if scale is not None:
        game = setting.config.game
        lines = [Line(steps, scale.convert(game, values)) for steps, values in lines]
    return [line for line in lines if len(line.steps)]


def _draw_returns(axes: Any, settings: Settings, scale: Scale) -> None:
    """Draw the returns, evaluations, and the episodes of a single run."""
    _draw_lines(axes, settings, None, scale)
    for number, setting in enumerate(settings.values()):
        for run in setting.records:
            _draw_evaluations(axes, run, colour_of(number), scale)
            _draw_restarts(axes, run)
    runs = [run for setting in settings.values() for run in setting.records]
    note = scale.note
    if len(runs) == 1:
        note = "dot: an episode"
        steps, returns = runs[0].returns()
        axes.plot(
            steps, returns, ".", color="#A0A0A0", zorder=1, markeredgewidth=0, markersize=5,
            rasterized=len(returns) > _MANY_POINTS,
        )  # fmt: skip
    if math.isfinite(axes.dataLim.ymax):
        axes.set_ylim(*scale.limits(axes.dataLim.ymin, axes.dataLim.ymax))
    axes.set_ylabel(scale.label)
    note += f"; diamond: {scale.evaluations}, 95 % interval"
    axes.set_title(note, color=GREY, fontsize=10, loc="left")


def _draw_evaluations(axes: Any, run: Record, colour: str, scale: Scale) -> None:
    """Draw a diamond with an interval for each evaluation of a run."""
    if run.evaluations:
        steps = run.steps_at(it.update for it in run.evaluations)
        means = scale.convert(run.game, [it.mean_return for it in run.evaluations])
        ends = [it.interval or 2 * (it.mean_return,) for it in run.evaluations]
        intervals = scale.convert(run.game, np.transpose(ends))
        axes.errorbar(
            steps, means, abs(intervals - means), fmt="D", color=colour, markeredgecolor="white",
            markersize=6, capsize=3, elinewidth=1.4, zorder=4,
        )  # fmt: skip


def _draw_restarts(axes: Any, run: Record) -> None:
    """Draw a cross for each restart of a run with new parameters."""
    steps, attempts = run.curve("attempt")
    restarts = steps[1:][np.diff(attempts) > 0]
    if len(restarts):
        axes.plot(restarts, np.interp(restarts, *run.curve()), "X", color=BLACK, markersize=8)


def _draw_lines(
    axes: Any,
    settings: Settings,
    name: str | None,
    scale: Scale | None = None,
    *,
    is_smooth: bool = False,
) -> None:
    """Draw a metric for each setting: its only seed, or the mean of its seeds and their band.

    With a `scale`, it is the returns.
    """
    from matplotlib.ticker import EngFormatter

    for number, (label, setting) in enumerate(settings.items()):
        raw = find_lines(setting, name, scale)
        smooth = [_smooth(line) for line in raw] if is_smooth else raw
        # A single seed is drawn in full behind its own smoothed line.
        _draw_thin(axes, raw if len(raw) == 1 else smooth, colour_of(number))
        main = Line(np.empty(0), np.empty(0))  # without data, this line is only for the legend
        if len(smooth) == 1:
            main = smooth[0]
        elif smooth:
            main = _draw_band(axes, smooth, colour_of(number))
        axes.plot(
            main.steps, main.values, color=colour_of(number),
            linestyle=DASHES[number % len(DASHES)], label=label,
        )  # fmt: skip
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set(xlabel="steps of the agent", xlim=(0, None))


def _draw_thin(axes: Any, lines: Sequence[Line], colour: str) -> None:
    for line in lines:
        is_bitmap = len(line.steps) > _MANY_POINTS
        axes.plot(*line, color=colour, linewidth=0.6, alpha=0.4, rasterized=is_bitmap)


def _draw_band(axes: Any, lines: Sequence[Line], colour: str) -> Line:
    """Draw a band from the lowest to the highest line where all have data; return the mean."""
    begin = max(line.steps[0] for line in lines)
    end = min(line.steps[-1] for line in lines)
    steps = np.linspace(begin, max(begin, end), _MEAN_POINTS)
    table = np.array([np.interp(steps, *line) for line in lines])
    low, high = table.min(axis=0), table.max(axis=0)
    axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    return Line(steps, table.mean(axis=0))


def _smooth(line: Line) -> Line:
    """Replace blocks of points by their medians."""
    num_blocks = min(len(line.steps), _NUM_BLOCKS)
    steps, values = (
        [np.median(block) for block in np.array_split(column, num_blocks)] for column in line
    )
    return Line(np.array(steps), np.array(values))


def _finish(figure: Figure, title: str, settings: Settings, note: str = "") -> Figure:
    """Add the title with a note, and the legend."""
    if len(settings) > 1:
        full_title = f"{title} of {sum(len(it.records) for it in settings.values())} runs"
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)
    else:
        [(name, setting)] = settings.items()
        config = setting.config
        full_title = f"{title} of {name} ({config.preset} on {config.protocol})"
    width = int(_LETTERS_PER_INCH * figure.get_figwidth())
    full_title += f"; {note}" if note else ""
    figure.suptitle(textwrap.fill(full_title, width), fontsize=13)
    return figure


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """Context manager in which plots have our style, whatever the user's settings."""
    _load_matplotlib()
    import matplotlib.style

    with matplotlib.style.context(_STYLE, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # from a run's name
        yield


def _load_matplotlib() -> None:
    """Import matplotlib without its support for windows, because here it only draws to files.

    A notebook names its backend in the environment, which the programs it starts inherit, and
    matplotlib refuses an unknown name. So it is imported without that name, which is set afterwards
    if it is known. If matplotlib cannot write to its folder, it uses a temporary one and logs a
    warning, which is dropped here.
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
    """Make an empty figure without a window; the lengths are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def render(figure: Figure, file_format: str) -> bytes:
    """Render a figure to the bytes of a file in one of `FORMATS`."""
    varying = {"svg": "Date", "png": "Software", "pdf": "CreationDate"}[file_format]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file_format, metadata={varying: None})
    return buffer.getvalue()


def escape(text: str) -> str:
    """Escape text so that matplotlib draws it literally, not as a formula or a hidden label."""
    literal = on_one_line(text).replace("$", r"\$")
    return f" {literal}" if literal.startswith("_") else literal
