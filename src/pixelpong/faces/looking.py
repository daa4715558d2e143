"""Looking at runs and agents: lists, films, pictures, files, pages. Nothing here trains."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Literal

from pixelpong.errors import ConfigError
from pixelpong.faces.report import Result, describe_facts, describe_runs, sort_runs
from pixelpong.faces.training import stoppable
from pixelpong.machine import collect_versions, count_cores, describe_machine
from pixelpong.schema import Count, Positive, Seconds

Order = Literal["age", "name", "return", "seed", "size", "state", "steps"]  # of a list of runs


def runs(*words: str | Path, sort: Order = "age") -> Result:
    """List the runs; or show one, and check the hashes of its checkpoints.

    Args:
        words: a run (a directory, a name in ``runs``, or ``"latest"``) to show; or folders of runs,
            by default ``runs``.
        sort: what to sort the list by.
    """
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.names import find_run
    from pixelpong.run.record import Record, is_sweep, records
    from pixelpong.sweep.results import summarize

    found, sweeps = [], []
    for word in dict.fromkeys(words or (RUNS_FOLDER,)):
        folder = next(filter(_is_folder, (Path(word), RUNS_FOLDER / word)), Path(word))
        if folder != RUNS_FOLDER and not _is_folder(folder):
            path = find_run(word)
            if len(words) == 1:
                facts = _examine(path)
                return Result(facts, describe_facts(facts), exit_code=1 if facts["damaged"] else 0)
            found.append(Record.read(path))
            continue
        found += records(folder)
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if is_sweep(path):
                inside = records(path)
                sweeps.append(
                    {
                        "sweep": str(path),
                        **summarize(inside),
                        "steps": sum(it.steps for it in inside),
                        "bytes": sum(it.bytes for it in inside),
                        "modified": max((it.modified for it in inside), default=0.0),
                    }
                )
    found = sort_runs(found, sort)
    if not found and not sweeps:
        where = ", ".join(map(str, words or (RUNS_FOLDER,)))
        text = f"There are no runs in {where}; train one: pixelpong train"
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
        text = describe_runs(found, sweeps, width)
    return Result({"runs": [it.to_dict() for it in found], "sweeps": sweeps}, text)


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder and no run; a name that is too long is no error."""
    return os.path.isdir(path) and not os.path.exists(path / "config.json")


def _examine(path: Path) -> dict[str, Any]:
    """What a run has reached; every byte of its checkpoints is compared with its hash."""
    from pixelpong.config.presets import changed_from_preset
    from pixelpong.errors import CheckpointError
    from pixelpong.run.arrays import fingerprint
    from pixelpong.run.directory import RunDirectory
    from pixelpong.run.record import Record

    run, damaged, hashes = RunDirectory.open(path), {}, {}
    for update in run.checkpoints.updates():
        try:
            newest = run.checkpoints.load(update)
        except CheckpointError as error:
            if run.checkpoints.path(update).exists():  # a training has not just removed it
                damaged[update] = str(error)
        else:
            hashes["params_sha256"] = newest.card["about"]["params_sha256"]
            hashes["state_sha256"] = fingerprint(newest.arrays)
    return Record.read(path).to_dict() | {
        "checkpoints": run.checkpoints.updates(),
        "damaged": damaged,
        "config": run.config.to_flat(),
        "changed": changed_from_preset(run.config),
        "versions": run.versions,
        "machine": run.machine,
        **hashes,
    }


def record(
    what: str | Path = "package",
    *,
    checkpoint: str = "best",
    episode: Count = 0,
    sampled: bool = False,
    out: Path | None = None,
    overlay: bool = False,
    scale: Positive = 3,
    speed: Seconds = 1.0,
    seconds: Seconds | None = None,
) -> Result:
    """Make a film of a game that an agent plays; extra [video].

    Args:
        what, checkpoint, sampled: as `evaluate`.
        episode: number of the game.
        out: a .mp4 or .gif file; by default an MP4 in RUN/videos, or here if there is no run.
        overlay: show next to it what the agent sees and decides.
        scale: pixels of the film per pixel of the game.
        speed: 1 is the game's own speed.
        seconds: length of the film; by default the whole game.
    """
    from pixelpong.agent.choice import open_agent, play_game
    from pixelpong.faces.look.film import describe_film, make_film
    from pixelpong.run.files import require_place

    if out:
        require_place(out)
    run, agent = open_agent(what, checkpoint)
    seed, name = (run.config.seed, run.path.name) if run else (0, str(what))
    chosen = play_game(agent, name, seed, episode, not sampled)
    folder = run.path / "videos" if run else Path()
    file_name = f"update-{agent.about.get('update', 0):06d}-episode-{episode}.mp4"
    with stoppable() as should_stop:
        facts = make_film(
            chosen,
            out or folder / file_name,
            has_overlay=overlay,
            scale=scale,
            speed=speed,
            seconds=seconds,
            should_stop=should_stop,
        )
    return Result(facts, describe_film(facts))


def plot(
    *runs: str | Path,
    kind: Literal["curve", "health", "sweep"] = "curve",
    out: Path | None = None,
) -> Result:
    """Draw what one or several runs have learned; extra [plot].

    Args:
        runs: runs or sweeps, each a directory, a name in ``runs``, or ``"latest"``.
        kind: which picture.
        out: a .png, .svg or .pdf file; by default RUN/plots/KIND.png.
    """
    from pixelpong.faces import plots
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.names import find_run
    from pixelpong.run.record import Record, is_sweep, records

    found: list[Record] = []
    for word in runs:
        sweeps = [path for path in (Path(word), RUNS_FOLDER / word) if is_sweep(path)]
        found += records(sweeps[0]) if sweeps else [Record.read(find_run(word))]
    file = plots.plot(found, kind, out)
    return Result({"file": str(file)}, str(file))


def export(what: str | Path, *, checkpoint: str = "best", out: Path | None = None) -> Result:
    """Write an agent's file, which every command takes in place of a run.

    Args:
        what, checkpoint: as `evaluate`.
        out: file to write, .safetensors; by default named after the run.
    """
    from pixelpong.agent.choice import open_agent

    _, agent = open_agent(what, checkpoint)
    path = out or Path(f"{Path(what).stem}.safetensors")
    if path.suffix != ".safetensors":
        raise ConfigError(f"The agent's file must end in .safetensors, not {path.name!r}.")
    size = agent.write(path)
    facts = {"file": str(path), "bytes": size, "update": agent.about.get("update")}
    return Result(facts, f"{path}: {size:,} bytes")


def dashboard(
    runs_dir: str | Path = "runs",
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    no_open: bool = False,
) -> None:
    """Show a page with all runs, live, in a browser; extra [play].

    Args:
        runs_dir: where the runs are.
        host: address to listen on; if others reach it, a token is made.
        port: port; if it is taken, the next free one.
        no_open: open no browser.
    """
    _serve(Path(runs_dir), "/", host, port, no_open)


def play(
    what: str | Path = "package",
    *,
    checkpoint: str = "best",
    host: str = "127.0.0.1",
    port: int = 8080,
    no_open: bool = False,
) -> None:
    """Play against an agent, in a browser; extra [play].

    Arguments are those of `evaluate` and `dashboard`.
    """
    _serve_game(what, checkpoint, "/#play", host, port, no_open)


def watch(
    what: str | Path = "package",
    *,
    checkpoint: str = "best",
    host: str = "127.0.0.1",
    port: int = 8080,
    no_open: bool = False,
) -> None:
    """Watch an agent's game, explained step by step, in a browser; extra [play].

    Arguments are those of `evaluate` and `dashboard`.
    """
    _serve_game(what, checkpoint, "/#watch", host, port, no_open)


def _serve_game(what: str | Path, checkpoint: str, page: str, *how: Any) -> None:
    from pixelpong.agent.choice import open_agent
    from pixelpong.run.directory import RUNS_FOLDER

    run, agent = open_agent(what, checkpoint)  # reports an error here, and not on the page
    if run is not None:
        which = str(agent.about["update"]) if "@" in str(what) else checkpoint
        return _serve(run.path.parent, page, *how, agent=(run.path, which))
    name = agent.about.get("name")
    _serve(RUNS_FOLDER, page, *how, agent=(None, name) if name else (Path(what), "best"))


def _serve(runs_dir: Path, page: str, host: str, port: int, no_open: bool, **about: Any) -> None:
    from pixelpong.faces.page import serve

    tell = functools.partial(print, file=sys.stderr, flush=True)
    with stoppable() as should_stop:
        serve(
            runs_dir,
            host=host,
            port=port,
            opens_browser=not no_open,
            page=page,
            tell=tell,
            should_stop=should_stop,
            **about,
        )


def version() -> Result:
    """The version of the package, those of its libraries, and the machine."""
    from pixelpong import __version__

    versions, machine, cores = collect_versions(), describe_machine(), count_cores()
    facts = {"pixelpong": __version__, "versions": versions, "cores": cores, "machine": machine}
    lines = [
        f"pixelpong {__version__}",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"{cores} cores; {', '.join(map(str, machine.values()))}",
    ]
    return Result(facts, "\n".join(lines))
