"""The commands: the name, function and options of each.

Options of a training come from `pixelpong.config.OPTIONS`, which defines flag, file key, default,
help and check once. Options of a single command are here, as the same `Option`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pixelpong.config import OPTIONS
from pixelpong.config.options import Option
from pixelpong.faces.cli import commands, faces, runs, sweeps, tournaments
from pixelpong.faces.cli.command import REQUIRED, Command, Place, command, file, switch
from pixelpong.schema import Count, Meta, Number, Positive, Seconds
from pixelpong.sweep.grid import NOT_SWEPT

_Games = Annotated[int, Meta(ge=1, le=100_000)]


def _which(default: str) -> Option:
    help = (
        "Which agent: latest, best or an update; without a run, beginner, club, strong, champion."
    )
    return Option("checkpoint", str, default, help, metavar="AGENT")


_NAMED = "a directory, a name in runs/, or latest"
_PACKAGED = "an agent's file, or package, beginner, club, strong or champion"
_RUN = Place("run", str, REQUIRED, f"The run: {_NAMED}.", metavar="RUN")
_AGENT = Place("run", str, REQUIRED, f"A run ({_NAMED}), {_PACKAGED}.", metavar="RUN")
_RUN_OR_PACKAGE = Place(
    "run", str | None, None, f"A run ({_NAMED}), {_PACKAGED}; by default package.", metavar="RUN"
)
_PLAYERS = (
    "Agents (a run, RUN@UPDATE, an agent's file, beginner, club, strong, champion), builtin, "
    "or a script: perfect (follows the ball at once), predictor (knows where it will arrive), "
    "person (sees it after 200 ms and misjudges it)."
)
_SEED = Option("seed", Count, 0, "Seed of the games.", short="-s")
_QUIET = switch("quiet", "Print only how it ended.", short="-q")
_EVERY = Option("every", Seconds, 10.0, "Seconds between two lines, if no terminal shows it live.")
_PROTOCOL = ("environment", "frame_skip", "sticky", "max_frames")
_SERVING = (
    Option("host", str, "127.0.0.1", "Address to listen on; if others reach it, a token is made."),
    Option("port", int, 8080, "Port; if it is taken, the next free one."),
    switch("no_open", "Open no browser."),
)

_Sorts = Literal["age", "name", "return", "seed", "size", "state", "steps"]
_SORT = Option("sort", _Sorts, "age", "What to sort the list by.")
_EACH = "Threads of each training; by default 1 with Ray, else one per core."
_ON = (
    Option("engine", Literal["ray", "serial"] | None, None, "By default ray if installed."),
    Option("ray_address", str | None, None, OPTIONS["ray_address"].help),
    Option("threads_each", Number | None, None, _EACH),
)
_SWEEP = command(
    sweeps.sweep,
    "Train many agents, with several seeds or options; or continue a sweep.",
    Place(
        "grid",
        Path | None,
        None,
        "TOML file of options, each may be a list; or the folder of a sweep, to continue it.",
        metavar="GRID",
    ),
    Option("seeds", str | None, None, "Seeds, as 0-4 or 0,3,7."),
    file("out", "New folder; by default the next free runs/sweep-NNN.", "DIR"),
    *_ON,
    training=tuple(name for name in OPTIONS if name not in (*NOT_SWEPT, "seed")),
    examples=(
        "sweep --seeds 0-4 --preset classic --episodes 2000 --engine serial",
        "sweep grid.toml --out sweeps/learning-rates",
        "sweep runs/sweep-001",
    ),
)

COMMANDS: dict[str, Command] = {
    "train": command(
        commands.train,
        "Train an agent in a new run directory.",
        file("run", "New run directory; by default the next free runs/PRESET-NNN.", "DIR"),
        Option("name", str | None, None, "Instead, the name of a new run in runs."),
        file("config", "TOML file of options; the command line overrides it."),
        _QUIET,
        _EVERY,
        training=tuple(OPTIONS),
        examples=(
            "train",
            "train --seed 1 --updates 20",
            "train --preset classic --batch-size 20",
            "train --config mine.toml --run runs/mine",
        ),
    ),
    "resume": command(
        commands.resume,
        "Continue a run, exactly as if it had never stopped.",
        _RUN,
        _QUIET,
        _EVERY,
        switch("allow_changes", "Accept changed options that change the result."),
        training=tuple(name for name in OPTIONS if name != "preset"),
        examples=(
            "resume latest",
            "resume fast-001 --updates 200",
            "resume fast-001 --total-timesteps 10000000 --quiet",
        ),
    ),
    "sweep": _SWEEP,
    "evaluate": command(
        commands.evaluate,
        "Play an agent's games and report its returns.",
        _AGENT,
        _which("best"),
        Option("episodes", _Games, 100, "Episodes of greedy and of sampled play."),
        _SEED,
        switch("in_gymnasium", "Play in Gymnasium's own ALE/Pong-v5, which takes seconds a game."),
        training=(*_PROTOCOL, "engine", "workers", "worker_timeout"),
        examples=(
            "evaluate latest --episodes 20",
            "evaluate champion --seed 1",
            "evaluate fast-001 --checkpoint latest --sticky 0",
        ),
    ),
    "tournament": command(
        tournaments.tournament,
        "Let players meet, each pair on both sides, and rate them.",
        Place("players", tuple[str, ...], REQUIRED, _PLAYERS, metavar="PLAYER"),
        Option("games", _Games, 10, "Games of each pair on each side."),
        Option("points", Annotated[int, Meta(ge=1, le=21)], 21, "Points that win a game."),
        switch("sampled", "Agents draw their actions instead of taking the most probable."),
        file("out", "File for the results, as --json prints them.", short="-o"),
        _SEED,
        training=("workers",),
        examples=(
            "tournament beginner club strong champion builtin",
            "tournament latest fast-001@100 champion --games 20 -o ladder.json",
        ),
    ),
    "runs": command(
        runs.show,
        "List the runs; or show one, and check the hashes of its checkpoints.",
        Place(
            "runs",
            tuple[str, ...],
            None,
            f"A run ({_NAMED}) to show; or folders of runs, by default runs.",
            metavar="RUN",
        ),
        _SORT,
        examples=("runs", "runs latest", "runs old/runs --sort return --json"),
    ),
    "verify": command(
        commands.verify,
        "Compare the game with ALE, and the hashes of a training done in many ways.",
        Option("presets", str, "fast,classic", "Presets to train, with commas."),
        Option("engines", str, "serial,threads", "Engines to compare, with commas."),
        Option("updates", Positive, 3, "Length of the training."),
        Option("batch_size", Positive, 4, "Episodes, or streams, per update."),
        _SEED,
        training=(*_PROTOCOL, "opponent"),
        examples=("verify", "verify --presets fast --updates 5", "verify --opponent half"),
    ),
    "record": command(
        faces.record,
        "Make a film of a game that an agent plays; extra [video].",
        _RUN_OR_PACKAGE,
        _which("best"),
        Option("episode", Count, 0, "Number of the game."),
        switch("sampled", "Draw the actions, as in training, not the most probable ones."),
        file("out", "A .mp4 or .gif file; by default an MP4 in RUN/videos.", short="-o"),
        switch("overlay", "Show beside it what the agent sees and decides."),
        Option("scale", Positive, 3, "Pixels of the film per pixel of the game."),
        Option("speed", Seconds, 1.0, "1 is the game's own speed."),
        Option("seconds", Seconds | None, None, "Stop after this many seconds of film."),
        examples=(
            "record",
            "record latest --overlay -o best.mp4",
            "record fast-001 --checkpoint 100 --seconds 20 -o film.gif",
        ),
    ),
    "plot": command(
        faces.plot,
        "Draw what one or several runs have learned; extra [plot].",
        Place("runs", tuple[str, ...], REQUIRED, f"Runs, each {_NAMED}.", metavar="RUN"),
        Option("kind", Literal["curve", "health"], "curve", "Which picture."),
        file("out", "A .png, .svg or .pdf file; by default RUN/plots/KIND.png.", short="-o"),
        examples=("plot latest", "plot fast-001 fast-002 --kind health -o health.svg"),
    ),
    "dashboard": command(
        faces.dashboard,
        "A page with all runs, live; extra [play].",
        Place("runs_dir", Path, Path("runs"), "Where the runs are.", metavar="RUNS_DIR"),
        *_SERVING,
        examples=("dashboard", "dashboard --port 9000 --no-open"),
    ),
    "watch": command(
        faces.watch,
        "Watch an agent's game, explained step by step, in a browser; extra [play].",
        _RUN_OR_PACKAGE,
        *_SERVING,
        _which("best"),
        examples=("watch", "watch latest", "watch beginner"),
    ),
    "play": command(
        faces.play,
        "Play against an agent, in a browser; extra [play].",
        _RUN_OR_PACKAGE,
        *_SERVING,
        _which("best"),
        examples=("play", "play beginner", "play latest --checkpoint 100"),
    ),
    "export": command(
        faces.export,
        "Write an agent's file, which every command takes in place of a run.",
        _AGENT,
        _which("best"),
        file("out", "File to write, .safetensors; by default named after the run.", short="-o"),
        examples=("export latest --out agent.safetensors",),
    ),
}

WELCOME = """\
pixelpong teaches a program to play Atari Pong from its screen, and shows you
how it learns. Four commands to begin with:

  pixelpong train        train an agent until it wins
  pixelpong watch        watch an agent play, in a browser
  pixelpong play         play against it
  pixelpong dashboard    look at all your runs on a page, live

All commands: pixelpong --help
One of them, with examples: pixelpong train --help"""
