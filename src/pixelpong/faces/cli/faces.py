"""The commands that show what a run holds: films, plots, pages, exports. They never train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.errors import ConfigError, expected
from pixelpong.faces.cli.reporting import report_on, tell
from pixelpong.interrupts import stop_on_signals

if TYPE_CHECKING:
    from pixelpong.run.directory import RunDirectory


def record(options: Any) -> int:
    """``pixelpong record RUN``"""
    from pixelpong.agent.choice import choose_replay
    from pixelpong.faces.film import describe_film, make_film

    which = "best" if options.best else options.checkpoint
    run = _open(options.run)
    chosen = choose_replay(run, update=options.update, which=which, episode=options.episode)
    folder = Path() if options.run is None else options.run / "videos"
    with stop_on_signals() as should_stop:
        report = make_film(
            chosen,
            options.out or folder / f"episode-{chosen.replay.episode:06d}.mp4",
            has_overlay=options.overlay,
            scale=options.scale,
            speed=options.speed,
            seconds=options.seconds,
            should_stop=should_stop,
        )
    report_on(report, options.json, describe_film)
    return 0


def plot(options: Any) -> int:
    """``pixelpong plot RUN…``"""
    from pixelpong.faces.plots import describe_plots, draw_plots
    from pixelpong.run.directory import RunDirectory

    runs = [RunDirectory.open(path) for path in options.runs]
    folder = options.out or options.runs[0] / "plots"
    files = draw_plots(runs, folder, options.kinds.split(","), options.formats.split(","))
    report_on({"files": [str(file) for file in files]}, options.json, describe_plots)
    return 0


def dashboard(options: Any) -> int:
    """``pixelpong dashboard [RUNS_DIR]``"""
    return _serve(options, options.runs_dir, page="/")


def play(options: Any) -> int:
    """``pixelpong play RUN``"""
    return _serve_game(options, "/#play")


def watch(options: Any) -> int:
    """``pixelpong watch RUN``"""
    return _serve_game(options, "/#watch")


def export(options: Any) -> int:
    """``pixelpong export RUN``"""
    chosen = [name for name in ("html", "onnx", "agent") if getattr(options, name) is not None]
    if len(chosen) != 1:
        got = " and ".join(f"--{name}" for name in chosen) or "none of them"
        what = "--html FILE, --onnx FILE or --agent FILE"
        raise ConfigError(expected(what, got, "give one"))
    run = _open(options.run)
    if options.onnx:
        from pixelpong.agent.choice import load_agent
        from pixelpong.faces.onnx import describe_onnx as describe
        from pixelpong.faces.onnx import write_onnx

        report = write_onnx(load_agent(run, options.checkpoint), options.onnx)
    elif run is None:
        raise ConfigError(expected(f"a run for --{chosen[0]}", "none", "name one"))
    elif options.html:
        from pixelpong.faces.page.export import describe_page as describe
        from pixelpong.faces.page.export import write_page

        report = write_page(run, options.html, max_replays=options.replays)
    else:
        from pixelpong.faces.shipping import describe_agent as describe
        from pixelpong.faces.shipping import write_agent

        with stop_on_signals() as should_stop:
            report = write_agent(
                run,
                options.checkpoint,
                options.agent,
                max_bytes=options.kilobytes * 1000,
                episodes=options.episodes,
                should_stop=should_stop,
            )
    report_on(report, options.json, describe)
    return 0


def track(options: Any) -> int:
    """``pixelpong track RUN --to SINK``"""
    from pixelpong.faces import track as tracking
    from pixelpong.run.directory import RunDirectory

    run = RunDirectory.open(options.run)
    with stop_on_signals() as should_stop:
        report = tracking.track(
            run, options.to, options.out, is_live=options.live, should_stop=should_stop
        )
    report_on(report, options.json, tracking.describe_track)
    return 0


def _open(path: Path | None) -> RunDirectory | None:
    """The run that is named; None, for the agent in the package, if none is."""
    from pixelpong.run.directory import RunDirectory

    return None if path is None else RunDirectory.open(path)


def _serve_game(options: Any, page: str) -> int:
    """Serve the page on which the named run's agent plays."""
    from pixelpong.agent.choice import load_agent

    # What is wrong with it is said here, and not on the page.
    load_agent(_open(options.run), options.checkpoint)
    folder = Path("runs") if options.run is None else options.run.parent
    return _serve(options, folder, page=page, run=options.run, checkpoint=options.checkpoint)


def _serve(options: Any, runs_dir: Path, **about: Any) -> int:
    from pixelpong.faces.page import serve

    with stop_on_signals() as should_stop:
        serve(
            runs_dir,
            host=options.host,
            port=options.port,
            token=options.token,
            opens_browser=options.open == "yes",
            tell=tell,
            should_stop=should_stop,
            **about,
        )
    return 0
