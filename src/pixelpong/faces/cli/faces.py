"""The commands that show a run: films, plots, pages, exports. They never train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, expected
from pixelpong.faces.cli.reporting import report_on, tell
from pixelpong.interrupts import stop_on_signals


def record(options: Any) -> int:
    """``pixelpong record RUN``"""
    from pixelpong.agent.choice import find_agent, find_game
    from pixelpong.faces.film import describe_film, make_film
    from pixelpong.run.files import require_place

    if options.out:
        require_place(options.out)
    run, name = find_agent(options.run)
    checkpoint = name or options.checkpoint
    chosen = find_game(run, checkpoint, options.episode, is_greedy=not options.sampled)
    folder = Path() if run is None else run.path / "videos"
    file_name = f"update-{chosen.agent.about['update']:06d}-episode-{options.episode}.mp4"
    with stop_on_signals() as should_stop:
        report = make_film(
            chosen,
            options.out or folder / file_name,
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
    from pixelpong.faces import plots
    from pixelpong.run.directory import RunDirectory
    from pixelpong.run.names import find_run

    runs = [RunDirectory.open(find_run(word)) for word in options.runs]
    file = plots.plot(runs, options.kind, options.out)
    report_on({"file": str(file)}, options.json, lambda report: str(report["file"]))
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
    chosen = [name for name in ("html", "agent") if getattr(options, name) is not None]
    if len(chosen) != 1:
        got = " and ".join(f"--{name}" for name in chosen) or "none of them"
        what = "--html FILE or --agent FILE"
        raise ConfigError(expected(what, got, "give one"))
    from pixelpong.agent.choice import find_agent

    run, _ = find_agent(options.run)
    if run is None:
        got = options.run and f"{options.run}, an agent in the package"
        raise ConfigError(expected(f"a run for --{chosen[0]}", got or "none", "name one"))
    elif options.html:
        from pixelpong.faces.page.export import describe_page, write_page

        report = write_page(run, options.html, max_replays=options.replays)
        report_on(report, options.json, describe_page)
    else:
        from pixelpong.agent.choice import load_agent
        from pixelpong.agent.file import write_agent

        agent = load_agent(run, options.checkpoint)
        write_agent(agent, options.agent)
        report = {"file": str(options.agent), **agent.about}
        report_on(report, options.json, lambda report: f"saved {report['file']}")
    return 0


def _serve_game(options: Any, page: str) -> int:
    """Serve the page on which the named run's agent plays."""
    from pixelpong.agent.choice import find_agent, load_agent
    from pixelpong.run.directory import RUNS_FOLDER

    run, name = find_agent(options.run)
    which = name or options.checkpoint
    load_agent(run, which)  # reports an error here, and not on the page
    folder, path = (RUNS_FOLDER, None) if run is None else (run.path.parent, run.path)
    return _serve(options, folder, page=page, run=path, checkpoint=which)


def _serve(options: Any, runs_dir: Path, **about: Any) -> int:
    from pixelpong.faces.page import serve

    with stop_on_signals() as should_stop:
        serve(
            runs_dir,
            host=options.host,
            port=options.port,
            token=options.token,
            opens_browser=not options.no_open,
            tell=tell,
            should_stop=should_stop,
            **about,
        )
    return 0
