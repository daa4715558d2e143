"""The options of each command, as dataclasses for tyro.

Training options are made from `pixelpong.config.OPTIONS`, so that flag, file key, default and
help stand in one place. One that nobody gives is None here, and the layers below decide: command
line over file over preset over default.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from pixelpong.config import OPTIONS, Config
from pixelpong.config.options import Option
from pixelpong.config.presets import load_preset, preset_names

_PROTOCOL = ("environment", "frame_skip", "sticky")
_ENGINE = ("engine", "emulator", "workers", "worker_timeout")
_PRESETS = "{" + ",".join(preset_names()) + "}"

_FAST_STEPS = load_preset("fast").budget.steps or 0

RunPath = Annotated[Positional[Path], arg(help="Run directory.", metavar="RUN")]
Which = Annotated[
    str,
    arg(
        help="Which one: latest, best, or an update's number; without a run: beginner, club, "
        "strong or champion.",
        metavar="WHICH",
    ),
]
Seed = Annotated[int, arg(help="Seed of what is played.")]
Rounds = Annotated[int, arg(help="How often each is measured, in turn.")]


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes:
        options: the command's own options, by attribute.
        given: the training options that were given, by name.
    """

    options: Any
    given: dict[str, Any]


@dataclass(frozen=True)
class Reporting:
    """How a command reports."""

    json: Annotated[FlagCreatePairsOff[bool], arg(help="Print one JSON object on stdout.")] = False
    debug: Annotated[FlagCreatePairsOff[bool], arg(help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class Train(Reporting):
    """Train an agent in a new run directory."""

    run: Annotated[
        Path | None,
        arg(
            help="New run directory.",
            metavar="DIR",
            help_behavior_hint="(default: the next free runs/PRESET-NNN)",
        ),
    ] = None
    config: Annotated[
        Path | None,
        arg(
            help="TOML file of options; the command line goes before it.",
            metavar="FILE",
            help_behavior_hint="",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Resume(Reporting):
    """Go on with a run, exactly as if it had never stopped."""

    run: RunPath
    allow_changes: Annotated[
        FlagCreatePairsOff[bool], arg(help="Accept changed options that change the result.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Evaluate(Reporting):
    """Play a run's agent and report its returns."""

    run: RunPath
    checkpoint: Which = "latest"
    episodes: Annotated[int, arg(help="Episodes, each of greedy and of sampled play.")] = 100
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class Inspect(Reporting):
    """Show what a run has reached, with hashes."""

    run: RunPath
    checkpoint: Which = "latest"


@dataclass(frozen=True)
class Doctor(Reporting):
    """Check this machine, the game and a run, and say what to fix."""

    run: Annotated[
        Positional[Path | None],
        arg(help="Run to look at as well.", metavar="RUN", help_behavior_hint="(default: none)"),
    ] = None


@dataclass(frozen=True)
class Verify(Reporting):
    """Train shortly in many ways and compare the hashes."""

    presets: Annotated[str, arg(help="What is trained, with commas.")] = "fast,classic"
    engines: Annotated[str, arg(help="Engines to compare, with commas.")] = "serial,threads"
    emulators: Annotated[
        str | None,
        arg(
            help="Emulators to compare, with commas.",
            metavar="STR",
            help_behavior_hint="(default: native,ale; for the toy one)",
        ),
    ] = None
    updates: Annotated[int, arg(help="Length of the training.")] = 3
    batch_size: Annotated[int, arg(help="Episodes, or streams, an update.")] = 4
    seed: Seed = 0


@dataclass(frozen=True)
class Bench(Reporting):
    """Measure this machine; see `pixelpong bench --help`."""


@dataclass(frozen=True)
class BenchThroughput(Reporting):
    """Steps a second of emulator, rollouts and training, in one run."""

    seconds: Annotated[float, arg(help="Length of one measurement.")] = 5.0
    rounds: Rounds = 5
    seed: Seed = 0
    peers: Annotated[
        FlagCreatePairsOff[bool], arg(help="Also EnvPool and Gymnasium's; extra [bench].")
    ] = False
    ray: Annotated[
        FlagCreatePairsOff[bool], arg(help="Also both trainings on Ray; extra [ray].")
    ] = False


@dataclass(frozen=True)
class BenchSolve(Reporting):
    """Train until it wins, seed after seed, and write a JSON file and a plot."""

    seeds: Annotated[str, arg(help="Seeds, as 0-4 or 0,3,7.")] = "0-4"
    out: Annotated[
        Path, arg(help="The files DIR/solve.json and DIR/solve.svg are written.", metavar="DIR")
    ] = Path("benchmarks")
    target: Annotated[float, arg(help="Mean return of greedy play that counts as winning.")] = 18.0
    steps: Annotated[int, arg(help="Budget of a seed, in steps.")] = _FAST_STEPS
    peers: Annotated[
        FlagCreatePairsOff[bool], arg(help="Also stable-baselines3's PPO; extra [bench].")
    ] = False
    peer_minutes: Annotated[float, arg(help="Time limit of each of those.")] = 30.0


@dataclass(frozen=True)
class BenchPredict(Reporting):
    """Measure for a minute, then say how long it takes to win on this machine."""

    seconds: Annotated[float, arg(help="Length of the measurement.")] = 60.0


def with_config(command: type, shown: Config | None) -> type:
    """`command` with all training options, grouped as the configuration is.

    Args:
        command: its own options.
        shown: the defaults that ``--help`` names; None where the run's own hold.
    """
    flat = shown.to_flat() if shown else {}
    sections: dict[str, list[Any]] = {}
    for name, each in OPTIONS.items():
        if shown is not None or name != "preset":
            sections.setdefault(each.section, []).append(_field(each, flat.get(name, "the run's")))
    fields = sections.pop("")
    for section, content in sections.items():
        owner = type(getattr(Config(), section))
        made = dataclasses.make_dataclass(
            section, content, frozen=True, namespace={"__doc__": owner.__doc__}
        )
        fields.append((section, made, dataclasses.field(default_factory=made)))
    return _extended(command, fields)


def with_protocol(command: type, default: str) -> type:
    """`command` with the options that choose another protocol; `default` in words."""
    return _extended(command, [_field(OPTIONS[name], default) for name in _PROTOCOL])


def with_engine(command: type, names: Iterable[str] = _ENGINE) -> type:
    """`command` with the options of the engine."""
    return _extended(command, [_field(OPTIONS[name], OPTIONS[name].default) for name in names])


def _extended(command: type, fields: list[Any]) -> type:
    return dataclasses.make_dataclass(
        command.__name__,
        fields,
        bases=(command,),
        frozen=True,
        kw_only=True,
        namespace={"__doc__": command.__doc__},
    )


def _field(each: Option, shown_default: Any) -> tuple[str, Any, Any]:
    metadata = each.metadata
    kind = next(t for t in typing.get_args(each.type) or (each.type,) if t is not type(None))
    choices = preset_names() if each.name == "preset" else metadata["choices"]
    names = {int: "INT", float: "FLOAT", str: "TEXT", bool: ""}
    unit = f" In {metadata['unit']}." if metadata["unit"] else ""
    source = f" Source: {metadata['source']}." if metadata["source"] else ""
    settings = arg(
        help=f"{metadata['help']}{unit}{source}",
        help_behavior_hint="" if shown_default is None else f"(default: {shown_default})",
        metavar="{" + ",".join(choices) + "}" if choices else names[kind],
    )
    if kind is bool:
        return (each.name, Annotated[bool, arg(help=metadata["help"])], False)
    # Choices are checked with the other values, in `Config.updated`, where a file's are too.
    return (each.name, Annotated[kind | None, settings], None)
