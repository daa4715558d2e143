"""The commands that show what a run holds: films, plots, pages, exports. They never train."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.errors import ConfigError, expected
from pixelpong.faces.cli.reporting import report_on, require_at_least

if TYPE_CHECKING:
    from pixelpong.faces.cli.options import Request
    from pixelpong.run.directory import RunDirectory

Exported = tuple[dict[str, Any], Callable[[dict[str, Any]], str]]
"""A report, and what puts it into words."""

_tell = functools.partial(print, file=sys.stderr, flush=True)


def record(request: Request) -> int:
    """``pixelpong record RUN``"""
    from pixelpong.agent.choice import choose_replay
    from pixelpong.faces.film import describe_film, make_film
    from pixelpong.interrupts import stop_on_signals

    options = request.options
    require_at_least("--scale", options.scale, 1)
    run = _open(options.run)
    which = "best" if options.best else options.checkpoint
    chosen = choose_replay(run, update=options.update, which=which, episode=options.episode)
    path = options.out or _default_film(options.run, chosen.replay.episode)
    with stop_on_signals() as should_stop:
        report = make_film(
            chosen,
            path,
            has_overlay=options.overlay,
            scale=options.scale,
            speed=options.speed,
            seconds=options.seconds,
            should_stop=should_stop,
        )
    report_on(report, options.json, describe_film)
    return 0


def plot(request: Request) -> int:
    """``pixelpong plot RUN…``"""
    from pixelpong.faces.plots import describe_plots, draw_plots
    from pixelpong.run.directory import RunDirectory

    options = request.options
    if not options.runs:
        raise ConfigError(expected("a run to plot", "none", "name one or several"))
    runs = [RunDirectory.open(path) for path in options.runs]
    folder = options.out or options.runs[0] / "plots"
    files = draw_plots(runs, folder, options.kinds.split(","), options.formats.split(","))
    report_on({"files": [str(file) for file in files]}, options.json, describe_plots)
    return 0


def dashboard(request: Request) -> int:
    """``pixelpong dashboard [RUNS_DIR]``"""
    return _serve(request, request.options.runs_dir, page="/")


def play(request: Request) -> int:
    """``pixelpong play RUN``"""
    return _serve_game(request, "play")


def watch(request: Request) -> int:
    """``pixelpong watch RUN``"""
    return _serve_game(request, "watch")


def export(request: Request) -> int:
    """``pixelpong export RUN``"""
    options = request.options
    ways = {"html": _export_page, "onnx": _export_onnx, "agent": _export_agent}
    chosen = [name for name in ways if getattr(options, name) is not None]
    if len(chosen) != 1:
        got = " and ".join(f"--{name}" for name in chosen) or "none of them"
        what = "--html FILE, --onnx FILE or --agent FILE"
        raise ConfigError(expected(what, got, "give one"))
    report, describe = ways[chosen[0]](_open(options.run), options)
    report_on(report, options.json, describe)
    return 0


def _export_page(run: RunDirectory | None, options: Any) -> Exported:
    from pixelpong.faces.page.export import describe_page, write_page

    page = write_page(_require(run, "--html"), options.html, max_replays=options.replays)
    return page, describe_page


def _export_onnx(run: RunDirectory | None, options: Any) -> Exported:
    from pixelpong.agent.choice import load_agent
    from pixelpong.faces.onnx import describe_onnx, write_onnx

    return write_onnx(load_agent(run, options.checkpoint), options.onnx), describe_onnx


def _export_agent(run: RunDirectory | None, options: Any) -> Exported:
    from pixelpong.faces.shipping import describe_agent, write_agent
    from pixelpong.interrupts import stop_on_signals

    require_at_least("--episodes", options.episodes, 1)
    require_at_least("--kilobytes", options.kilobytes, 1)
    with stop_on_signals() as should_stop:
        report = write_agent(
            _require(run, "--agent"),
            options.checkpoint,
            options.agent,
            max_bytes=options.kilobytes * 1000,
            episodes=options.episodes,
            should_stop=should_stop,
        )
    return report, describe_agent


def track(request: Request) -> int:
    """``pixelpong track RUN --to SINK``"""
    from pixelpong.faces import track as tracking
    from pixelpong.interrupts import stop_on_signals
    from pixelpong.run.directory import RunDirectory

    options = request.options
    run = RunDirectory.open(options.run)
    with stop_on_signals() as should_stop:
        report = tracking.track(
            run, options.to, options.out, is_live=options.live, should_stop=should_stop
        )
    report_on(report, options.json, tracking.describe_track)
    return 0


def _require(run: RunDirectory | None, flag: str) -> RunDirectory:
    if run is None:
        raise ConfigError(expected(f"a run for {flag}", "none", "name one"))
    return run


def _open(path: Path | None) -> RunDirectory | None:
    """The run that is named; None, for the agent in the package, where none is."""
    from pixelpong.run.directory import RunDirectory

    return None if path is None else RunDirectory.open(path)


def _default_film(run: Path | None, episode: int) -> Path:
    name = f"episode-{episode:06d}.mp4"
    return Path(name) if run is None else run / "videos" / name


def _serve_game(request: Request, mode: str) -> int:
    """Serve the page on which the named run's agent plays."""
    path = request.options.run
    from pixelpong.agent.choice import load_agent

    # So that what is wrong with it is said here and not on the page.
    load_agent(_open(path), request.options.checkpoint)
    return _serve(
        request,
        Path("runs") if path is None else path.parent,
        page=f"/#{mode}",
        run=path,
        checkpoint=request.options.checkpoint,
    )


def _serve(request: Request, runs_dir: Path, *, page: str, **chosen: Any) -> int:
    from pixelpong.faces.page import serve
    from pixelpong.interrupts import stop_on_signals

    options = request.options
    with stop_on_signals() as should_stop:
        serve(
            runs_dir,
            host=options.host,
            port=options.port,
            token=options.token,
            opens_browser=options.open != "no",
            page=page,
            tell=_tell,
            should_stop=should_stop,
            **chosen,
        )
    return 0
