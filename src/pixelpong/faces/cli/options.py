"""The commands: what each is called, does and takes.

Options of a training come from `pixelpong.config.OPTIONS`: flag, file key, default, help and check
stand there once. The options that a command has for itself stand here, as the same `Option`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.config import OPTIONS
from pixelpong.config.options import Option
from pixelpong.config.presets import load_preset
from pixelpong.faces.cli import bench, commands, faces

REQUIRED = ...
"""The default of what has to be given."""


class Place(Option):
    """What is given without a flag, by its place: a word, or several if its type is a tuple."""


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: carries it out, given the values of its options by name, and returns the exit code.
            Beside them is ``given``: the options of a training that were given, by name.
        help: one line.
        options: its own.
        training: names of the options of a training that it takes.
        shown: what ``--help`` calls the default of those; if empty, the preset's is shown.
    """

    run: Callable[[Any], int]
    help: str
    options: tuple[Option, ...]
    training: tuple[str, ...]
    shown: str


@dataclass(frozen=True)
class Group:
    """Commands under one name."""

    help: str
    commands: dict[str, Command | Group]


def _command(
    run: Callable[[Any], int],
    help: str,
    *options: Option,
    training: tuple[str, ...] = (),
    shown: str = "",
) -> Command:
    common = (
        _switch("json", "Print one JSON object on stdout."),
        _switch("debug", "Show the traceback of an error."),
    )
    return Command(run, help, (*options, *common), training, shown)


def _switch(name: str, help: str) -> Option:
    return Option(name, bool, False, help)


def _file(name: str, help: str, metavar: str = "FILE") -> Option:
    return Option(name, Path | None, None, help, metavar=metavar)


def _number(name: str, help: str) -> Option:
    return Option(name, int | None, None, help)


def _which(default: str) -> Option:
    help = (
        "Which agent: latest, best or an update; without a run, beginner, club, strong, champion."
    )
    return Option("checkpoint", str, default, help, metavar="WHICH")


_RUN = Place("run", Path, REQUIRED, "Run directory.", metavar="RUN")
_RUN_OR_PACKAGE = Place(
    "run", Path | None, None, "Run directory; by default the agent in the package.", metavar="RUN"
)
_SEED = Option("seed", int, 0, "Seed of what is played.", bounds=(0, None))
_PROTOCOL = ("environment", "frame_skip", "sticky")
_SERVING = (
    Option("host", str, "127.0.0.1", "Address to listen on; one that others reach needs --token."),
    Option("port", int, 8080, "Port; if it is taken, the next free one."),
    Option("token", str | None, None, "Secret without which nothing is served."),
    Option("open", str, "yes", "Whether to open a browser.", choices=("yes", "no")),
)

_BENCH: dict[str, Command | Group] = {
    "throughput": _command(
        bench.throughput,
        "Steps per second of emulator, rollouts and training.",
        Option("seconds", float, 5.0, "Length of one measurement.", bounds=(0.1, 3600)),
        Option("rounds", int, 5, "How often each is measured, in turn.", bounds=(1, None)),
        _SEED,
        _switch("peers", "Also EnvPool and Gymnasium's; extra [bench]."),
        _switch("ray", "Also both trainings on Ray; extra [ray]."),
        training=("workers",),
    ),
    "solve": _command(
        bench.solve,
        "Train until it wins, seed after seed, and write a JSON file and a plot.",
        Option("seeds", str, "0-4", "Seeds, as 0-4 or 0,3,7."),
        Option("out", Path, Path("benchmarks"), "Folder for the two files.", metavar="DIR"),
        Option("target", float, 18.0, "Mean return of greedy play that wins.", bounds=(-21, 21)),
        Option("steps", int, load_preset("fast").budget.steps, "Steps per seed.", bounds=(1, None)),
        _switch("peers", "Also stable-baselines3's PPO; extra [bench]."),
        Option("peer_minutes", float, 30.0, "Time limit of each of those.", bounds=(0.1, 600)),
        training=("workers",),
    ),
    "predict": _command(
        bench.predict,
        "Measure for a minute, then say how long it takes to win on this machine.",
        Option("seconds", float, 60.0, "Length of the measurement.", bounds=(1, 3600)),
        training=("workers",),
    ),
}

_COMMANDS: dict[str, Command | Group] = {
    "train": _command(
        commands.train,
        "Train an agent in a new run directory.",
        _file("run", "New run directory; by default the next free runs/PRESET-NNN.", "DIR"),
        _file("config", "TOML file of options; the command line overrides it."),
        training=tuple(OPTIONS),
    ),
    "resume": _command(
        commands.resume,
        "Continue a run, exactly as if it had never stopped.",
        _RUN,
        _switch("allow_changes", "Accept changed options that change the result."),
        training=tuple(name for name in OPTIONS if name != "preset"),
        shown="the run's",
    ),
    "evaluate": _command(
        commands.evaluate,
        "Play a run's agent and report its returns.",
        _RUN,
        _which("latest"),
        Option("episodes", int, 100, "Episodes of greedy and of sampled play.", bounds=(1, 10**5)),
        _SEED,
        training=(*_PROTOCOL, "engine", "emulator", "workers", "worker_timeout"),
        shown="the run's",
    ),
    "inspect": _command(
        commands.inspect, "Show what a run has reached, with hashes.", _RUN, _which("latest")
    ),
    "doctor": _command(
        commands.doctor,
        "Check this machine, the game and a run, and say what to fix.",
        Place("run", Path | None, None, "Run to check as well.", metavar="RUN"),
    ),
    "verify": _command(
        commands.verify,
        "Train briefly in many ways and compare the hashes.",
        Option("presets", str, "fast,classic", "What is trained, with commas."),
        Option("engines", str, "serial,threads", "Engines to compare, with commas."),
        Option("emulators", str | None, None, "Emulators to compare; by default native,ale."),
        Option("updates", int, 3, "Length of the training.", bounds=(1, None)),
        Option("batch_size", int, 4, "Episodes, or streams, per update.", bounds=(1, 4096)),
        _SEED,
        training=_PROTOCOL,
        shown="the preset's",
    ),
    "record": _command(
        faces.record,
        "Make a film of an episode: MP4, GIF or WebP, by the file's ending; extra [video].",
        _RUN_OR_PACKAGE,
        _number("update", "The training's replay nearest to this update; by default the newest."),
        _switch("best", "Instead, an episode that the best agent plays."),
        Option("checkpoint", str | None, None, "Instead, one by this agent.", metavar="WHICH"),
        _number("episode", "The training's episode of this number, or the agent's."),
        _file("out", "File to write."),
        _switch("overlay", "Show beside it points, probabilities, value, what the network sees."),
        Option("scale", int, 3, "Pixels of the film for one of the game.", bounds=(1, None)),
        Option("speed", float, 1.0, "1 is the game's own speed."),
        Option("seconds", float | None, None, "Stop after this many seconds of film."),
    ),
    "plot": _command(
        faces.plot,
        "Draw what one or several runs have learned; extra [plot].",
        Place("runs", tuple[Path, ...], REQUIRED, "Run directories.", metavar="RUN..."),
        _file("out", "Folder to write to; by default RUN/plots.", "DIR"),
        Option("kinds", str, "all", "Curve, points, health, weights, frames, episode; or all."),
        Option("formats", str, "png", "With commas: png, svg."),
    ),
    "dashboard": _command(
        faces.dashboard,
        "A page with all runs: live curves, health, replays, weights; extra [web].",
        Place("runs_dir", Path, Path("runs"), "Where the runs are.", metavar="RUNS_DIR"),
        *_SERVING,
    ),
    "watch": _command(
        faces.watch,
        "Watch an agent play the built-in opponent, in a browser; extra [play].",
        _RUN_OR_PACKAGE,
        *_SERVING,
        _which("best"),
    ),
    "play": _command(
        faces.play,
        "Play against an agent, in a browser; extra [play].",
        _RUN_OR_PACKAGE,
        *_SERVING,
        _which("best"),
    ),
    "export": _command(
        faces.export,
        "Write a run as one page that opens offline, or its agent as a file.",
        _RUN_OR_PACKAGE,
        _file("html", "Page to write."),
        _file("onnx", "Network to write; extra [onnx]."),
        _which("best"),
        _file("agent", "Small agent to write, like those in the package."),
        Option("kilobytes", int, 2000, "Size that this agent may have.", bounds=(1, None)),
        Option("episodes", int, 100, "Of its evaluation, each way.", bounds=(1, 10**5)),
        Option("replays", int, 5, "Replays that the page holds at most."),
    ),
    "track": _command(
        faces.track,
        "Write a run's metrics for another program; extra [track].",
        _RUN,
        Option("to", str, "tensorboard", "Which program.", choices=("tensorboard", "wandb")),
        _file("out", "Folder to write to; by default RUN/tensorboard or RUN/wandb.", "DIR"),
        _switch("live", "Continue while the run is being trained."),
    ),
    "bench": Group("Measure this machine.", _BENCH),
}

PROGRAM = Group("Teaches a program to play Atari Pong from its screen.", _COMMANDS)
"""All commands, by name."""
