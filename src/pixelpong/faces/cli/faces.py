"""The commands that show a run or an agent: films, plots, pages, files. They never train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError
from pixelpong.faces.cli.reporting import report_on, tell
from pixelpong.interrupts import stop_on_signals


def record(options: Any) -> int:
    """``pixelpong record RUN``"""
    from pixelpong.agent.choice import open_agent, play_game
    from pixelpong.faces.look.film import describe_film, make_film
    from pixelpong.run.files import require_place

    if options.out:
        require_place(options.out)
    run, agent = open_agent(options.run, options.checkpoint)
    seed, name = (run.config.seed, run.path.name) if run else (0, options.run or "the package")
    chosen = play_game(agent, name, seed, options.episode, not options.sampled)
    folder = run.path / "videos" if run else Path()
    file_name = f"update-{agent.about.get('update', 0):06d}-episode-{options.episode}.mp4"
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


def export(options: Any) -> int:
    """``pixelpong export RUN --out FILE``"""
    from pixelpong.agent.choice import open_agent

    _, agent = open_agent(options.run, options.checkpoint)
    path = options.out or Path(f"{Path(options.run or 'package').stem}.safetensors")
    if path.suffix != ".safetensors":
        raise ConfigError(f"The agent's file must end in .safetensors, not {path.name!r}.")
    size = agent.write(path)
    report = {"file": str(path), "bytes": size, "update": agent.about.get("update")}
    report_on(report, options.json, lambda it: f"{it['file']}: {it['bytes']:,} bytes")
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


def _serve_game(options: Any, page: str) -> int:
    from pixelpong.agent.choice import open_agent
    from pixelpong.run.directory import RUNS_FOLDER

    run, agent = open_agent(options.run, options.checkpoint)  # reports an error here, not there
    if run is not None:
        is_named = "@" in str(options.run)
        which = str(agent.about["update"]) if is_named else options.checkpoint
        return _serve(options, run.path.parent, page=page, agent=(run.path, which))
    name = agent.about.get("name")
    place = (None, name) if name else (Path(options.run), "best")
    return _serve(options, RUNS_FOLDER, page=page, agent=place)


def _serve(options: Any, runs_dir: Path, **about: Any) -> int:
    from pixelpong.faces.page import serve

    with stop_on_signals() as should_stop:
        serve(
            runs_dir,
            host=options.host,
            port=options.port,
            opens_browser=not options.no_open,
            tell=tell,
            should_stop=should_stop,
            **about,
        )
    return 0
