"""The configuration of a run: one definition for the flag, the file key, the help and the check.

Each concern is a frozen dataclass; each option is one `option(...)`. The command line and the
TOML format are made from these, flat: ``batch_size`` here is ``--batch-size`` there and
``batch_size = 10`` in a file.

Covered: defaults, presets, files, validation, comparison of two configurations.
Not covered: reading the command line (`pixelpong.cli`).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, expected
from pixelpong.protocols import PROTOCOLS, Protocol, find_protocol

DEFAULT_PRESET = "classic"

COMMAND_LINE = "command line"
"""The origin of options that stand on the command line: errors spell them as flags."""


def option(
    default: Any,
    help: str,
    *,
    unit: str = "",
    source: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Iterable[str] = (),
    is_free: bool = False,
) -> Any:
    """One option: its default, its help and the values it takes.

    Args:
        default: the value where nobody says otherwise.
        help: one line for ``--help``.
        unit: what the number counts.
        source: where the default comes from.
        minimum: smallest value allowed.
        maximum: largest value allowed.
        choices: the only values allowed, where they can be listed.
        is_free: the option does not change the parameters that a given number of updates leads
            to, so that a resumed run may have another value.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "source": source,
        "minimum": minimum,
        "maximum": maximum,
        "choices": tuple(choices),
        "is_free": is_free,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class EnvironmentConfig:
    """What is played."""

    environment: str = option(
        "ALE/Pong-v5", "Protocol, by the name under which figures are published.", choices=PROTOCOLS
    )
    frame_skip: int | None = option(
        None, "Frames a step; the protocol's own where not given.", minimum=1, maximum=60
    )
    sticky: float | None = option(
        None,
        "Probability that a frame keeps the held action; the protocol's own where not given.",
        minimum=0.0,
        maximum=1.0,
    )

    @property
    def protocol(self) -> Protocol:
        """The protocol in effect."""
        return find_protocol(self.environment, self.frame_skip, self.sticky)


@dataclass(frozen=True)
class NetworkConfig:
    """The policy network: 6,400 inputs, one hidden layer, one output."""

    hidden: int = option(200, "Hidden units.", source="Karpathy", minimum=1, maximum=65536)
    dtype: str = option(
        "float32", "Floating-point type of the parameters.", choices=("float32", "float64")
    )


@dataclass(frozen=True)
class LearningConfig:
    """How it learns: REINFORCE with RMSProp."""

    batch_size: int = option(
        10, "Episodes an update.", source="Karpathy", minimum=1, maximum=100_000
    )
    learning_rate: float = option(
        1e-4, "Step size of RMSProp.", source="Karpathy", minimum=0.0, maximum=10.0
    )
    decay_rate: float = option(
        0.99, "Share of the old mean square that RMSProp keeps.", source="Karpathy", minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    discount: float = option(
        0.99, "Discount of a reward one step later.", source="Karpathy", minimum=0.0, maximum=1.0
    )


@dataclass(frozen=True)
class BudgetConfig:
    """When it stops: whichever comes first. Giving one replaces the preset's."""

    updates: int | None = option(None, "Stop after this many updates.", minimum=1, is_free=True)
    episodes: int | None = option(
        None, "Stop at the first update with this many episodes.", minimum=1, is_free=True
    )
    steps: int | None = option(
        None, "Stop at the first update with this many steps.", minimum=1, is_free=True
    )
    until_return: float | None = option(
        None,
        "Stop when the mean return of the last 100 episodes reaches this.",
        minimum=-21.0,
        maximum=21.0,
        is_free=True,
    )


@dataclass(frozen=True)
class ScheduleConfig:
    """What is done now and then."""

    save_every: int = option(10, "Updates between two checkpoints.", minimum=1, is_free=True)
    evaluate_every: int = option(
        0, "Updates between two evaluations; 0 is never.", minimum=0, is_free=True
    )
    evaluate_episodes: int = option(
        10, "Greedy episodes of such an evaluation.", minimum=1, is_free=True
    )


@dataclass(frozen=True)
class EngineConfig:
    """Who does the work. Changes the speed, never the result."""

    engine: str = option(
        "processes",
        "Where episodes are played: in this process, or in one process a worker.",
        choices=("serial", "processes"),
        is_free=True,
    )
    workers: int | None = option(
        None, "Workers; one a core where not given.", minimum=1, maximum=4096, is_free=True
    )
    worker_timeout: float = option(
        60.0,
        "Deadline of one episode; a worker that exceeds it is replaced.",
        unit="seconds",
        minimum=0.1,
        is_free=True,
    )


@dataclass(frozen=True)
class DisplayConfig:
    """What is printed."""

    verbose: bool = option(
        False, "Also print a line a point, a line an episode and a line a batch.", is_free=True
    )


@dataclass(frozen=True)
class Config:
    """Everything that a run directory needs to be made again, bit for bit."""

    preset: str = option(
        DEFAULT_PRESET, "Named set of options that the others start from.", is_free=True
    )
    seed: int = option(0, "Seed of everything random in the run.", minimum=0, maximum=2**63 - 1)
    environment: EnvironmentConfig = EnvironmentConfig()
    network: NetworkConfig = NetworkConfig()
    learning: LearningConfig = LearningConfig()
    budget: BudgetConfig = BudgetConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    engine: EngineConfig = EngineConfig()
    display: DisplayConfig = DisplayConfig()

    def to_flat(self) -> dict[str, Any]:
        """All options by name, as they stand in a file."""
        flat: dict[str, Any] = {}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            flat |= dataclasses.asdict(value) if _is_section(each) else {each.name: value}
        return flat

    def updated(self, changes: Mapping[str, Any], origin: str) -> Config:
        """This configuration with `changes` applied.

        Where `changes` names any budget option, the budget that stood before is dropped:
        asking for 5,000 episodes must not be cut short by a preset's 100 updates.

        Args:
            changes: options by name, flat.
            origin: where they come from, for the error message.

        Raises:
            ConfigError: an unknown name, or a value of the wrong type or out of range.
        """
        _refuse_unknown(changes, origin)
        flat = self.to_flat()
        budget = [each.name for each in dataclasses.fields(BudgetConfig)]
        if any(changes.get(name) is not None for name in budget):
            flat |= dict.fromkeys(budget)
        for name, value in changes.items():
            flat[name] = _checked(name, value, origin)
        return _from_flat(flat)


def _is_section(each: dataclasses.Field[Any]) -> bool:
    return dataclasses.is_dataclass(each.default)


def _from_flat(flat: Mapping[str, Any]) -> Config:
    def pick(cls: type) -> Any:
        return cls(**{each.name: flat[each.name] for each in dataclasses.fields(cls)})

    values = {
        each.name: pick(type(each.default)) if _is_section(each) else flat[each.name]
        for each in dataclasses.fields(Config)
    }
    return Config(**values)


@dataclass(frozen=True)
class Option:
    """One option as the command line, the documentation and the check see it."""

    name: str
    type: Any
    default: Any
    metadata: Mapping[str, Any]
    section: str


def _collect_options() -> dict[str, Option]:
    options = {}
    for each in dataclasses.fields(Config):
        owner: type = type(each.default) if _is_section(each) else Config
        hints = typing.get_type_hints(owner)
        section = each.name if _is_section(each) else ""
        for inner in dataclasses.fields(owner) if section else (each,):
            options[inner.name] = Option(
                inner.name, hints[inner.name], inner.default, inner.metadata, section
            )
    return options


OPTIONS: dict[str, Option] = _collect_options()
"""Every option by name, in the order of the dataclasses."""


def _refuse_unknown(names: Iterable[str], origin: str) -> None:
    for name in names:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            advice = f"did you mean {near[0]!r}?" if near else "see `pixelpong train --help`"
            raise ConfigError(f"{origin}: " + expected("the name of an option", repr(name), advice))


def _checked(name: str, value: Any, origin: str) -> Any:
    """`value` in the option's own type, or a ConfigError that says what it takes."""
    each = OPTIONS[name]
    allowed = typing.get_args(each.type) or (each.type,)
    wanted = next(kind for kind in allowed if kind is not type(None))
    if value is None and type(None) in allowed:
        return None
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not wanted or not _is_in_range(value, each.metadata):
        spelled = "--" + name.replace("_", "-") if origin == COMMAND_LINE else name
        what = f"{spelled} to be {describe_values(each)}"
        raise ConfigError(f"{origin}: " + expected(what, repr(value), "change it"))
    return value


def _is_in_range(value: Any, metadata: Mapping[str, Any]) -> bool:
    if metadata["choices"] and value not in metadata["choices"]:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    low, high = metadata["minimum"], metadata["maximum"]
    return (low is None or value >= low) and (high is None or value <= high)


def describe_values(each: Option) -> str:
    """The values an option takes, in words.

    >>> describe_values(OPTIONS["sticky"])
    'a number from 0 to 1'
    """
    if each.metadata["choices"]:
        return "one of " + ", ".join(each.metadata["choices"])
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    wanted = next(t for t in typing.get_args(each.type) or (each.type,) if t is not type(None))
    low, high = each.metadata["minimum"], each.metadata["maximum"]
    bounds = f" from {low:g} to {high:g}" if high is not None else ""
    if high is None and low is not None:
        bounds = f" of at least {low:g}"
    return names[wanted] + bounds


def preset_names() -> list[str]:
    """The presets that come with the package."""
    files = resources.files("pixelpong") / "presets"
    names = (file.name for file in files.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_preset(name: str) -> Config:
    """The configuration of a preset.

    Raises:
        ConfigError: there is no preset of that name.

    >>> load_preset("ray").learning.batch_size
    4
    """
    if name not in preset_names():
        known = ", ".join(preset_names())
        raise ConfigError(expected("the name of a preset", repr(name), f"use one of {known}"))
    text = (resources.files("pixelpong") / "presets" / f"{name}.toml").read_text("utf-8")
    return Config().updated(tomllib.loads(text) | {"preset": name}, f"preset {name}")


def read_toml(path: Path) -> dict[str, Any]:
    """The options in a TOML file, flat, names and values not yet checked.

    Raises:
        ConfigError: the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        got = error.strerror or str(error)
        raise ConfigError(
            expected(f"a TOML file at {path}", got, "check the path given to --config")
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            expected(f"TOML in {path}", str(error), "write lines like `batch_size = 10`")
        ) from error


def differences(old: Config, new: Config, *, with_free: bool = False) -> dict[str, tuple[Any, Any]]:
    """The options that differ, as name → (old, new).

    Args:
        with_free: also those that do not change the result, as the budget or the engine.
    """
    before, after = old.to_flat(), new.to_flat()
    return {
        name: (before[name], after[name])
        for name, each in OPTIONS.items()
        if before[name] != after[name] and (with_free or not each.metadata["is_free"])
    }
