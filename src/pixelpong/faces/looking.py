"""Looking at runs and agents: lists, films, pictures, files, pages. Nothing here trains."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pixelpong.errors import ConfigError
from pixelpong.faces.checks import Length, Speed, checked
from pixelpong.faces.report import Result, describe_facts, describe_runs
from pixelpong.faces.training import stoppable
from pixelpong.machine import collect_versions, count_cores, describe_machine, require
from pixelpong.schema import Count, Meta

if TYPE_CHECKING:
    from pixelpong.agent.choice import Agents
    from pixelpong.faces.notebook import Run
    from pixelpong.run.record import Record

Port = Annotated[int, Meta(ge=0, le=65535)]
Order = Literal["age", "name", "return", "size"]  # of a list of runs


@checked
def runs(*words: str | Path | Run, sort: Order = "age") -> Result:
    """List runs, or show one run and verify the hashes of its checkpoints.

    Args:
        words: a run (a directory, a name in ``runs``, or ``"latest"``) to show; or folders of runs,
            by default ``runs``.
        sort: order of the list.
    """
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.names import find_run
    from pixelpong.run.record import list_sweeps

    places = list(dict.fromkeys(map(_path_of, words))) or [RUNS_FOLDER]
    folders = [folder for folder in map(_find_folder, places) if folder]
    if len(places) == 1 and not folders:
        facts = _examine(find_run(places[0]))
        return Result(facts, describe_facts(facts), exit_code=1 if facts["damaged"] else 0)
    ranks: dict[str, Callable[[Record], Any]] = {
        "age": lambda it: -it.modified,
        "name": lambda it: it.name,
        "return": lambda it: 99.0 if it.best_known is None else -it.best_known,
        "size": lambda it: -it.bytes,
    }
    found = sorted(_find_records(places), key=lambda it: (ranks[sort](it), str(it.path)))
    sweeps = [_sum_up(path) for folder in folders for path in list_sweeps(folder)]
    facts = {"runs": [it.to_dict() for it in found], "sweeps": sweeps}
    if not found and not sweeps:
        where = ", ".join(map(str, places))
        return Result(facts, f"There are no runs in {where}; train one: pixelpong train")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return Result(facts, describe_runs(facts, width))


def _sum_up(path: Path) -> dict[str, Any]:
    """A sweep as one line in a list of runs."""
    from pixelpong.run.record import records
    from pixelpong.sweeps.sweep import summarize

    inside = records(path)
    found = summarize(inside)
    return found | {
        "sweep": str(path),
        "name": path.name,
        "state": f"won {found['won']} of {found['trainings']}",
        "steps": sum(it.steps for it in inside),
        "bytes": sum(it.bytes for it in inside),
        "modified": max((it.modified for it in inside), default=0.0),
        **dict.fromkeys(("seed", "preset", "greedy", "estimated_return")),
    }


def _path_of(word: str | Path | Run) -> str | Path:
    """The path of a run that has been opened; any other word as it is."""
    from pixelpong.run.record import Record

    return word.path if isinstance(word, Record) else word


def _find_folder(word: str | Path) -> Path | None:
    """The folder of runs that a word names, by its path or as a sweep in ``runs``."""
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.record import is_sweep

    if is_sweep(RUNS_FOLDER / word):
        return RUNS_FOLDER / word
    # `isdir` and `exists` return False for a name that is too long, where Path may raise.
    is_folder = os.path.isdir(word) and not os.path.exists(Path(word) / "config.json")
    return Path(word) if is_folder or Path(word) == RUNS_FOLDER else None


def _find_records(words: Iterable[str | Path]) -> list[Record]:
    """The runs that words name, alone or as folders."""
    from pixelpong.run.names import find_run
    from pixelpong.run.record import Record, records

    found: list[Record] = []
    for word in words:
        if folder := _find_folder(word):
            found += sorted(records(folder), key=lambda it: it.path)
        else:
            found.append(Record.read(find_run(word)))
    return found


def _examine(path: Path) -> dict[str, Any]:
    """All facts about a run; its checkpoints are read and checked against their hashes."""
    from pixelpong.config import differences
    from pixelpong.config.presets import load_preset
    from pixelpong.errors import CheckpointError
    from pixelpong.run.arrays import fingerprint
    from pixelpong.run.directory import RunDirectory
    from pixelpong.run.record import Record

    run, damaged, hashes = RunDirectory(path), {}, {}
    for update in run.checkpoints.updates():
        try:
            newest = run.checkpoints.load(update)
        except CheckpointError as error:
            if run.checkpoints.path(update).exists():  # a training has not just removed it
                damaged[update] = str(error)
        else:
            hashes["params_sha256"] = newest.card["about"]["params_sha256"]
            hashes["state_sha256"] = fingerprint(newest.arrays)
    changed = differences(load_preset(run.config.preset), run.config, with_free=True)
    return Record.read(path).to_dict() | {
        "checkpoints": run.checkpoints.updates(),
        "damaged": damaged,
        "config": vars(run.config),
        "changed": {name: value for name, (_, value) in changed.items()},
        "versions": run.versions,
        "machine": run.machine,
        **hashes,
    }


@checked
def record(  # noqa: PLR0913 - a command with its options
    agent: str | Path | Run = "package",
    *,
    checkpoint: int | str = "best",
    episode: Count = 0,
    seed: Count = 0,
    out: Path | None = None,
    overlay: bool = False,
    scale: Annotated[int, Meta(ge=1, le=10)] = 3,
    speed: Speed = 1.0,
    seconds: Length | None = None,
) -> Result:
    """Record a film of an agent's game (needs the extra [video]).

    Args:
        agent, checkpoint, seed: as `evaluate`.
        episode: number of the game, from 0; greedy evaluations of this seed have the same game.
        out: a .mp4 or .gif file; by default an MP4 in RUN/videos, or here if there is no run.
        overlay: also show what the agent sees and decides.
        scale: pixels of the film per pixel of the game; with the overlay at least 2.
        speed: playback speed; 1 is the game's own.
        seconds: length of the film; by default the whole game.
    """
    from pixelpong.agent.choice import find_agents
    from pixelpong.agent.game import play_game
    from pixelpong.faces.look.film import make_film, name_game
    from pixelpong.run.files import require_place

    if out:
        require_place(out)
    agents, which = find_agents(agent, str(checkpoint))
    found, run = agents.load(which), agents.run
    file = f"update-{found.about.get('update', 0):06d}-seed-{seed}-episode-{episode}.mp4"
    folder = run.path / "videos" if run else Path()
    facts = make_film(
        found,
        functools.partial(play_game, found, seed, episode),
        name_game(_name_of(agents, agent), found, seed, episode),
        out or folder / file,
        has_overlay=overlay,
        scale=scale,
        speed=speed,
        seconds=seconds,
    )
    lost, won = facts["points"]
    score = f"opponent {lost} : {won} agent after {facts['steps']:,} steps"
    return Result(facts, f"{facts['file']}: {facts['seconds']:.1f} s, {facts['title']}, {score}")


def _name_of(agents: Agents, word: str | Path | Run) -> str:
    """The name of a run, an agent in the package or an agent's file, without its ending."""
    if agents.run is not None:
        return agents.run.path.name
    return Path(str(word)).name.removesuffix(".safetensors")


@checked
def plot(
    *runs: str | Path | Run,
    kind: Literal["curve", "health", "sweep"] = "curve",
    out: Path | None = None,
) -> Result:
    """Plot one or several runs (needs the extra [plot]).

    Args:
        runs: runs or sweeps, each a directory, a name in ``runs``, or ``"latest"``.
        kind: kind of picture.
        out: a .png, .svg or .pdf file; by default plots/KIND.png in the first run or sweep.
    """
    from pixelpong.faces import plots

    places = [_path_of(word) for word in runs]
    if not (found := _find_records(places)):
        raise ConfigError("Name a run to plot, such as latest.")
    file = plots.plot(found, kind, out, _find_folder(places[0]) or found[0].path)
    return Result({"file": str(file)}, str(file))


@checked
def export(
    agent: str | Path | Run, *, checkpoint: int | str = "best", out: Path | None = None
) -> Result:
    """Save an agent as a file that every other command accepts.

    Args:
        agent, checkpoint: as `evaluate`.
        out: a .safetensors file; by default named after the run.
    """
    from pixelpong.agent.choice import find_agents

    agents, which = find_agents(agent, str(checkpoint))
    found = agents.load(which)
    path = out or Path(f"{_name_of(agents, agent)}.safetensors")
    if path.suffix != ".safetensors":
        raise ConfigError(f"An agent's file ends in .safetensors, but {path.name!r} does not.")
    size = found.write(path)
    facts = {"file": str(path), "bytes": size, "update": found.about.get("update")}
    return Result(facts, f"{path}: {size:,} bytes")


@checked
def dashboard(
    runs_dir: str | Path = "runs",
    *,
    host: str = "127.0.0.1",
    port: Port = 8080,
    no_open: bool = False,
) -> None:
    """Show all runs on a live page in a browser (needs the extra [play]).

    Args:
        runs_dir: folder of the runs.
        host: address to listen on; if other machines can reach it, the page's URL has a token.
        port: port to listen on; if it is taken, any free one.
        no_open: do not open a browser.
    """
    _serve(Path(runs_dir), host, port, no_open)


@checked
def play(
    agent: str | Path | Run = "package",
    *,
    checkpoint: int | str = "best",
    host: str = "127.0.0.1",
    port: Port = 8080,
    no_open: bool = False,
) -> None:
    """Play against an agent in a browser (needs the extra [play]).

    The arguments are those of `evaluate` and `dashboard`. If you name no agent, you begin against
    ``"club"``, which you can beat; a menu has the others.
    """
    _serve_game("play", agent, checkpoint, "", host, port, no_open)


@checked
def watch(
    agent: str | Path | Run = "package",
    *,
    checkpoint: int | str = "best",
    episode: Count = 0,
    seed: Count = 0,
    host: str = "127.0.0.1",
    port: Port = 8080,
    no_open: bool = False,
) -> None:
    """Watch an agent play in a browser, explained step by step (needs the extra [play]).

    The arguments are those of `record` and `dashboard`.

    Args:
        episode: number of the game, from 0; greedy evaluations of this seed have the same game.
    """
    game = f"{seed}/{episode}" if seed or episode else ""
    _serve_game("watch", agent, checkpoint, game, host, port, no_open)


def _serve_game(
    view: str, agent: str | Path | Run, checkpoint: int | str, game: str, *how: Any
) -> None:
    from pixelpong.agent.choice import find_agents
    from pixelpong.run.directory import RUNS_FOLDER

    found, which = find_agents(agent, str(checkpoint))
    found.load(which)  # so that an error is reported here, not on the page
    folder = found.run.path.parent if found.run else RUNS_FOLDER
    _serve(folder, *how, view, (found.path, which, game))


def _serve(runs_dir: Path, host: str, port: int, no_open: bool, *page: Any) -> None:
    require("The page needs", "starlette", "uvicorn", "websockets", extra="play")
    from pixelpong.faces.page.server import serve

    tell = functools.partial(print, file=sys.stderr, flush=True)
    with stoppable() as should_stop:
        serve(runs_dir, host, port, not no_open, *page, tell=tell, should_stop=should_stop)


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
