"""The options of the commands that show what a run holds (`pixelpong.faces.cli.faces`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from pixelpong.faces.cli.options import Reporting, RunPath, Which

OptionalRun = Annotated[
    Positional[Path | None],
    arg(
        help="Run directory; by default the agent in the package.",
        metavar="RUN",
        help_behavior_hint="",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Record(Reporting):
    """Make a film of an episode: MP4, GIF or WebP, by the file's ending; extra [video]."""

    run: OptionalRun = None
    update: Annotated[
        int | None,
        arg(
            help="The training's replay nearest to this update; else the newest.",
            metavar="INT",
            help_behavior_hint="",
        ),
    ] = None
    best: Annotated[
        FlagCreatePairsOff[bool], arg(help="Instead, an episode that the best agent plays.")
    ] = False
    checkpoint: Annotated[
        str | None,
        arg(
            help="Instead, one that this agent plays: latest, best, or an update.",
            metavar="TEXT",
            help_behavior_hint="",
        ),
    ] = None
    episode: Annotated[
        int | None,
        arg(
            help="The training's episode of this number, or the agent's.",
            metavar="INT",
            help_behavior_hint="",
        ),
    ] = None
    out: Annotated[
        Path | None, arg(help="File to write.", metavar="FILE", help_behavior_hint="")
    ] = None
    overlay: Annotated[
        FlagCreatePairsOff[bool],
        arg(help="Points, step, probabilities, value and what the network sees, beside it."),
    ] = False
    scale: Annotated[int, arg(help="Pixels of the film for one of the game.")] = 3
    speed: Annotated[float, arg(help="1 is the game's own speed.")] = 1.0
    seconds: Annotated[
        float | None,
        arg(help="Stop after so many seconds of film.", metavar="FLOAT", help_behavior_hint=""),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Plot(Reporting):
    """Draw what one or several runs have learned; extra [plot]."""

    runs: Annotated[Positional[tuple[Path, ...]], arg(help="Run directories.", metavar="RUN")]
    out: Annotated[
        Path | None,
        arg(
            help="Folder to write to; by default RUN/plots.",
            metavar="DIR",
            help_behavior_hint="",
        ),
    ] = None
    kinds: Annotated[
        str, arg(help="With commas: curve, points, health, weights, frames, episode; or all.")
    ] = "all"
    formats: Annotated[str, arg(help="With commas: png, svg.")] = "png"


@dataclass(frozen=True, kw_only=True)
class Serving(Reporting):
    """How a page is served."""

    host: Annotated[
        str, arg(help="Address to listen on; another than this machine's needs --token.")
    ] = "127.0.0.1"
    port: Annotated[int, arg(help="Port; the next free one where it is taken.")] = 8080
    token: Annotated[
        str | None,
        arg(help="Secret without which nobody is served.", metavar="TEXT", help_behavior_hint=""),
    ] = None
    open: Annotated[
        str, arg(help="Open a browser; with no, only print the address.", metavar="{yes,no}")
    ] = "yes"


@dataclass(frozen=True, kw_only=True)
class Dashboard(Serving):
    """A page with all runs: live curves, health, replays, weights; extra [web]."""

    runs_dir: Annotated[Positional[Path], arg(help="Where the runs are.", metavar="RUNS_DIR")] = (
        Path("runs")
    )


@dataclass(frozen=True, kw_only=True)
class Watch(Serving):
    """Watch an agent play the built-in opponent, in a browser; extra [play]."""

    run: OptionalRun = None
    checkpoint: Which = "best"


@dataclass(frozen=True, kw_only=True)
class Play(Serving):
    """Play against an agent, in a browser; extra [play]."""

    run: OptionalRun = None
    checkpoint: Which = "best"


@dataclass(frozen=True, kw_only=True)
class Export(Reporting):
    """Write a run as one page that opens offline, or its agent as a file."""

    run: OptionalRun = None
    html: Annotated[
        Path | None, arg(help="Page to write.", metavar="FILE", help_behavior_hint="")
    ] = None
    onnx: Annotated[
        Path | None,
        arg(help="Network to write; extra [onnx].", metavar="FILE", help_behavior_hint=""),
    ] = None
    checkpoint: Which = "best"
    agent: Annotated[
        Path | None,
        arg(
            help="Small agent to write, as comes with the package.",
            metavar="FILE",
            help_behavior_hint="",
        ),
    ] = None
    kilobytes: Annotated[
        int, arg(help="Size of that agent: what play needs least is left out.")
    ] = 2000
    episodes: Annotated[
        int, arg(help="Of that agent's evaluation, each of greedy and sampled play.")
    ] = 100
    replays: Annotated[int, arg(help="Replays that the page holds at most.")] = 5


@dataclass(frozen=True, kw_only=True)
class Track(Reporting):
    """Write a run's metrics for another program; extra [track]."""

    run: RunPath
    to: Annotated[str, arg(help="For which.", metavar="{tensorboard,wandb}")] = "tensorboard"
    out: Annotated[
        Path | None,
        arg(
            help="Folder to write to; by default RUN/tensorboard.",
            metavar="DIR",
            help_behavior_hint="",
        ),
    ] = None
    live: Annotated[FlagCreatePairsOff[bool], arg(help="Go on while the run is being trained.")] = (
        False
    )
