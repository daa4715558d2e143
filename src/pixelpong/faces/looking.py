"""Commands that look at runs and agents, without training: lists, films, plots, files, pages."""

from __future__ import annotations

import functools
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pixelpong.config.protocols import PONG
from pixelpong.errors import ConfigError, PixelpongError, number_of
from pixelpong.faces.arguments import (
    AGENT,
    CHECKPOINT,
    EPISODE,
    HOST,
    NO_OPEN,
    PORT,
    SEED,
    Argument,
    Help,
    Length,
    Speed,
    command,
)
from pixelpong.faces.report import Result, describe_facts, describe_runs, is_terminal
from pixelpong.faces.training import stoppable
from pixelpong.machine import collect_versions, count_cores, describe_machine, require
from pixelpong.schema import Count, Meta
from pixelpong.scores import human_normalised

if TYPE_CHECKING:
    from pixelpong.agent.choice import Agents
    from pixelpong.faces.notebook import Run
    from pixelpong.faces.page import View
    from pixelpong.run.record import Record

Port = Annotated[int, Meta(ge=0, le=65535)]
Order = Literal["age", "name", "return", "size"]  # the order of a list of runs


@command
def runs(
    *names: Annotated[
        str | Path | Run,
        Argument(
            "A run to show (a directory, a name in runs, or latest); or folders of runs to list, "
            "by default runs.",
            metavar="RUN",
            usage="[RUN | FOLDER ...]",
        ),
    ],
    sort: Annotated[Order, Help("Order of the list.")] = "age",
) -> Result:
    """List runs, or show one run and verify the hashes of its checkpoints."""
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.names import find_run
    from pixelpong.run.record import list_sweeps

    paths = list(dict.fromkeys(map(_path_of, names))) or [RUNS_FOLDER]
    folders = [folder for folder in map(_find_folder, paths) if folder]
    if len(paths) == 1 and not folders:
        facts = _examine(find_run(paths[0]))
        return Result(facts, describe_facts(facts), exit_code=1 if facts["damaged"] else 0)
    runs = sorted(_find_records(paths), key=lambda it: (_SORT_KEYS[sort](it), str(it.path)))
    sweeps = [_sum_up(path) for folder in folders for path in list_sweeps(folder)]
    facts = {"runs": [record.to_dict() for record in runs], "sweeps": sweeps}
    if not runs and not sweeps:
        where = ", ".join(map(str, paths))
        return Result(facts, f"There are no runs in {where}; train one: pixelpong train")
    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 80
    return Result(facts, describe_runs(facts, width))


def _sort_key_of_return(record: Record) -> float:
    """Sort by the share of a person's score, so that games can be compared; then by the score."""
    share = human_normalised(record.game, record.best_known)
    value = record.best_known if share is None else share
    return math.inf if value is None else -value


_SORT_KEYS: dict[str, Callable[[Record], Any]] = {
    "age": lambda record: -record.modified,
    "name": lambda record: record.name,
    "return": _sort_key_of_return,
    "size": lambda record: -record.bytes,
}


def _sum_up(path: Path) -> dict[str, Any]:
    """Summarise a sweep as a line in a list of runs."""
    from pixelpong.run.record import records
    from pixelpong.sweeps.settings import summarize
    from pixelpong.sweeps.sweep import read_sweep

    try:
        members = read_sweep(path)
    except PixelpongError:  # its plan is damaged, or all its runs were removed
        members = records(path)
    summary, games = summarize(members), sorted({record.game for record in members})
    word = "won" if PONG in games else "done"
    return summary | {
        "sweep": str(path),
        "name": path.name,
        "state": f"{word} {summary[word]} of {len(members)}",
        "game": games[0] if len(games) == 1 else number_of(len(games), "game"),
        "steps": sum(record.steps for record in members),
        "bytes": sum(record.bytes for record in members),
        "modified": max((record.modified for record in members), default=0.0),
        **dict.fromkeys(
            ("seed", "preset", "greedy", "sampled", "estimated_return", "mean_return_100")
        ),
    }


def _path_of(name: str | Path | Run) -> str | Path:
    """Return the path of a `Run`; leave a name or a path unchanged."""
    from pixelpong.run.record import Record

    return name.path if isinstance(name, Record) else name


def _find_folder(name: str | Path) -> Path | None:
    """Find the folder of runs with this path, or the sweep with this name in ``runs``."""
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.record import is_sweep

    if is_sweep(RUNS_FOLDER / name):
        return RUNS_FOLDER / name
    # `isdir` and `exists` return False for a name that is too long, where Path may raise.
    is_folder = os.path.isdir(name) and not os.path.exists(Path(name) / "config.json")
    return Path(name) if is_folder or Path(name) == RUNS_FOLDER else None


def _find_records(names: Iterable[str | Path]) -> list[Record]:
    """Find the runs with these names, and the runs in folders with these names."""
    from pixelpong.run.names import find_run
    from pixelpong.run.record import Record, records

    runs: list[Record] = []
    for name in names:
        if folder := _find_folder(name):
            runs += sorted(records(folder), key=lambda record: record.path)
        else:
            runs.append(Record.read(find_run(name)))
    return runs


def _examine(path: Path) -> dict[str, Any]:
    """Collect all facts about a run; this reads its checkpoints and verifies their hashes."""
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
            if run.checkpoints.path(update).exists():  # otherwise training has just removed it
                damaged[update] = str(error)
        else:
            hashes["params_sha256"] = newest.card["about"]["params_sha256"]
            hashes["state_sha256"] = fingerprint(newest.arrays)
    changed = differences(load_preset(run.config.preset), run.config, with_free=True)
    return Record.read(path).to_dict() | {
        "checkpoints": run.checkpoints.updates(),
        "damaged": damaged,
        "config": vars(run.config),
        "changed": {name: new for name, (_, new) in changed.items()},
        "versions": run.versions,
        "machine": run.machine,
        **hashes,
    }


@command
def record(  # noqa: PLR0913 - a command with its options
    agent: Annotated[str | Path | Run, AGENT] = "package",
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    episode: Annotated[Count, EPISODE] = 0,
    seed: Annotated[Count, SEED] = 0,
    out: Annotated[
        Path | None,
        Help(
            "A .mp4 or .gif file; by default an MP4 in RUN/videos, or here if there is no run.",
            short="-o",
        ),
    ] = None,
    overlay: Annotated[bool, Help("Also show what the agent sees and decides.")] = False,
    scale: Annotated[
        int,
        Meta(ge=1, le=10),
        Help("Pixels of the film per pixel of the game; with the overlay at least 2."),
    ] = 3,
    speed: Annotated[Speed, Help("Playback speed; 1 is the game's own.")] = 1.0,
    seconds: Annotated[Length, Help("Length of the film.")] = 20.0,
    from_step: Annotated[
        Count | None,
        Help("First step of the film; by default the film is the best part.", short="--from"),
    ] = None,
    whole: Annotated[bool, Help("Film the whole game.")] = False,
) -> Result:
    """Record a film of an agent's game, by default its best twenty seconds (needs [video])."""
    from pixelpong.agent.choice import find_agents
    from pixelpong.agent.game import play_game
    from pixelpong.faces.look.film import make_film, name_game
    from pixelpong.run.files import require_writable

    if out:
        require_writable(out)
    agents, which = find_agents(agent, str(checkpoint))
    player, run = agents.load(which), agents.run
    file_name = f"update-{player.about.get('update', 0):06d}-seed-{seed}-episode-{episode}.mp4"
    folder = run.path / "videos" if run else Path()
    facts = make_film(
        player,
        functools.partial(play_game, player, seed, episode),
        name_game(_name_of(agents, agent), player, seed, episode),
        out or folder / file_name,
        has_overlay=overlay,
        scale=scale,
        speed=speed,
        seconds=None if whole else seconds,
        start=0 if whole else from_step,
    )
    if player.protocol.game == PONG:
        lost, won = facts["points"]
        score = f"opponent {lost} : {won} agent"
    else:
        score = f"score {facts['score']:,}"
    score += f" after {facts['steps']:,} steps"
    if facts["from_step"]:
        score += f", from step {facts['from_step']:,}"
    if facts["is_cut"]:
        score += ", where the film ends before the game"
    return Result(facts, f"{facts['file']}: {facts['seconds']:.1f} s, {facts['title']}, {score}")


def _name_of(agents: Agents, name: str | Path | Run) -> str:
    """Return the name of a run, an agent in the package or an agent's file, without its ending."""
    if agents.run is not None:
        return agents.run.path.name
    return Path(str(name)).name.removesuffix(".safetensors")


@command
def plot(
    *runs: Annotated[
        str | Path | Run,
        Argument(
            "Runs or sweeps, each a directory, a name in runs, or latest.",
            metavar="RUN",
            usage="RUN...",
        ),
    ],
    kind: Annotated[Literal["curve", "health", "sweep"], Help("Kind of plot.")] = "curve",
    out: Annotated[
        Path | None,
        Help(
            "A .png, .svg or .pdf file; by default plots/KIND.png in the first run or sweep.",
            short="-o",
        ),
    ] = None,
) -> Result:
    """Plot one or several runs (needs the extra [plot])."""
    from pixelpong.faces import plots

    paths = [_path_of(run) for run in runs]
    records = _find_records(paths)
    if not records:
        raise ConfigError("Name a run to plot, such as latest.")
    file = plots.plot(records, kind, out, _find_folder(paths[0]) or records[0].path)
    return Result({"file": str(file)}, str(file))


@command
def export(
    agent: Annotated[str | Path | Run, AGENT],
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    out: Annotated[
        Path | None, Help("A .safetensors file; by default named after the run.", short="-o")
    ] = None,
) -> Result:
    """Save an agent as a file that every other command accepts."""
    from pixelpong.agent.choice import find_agents

    agents, which = find_agents(agent, str(checkpoint))
    exported = agents.load(which)
    path = out or Path(f"{_name_of(agents, agent)}.safetensors")
    if path.suffix != ".safetensors":
        raise ConfigError(f"The name of an agent's file must end in .safetensors, not {path.name}.")
    size = exported.write(path)
    facts = {"file": str(path), "bytes": size, "update": exported.about.get("update")}
    return Result(facts, f"{path}: {size:,} bytes")


@command
def dashboard(
    runs_dir: Annotated[str | Path, Argument("Folder of the runs.")] = "runs",
    *,
    host: Annotated[str, HOST] = "127.0.0.1",
    port: Annotated[Port, PORT] = 8080,
    no_open: Annotated[bool, NO_OPEN] = False,
) -> None:
    """Show all runs on a live page in a browser (needs the extra [play])."""
    _serve(Path(runs_dir), host, port, no_open)


@command
def play(
    agent: Annotated[str | Path | Run, AGENT] = "package",
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    host: Annotated[str, HOST] = "127.0.0.1",
    port: Annotated[Port, PORT] = 8080,
    no_open: Annotated[bool, NO_OPEN] = False,
) -> None:
    """Play against an agent in a browser (needs the extra [play]).

    By default you start against ``"club"``, which you can beat; a menu has the others. In games
    other than Pong, you and the agent play side by side with the same seed.
    """
    _serve_game("play", agent, checkpoint, "", host, port, no_open)


@command
def watch(
    agent: Annotated[str | Path | Run, AGENT] = "package",
    *,
    checkpoint: Annotated[int | str, CHECKPOINT] = "best",
    episode: Annotated[Count, EPISODE] = 0,
    seed: Annotated[Count, SEED] = 0,
    host: Annotated[str, HOST] = "127.0.0.1",
    port: Annotated[Port, PORT] = 8080,
    no_open: Annotated[bool, NO_OPEN] = False,
) -> None:
    """Watch an agent play in a browser, explained step by step (needs the extra [play])."""
    game = f"{seed}/{episode}" if seed or episode else ""
    _serve_game("watch", agent, checkpoint, game, host, port, no_open)


def _serve_game(
    name: str,
    agent: str | Path | Run,
    checkpoint: int | str,
    game: str,
    host: str,
    port: int,
    no_open: bool,
) -> None:
    from pixelpong.agent.choice import find_agents
    from pixelpong.faces.page import View
    from pixelpong.run.directory import RUNS_FOLDER

    agents, which = find_agents(agent, str(checkpoint))
    agents.load(which)  # reports errors here instead of on the page
    folder = agents.run.path.parent if agents.run else RUNS_FOLDER
    _serve(folder, host, port, no_open, View(name, agents.path, which, game))


def _serve(runs_dir: Path, host: str, port: int, no_open: bool, view: View | None = None) -> None:
    require("The page needs", "starlette", "uvicorn", "websockets", "segno", extra="play")
    from pixelpong.faces.page.server import serve

    tell = functools.partial(print, file=sys.stderr, flush=True)
    with stoppable() as should_stop:
        serve(runs_dir, host, port, not no_open, view, tell=tell, should_stop=should_stop)


def version() -> Result:
    """Return the versions of the package and its libraries, and the machine."""
    versions, machine, cores = collect_versions(), describe_machine(), count_cores()
    facts = {
        "pixelpong": versions["pixelpong"],
        "versions": versions,
        "cores": cores,
        "machine": machine,
    }
    lines = [
        f"pixelpong {versions['pixelpong']}",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"{cores} cores; {', '.join(map(str, machine.values()))}",
    ]
    return Result(facts, "\n".join(lines))
