"""The configuration of a run: one definition for the flag, the file key, the help and the check.

Each concern is a frozen dataclass; each option is one `option(...)`. The command line and the
TOML format are made from these, flat: ``batch_size`` here is ``--batch-size`` there and
``batch_size = 10`` in a file.

Covered: the options, changing them, comparing two configurations.
Not covered: presets and files (`config.presets`), the command line (`faces.cli`).
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from typing import Any

from pixelpong.config.options import Option, option
from pixelpong.config.protocols import PROTOCOLS, Protocol, find_protocol
from pixelpong.errors import ConfigError, expected

DEFAULT_PRESET = "fast"


@dataclass(frozen=True)
class EnvironmentConfig:
    """What is played."""

    environment: str = option(
        "ALE/Pong-v5",
        "Protocol, by the name under which figures are published.",
        choices=tuple(PROTOCOLS),
    )
    frame_skip: int | None = option(
        None, "Frames per step; by default the protocol's own.", bounds=(1, 60)
    )
    sticky: float | None = option(
        None,
        "Probability that a frame repeats the previous action; by default the protocol's own.",
        bounds=(0.0, 1.0),
    )

    @property
    def protocol(self) -> Protocol:
        """The protocol in effect."""
        return find_protocol(self.environment, self.frame_skip, self.sticky)

    @property
    def is_toy(self) -> bool:
        """Whether it is the toy of the tests, which no emulator plays."""
        return self.environment == "Catch-v0"


@dataclass(frozen=True)
class NetworkConfig:
    """The policy network: one hidden layer, on what is seen of the screen."""

    hidden: int = option(200, "Hidden units.", source="Karpathy", bounds=(1, 65536))
    dtype: str = option(
        "float32", "Floating-point type of the parameters.", choices=("float32", "float64")
    )


@dataclass(frozen=True)
class LearningConfig:
    """How it learns."""

    algorithm: str = option(
        "reinforce",
        "REINFORCE with RMSProp on whole episodes, or PPO with Adam on segments of streams.",
        choices=("reinforce", "ppo"),
    )
    learning_rate: float = option(
        1e-4, "Step size of the optimizer.", source="Karpathy", bounds=(0.0, 10.0)
    )
    discount: float = option(
        0.99, "Discount of a reward one step later.", source="Karpathy", bounds=(0.0, 1.0)
    )


@dataclass(frozen=True)
class ReinforceConfig:
    """REINFORCE only."""

    batch_size: int = option(10, "Episodes per update.", source="Karpathy", bounds=(1, 100_000))
    decay_rate: float = option(
        0.99,
        "Share of the old mean square that RMSProp keeps.",
        source="Karpathy",
        bounds=(0.0, 1.0),
    )


@dataclass(frozen=True)
class PPOConfig:
    """PPO only."""

    streams: int = option(32, "Games played side by side.", bounds=(1, 4096))
    horizon: int = option(128, "Steps of each stream per update.", bounds=(1, 100_000))
    epochs: int = option(3, "Passes over the steps of an update.", bounds=(1, 100))
    minibatches: int = option(4, "Adam steps per pass.", bounds=(1, 10_000))
    clip_ratio: float = option(
        0.2,
        "How far a step may change a probability.",
        source="Schulman et al. 2017",
        bounds=(0.0, 10.0),
    )
    gae_lambda: float = option(
        0.95,
        "Weight of later errors of the value (GAE lambda).",
        source="Schulman et al. 2016",
        bounds=(0.0, 1.0),
    )
    gae_lambda_end: float = option(
        0.95,
        "GAE lambda when all points are won; it falls towards this as the rate and the bonus fall.",
        bounds=(0.0, 1.0),
    )
    entropy_bonus: float = option(0.01, "Weight of the policy's entropy.", bounds=(0.0, 10.0))
    value_weight: float = option(0.5, "Weight of the value's squared error.", bounds=(0.0, 10.0))
    anneal_from: float = option(
        0.5,
        "Share of points won from which the rate and the entropy bonus fall towards 0.",
        bounds=(0.0, 1.0),
    )
    restart_after: int = option(
        0,
        "Steps after which, with a smaller share of points won than --anneal-from, it starts again "
        "with other parameters; 0 is never.",
        bounds=(0, 10**12),
    )


@dataclass(frozen=True)
class BudgetConfig:
    """When it stops: whichever comes first. Giving one replaces the preset's."""

    updates: int | None = option(None, "Stop after this many updates.", bounds=(1, None))
    episodes: int | None = option(
        None, "Stop at the first update with this many episodes.", bounds=(1, None)
    )
    steps: int | None = option(
        None, "Stop at the first update with this many steps.", bounds=(1, None)
    )
    until_return: float | None = option(
        None,
        "Stop when an evaluation confirms this mean return of greedy play.",
        bounds=(-21.0, 21.0),
    )


BUDGET = tuple(each.name for each in fields(BudgetConfig))
"""The options of which one replaces all others."""


@dataclass(frozen=True)
class ScheduleConfig:
    """What is done from time to time."""

    save_every: int = option(10, "Updates between two checkpoints.", bounds=(1, None))
    milestone_every: int = option(
        10, "Updates between the first milestones; 0 is never.", bounds=(0, None)
    )
    replay_every: int = option(
        10, "Updates between two replays, roughly; 0 is never.", bounds=(0, None)
    )
    evaluate_every: int = option(
        0, "Updates between two evaluations; 0 is never.", bounds=(0, None)
    )
    evaluate_episodes: int = option(10, "Greedy episodes in each evaluation.", bounds=(1, None))


@dataclass(frozen=True)
class EngineConfig:
    """Who does the work. Changes the speed, never the result."""

    engine: str = option(
        "threads",
        "How episodes are played: one by one, in one thread per worker, or by Ray.",
        choices=("serial", "threads", "ray"),
    )
    emulator: str = option(
        "native",
        "What plays Pong: our own emulator or ALE, which gives the same bits but is slower.",
        choices=("native", "ale"),
    )
    workers: int | None = option(None, "Workers; by default one per core.", bounds=(1, 4096))
    worker_timeout: float = option(
        60.0,
        "Deadline of one episode; with Ray, a worker that exceeds it is replaced.",
        unit="seconds",
        bounds=(0.1, 86_400.0),
    )
    ray_address: str | None = option(
        None, "Ray cluster to use, auto or HOST:PORT; by default a new local one."
    )
    ray_mode: str = option(
        "actors",
        "How Ray keeps workers: as actors, one a node with threads, or as tasks, one a core.",
        choices=("actors", "tasks"),
    )


@dataclass(frozen=True)
class DisplayConfig:
    """What is printed."""

    verbose: bool = option(False, "Also print one line per point, per episode and per batch.")


@dataclass(frozen=True)
class Config:
    """Everything that a run directory needs to be made again, bit for bit."""

    preset: str = option(
        DEFAULT_PRESET,
        "Set of options from which the others start: classic, fast, karpathy, numpy or ray.",
    )
    seed: int = option(0, "Seed of everything random in the run.", bounds=(0, None))
    environment: EnvironmentConfig = EnvironmentConfig()
    network: NetworkConfig = NetworkConfig()
    learning: LearningConfig = LearningConfig()
    reinforce: ReinforceConfig = ReinforceConfig()
    ppo: PPOConfig = PPOConfig()
    budget: BudgetConfig = BudgetConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    engine: EngineConfig = EngineConfig()
    display: DisplayConfig = DisplayConfig()

    def to_flat(self) -> dict[str, Any]:
        """All options by name, as they stand in a file."""
        flat: dict[str, Any] = {}
        for name, value in vars(self).items():
            flat |= vars(value) if is_dataclass(value) else {name: value}
        return flat

    def updated(self, changes: Mapping[str, Any], origin: str) -> Config:
        """This configuration with `changes` applied.

        If `changes` names any budget option, the budget that stood before is dropped: asking for
        5,000 episodes must not be cut short by a preset's 100 updates.

        Args:
            changes: options by name, flat.
            origin: where they come from, for the error message.

        Raises:
            ConfigError: an unknown name, or a value of the wrong type or out of range.
        """
        values = {name: _find(name, origin).check(value, origin) for name, value in changes.items()}
        if any(values.get(name) is not None for name in BUDGET):
            values = dict.fromkeys(BUDGET) | values
        sections: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            sections.setdefault(OPTIONS[name].section, {})[name] = value
        own = sections.pop("", {})
        parts = {name: replace(getattr(self, name), **part) for name, part in sections.items()}
        return replace(self, **own, **parts)


_FREE = ("preset", "budget", "schedule", "engine", "display")
"""What may change when a run is resumed: see `Option.is_free`."""


def _is_section(each: Field[Any]) -> bool:
    return is_dataclass(each.default)


def _collect_options() -> dict[str, Option]:
    found = []
    for each in fields(Config):
        section = each.name if _is_section(each) else ""
        owner: type = type(each.default) if section else Config
        hints = typing.get_type_hints(owner)
        found += [
            Option(
                one.name,
                hints[one.name],
                one.default,
                is_free=(section or one.name) in _FREE,
                section=section,
                **one.metadata,
            )
            for one in (fields(owner) if section else (each,))
        ]
    return {option.name: option for option in found}


OPTIONS: dict[str, Option] = _collect_options()
"""Every option by name, in the order of the dataclasses."""


def _find(name: str, origin: str) -> Option:
    if name not in OPTIONS:
        near = difflib.get_close_matches(name, OPTIONS, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "see `pixelpong train --help`"
        raise ConfigError(f"{origin}: " + expected("the name of an option", repr(name), advice))
    return OPTIONS[name]


def differences(old: Config, new: Config, *, with_free: bool = False) -> dict[str, tuple[Any, Any]]:
    """The options that differ, as name → (old, new).

    Args:
        old: a configuration.
        new: another one.
        with_free: also those that do not change the result, as the budget or the engine.
    """
    before, after = old.to_flat(), new.to_flat()
    return {
        name: (before[name], after[name])
        for name, each in OPTIONS.items()
        if before[name] != after[name] and (with_free or not each.is_free)
    }
