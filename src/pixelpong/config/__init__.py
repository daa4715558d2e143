"""The configuration of a run: one definition for the flag, the file key, the help and the check.

Each concern is a frozen dataclass; each option is one `option(...)`. The command line and the
TOML format are made from these, flat: ``batch_size`` here is ``--batch-size`` there and
``batch_size = 10`` in a file.

Covered: the options, changing them, comparing two configurations.
Not covered: presets and files (`config.presets`), the command line (`faces.cli`).
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pixelpong.config.options import Option, check_value, option
from pixelpong.config.protocols import PROTOCOLS, Protocol, find_protocol
from pixelpong.errors import ConfigError, expected

DEFAULT_PRESET = "fast"


@dataclass(frozen=True)
class EnvironmentConfig:
    """What is played."""

    environment: str = option(
        "ALE/Pong-v5", "Protocol, by the name under which figures are published.", choices=PROTOCOLS
    )
    frame_skip: int | None = option(
        None, "Frames a step; by default the protocol's own.", minimum=1, maximum=60
    )
    sticky: float | None = option(
        None,
        "Probability that a frame keeps the held action; by default the protocol's own.",
        minimum=0.0,
        maximum=1.0,
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

    hidden: int = option(200, "Hidden units.", source="Karpathy", minimum=1, maximum=65536)
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
        1e-4, "Step size of the optimizer.", source="Karpathy", minimum=0.0, maximum=10.0
    )
    discount: float = option(
        0.99, "Discount of a reward one step later.", source="Karpathy", minimum=0.0, maximum=1.0
    )


@dataclass(frozen=True)
class ReinforceConfig:
    """Of REINFORCE alone."""

    batch_size: int = option(
        10, "Episodes an update.", source="Karpathy", minimum=1, maximum=100_000
    )
    decay_rate: float = option(
        0.99, "Share of the old mean square that RMSProp keeps.", source="Karpathy", minimum=0.0,
        maximum=1.0,
    )  # fmt: skip


@dataclass(frozen=True)
class PPOConfig:
    """Of PPO alone."""

    streams: int = option(32, "Games that go on side by side.", minimum=1, maximum=4096)
    horizon: int = option(128, "Steps of each stream an update.", minimum=1, maximum=100_000)
    epochs: int = option(3, "Passes over the steps of an update.", minimum=1, maximum=100)
    minibatches: int = option(4, "Steps of Adam a pass.", minimum=1, maximum=10_000)
    clip_ratio: float = option(
        0.2, "How far a step may change a probability.", source="Schulman et al. 2017",
        minimum=0.0, maximum=10.0,
    )  # fmt: skip
    gae_lambda: float = option(
        0.95, "Weight of later errors of the value.", source="Schulman et al. 2016",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    gae_lambda_end: float = option(
        0.95,
        "Lambda where all points are won; it falls towards this as rate and bonus fall.",
        minimum=0.0,
        maximum=1.0,
    )
    entropy_bonus: float = option(
        0.01, "What the entropy of the policy is worth.", minimum=0.0, maximum=10.0
    )
    value_weight: float = option(
        0.5, "Weight of the squared error of the value.", minimum=0.0, maximum=10.0
    )
    anneal_from: float = option(
        0.5,
        "Share of points won from which rate and entropy bonus fall, to 0 where all are.",
        minimum=0.0,
        maximum=1.0,
    )
    restart_after: int = option(
        0,
        "Steps after which, with a smaller share of points won than --anneal-from, it starts again "
        "with other parameters; 0 is never.",
        minimum=0,
        maximum=10**12,
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
        "Stop when an evaluation confirms this mean return of greedy play.",
        minimum=-21.0,
        maximum=21.0,
        is_free=True,
    )


BUDGET = tuple(each.name for each in dataclasses.fields(BudgetConfig))
"""The options of which one replaces all others."""


@dataclass(frozen=True)
class ScheduleConfig:
    """What is done now and then."""

    save_every: int = option(10, "Updates between two checkpoints.", minimum=1, is_free=True)
    milestone_every: int = option(
        10, "Updates between the first milestones; 0 is never.", minimum=0, is_free=True
    )
    replay_every: int = option(
        10, "Updates between two replays, about; 0 is never.", minimum=0, is_free=True
    )
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
        "threads",
        "Where episodes are played: one by one, in a thread a worker, or by Ray.",
        choices=("serial", "threads", "ray"),
        is_free=True,
    )
    emulator: str = option(
        "native",
        "What plays Pong: our own emulator, or ALE: the same bits, many times slower, on one core.",
        choices=("native", "ale"),
        is_free=True,
    )
    workers: int | None = option(
        None, "Workers; by default one a core.", minimum=1, maximum=4096, is_free=True
    )
    worker_timeout: float = option(
        60.0,
        "Deadline of one episode; with Ray, a worker that exceeds it is replaced.",
        unit="seconds",
        minimum=0.1,
        maximum=86_400.0,
        is_free=True,
    )
    ray_address: str | None = option(
        None,
        "Ray cluster to use, auto or HOST:PORT; by default one of its own.",
        is_free=True,
    )
    ray_mode: str = option(
        "actors",
        "How Ray keeps workers: as actors, as tasks, or all of a node as one actor.",
        choices=("actors", "tasks", "nodes"),
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
    reinforce: ReinforceConfig = ReinforceConfig()
    ppo: PPOConfig = PPOConfig()
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
        if any(changes.get(name) is not None for name in BUDGET):
            flat |= dict.fromkeys(BUDGET)
        for name, value in changes.items():
            flat[name] = check_value(OPTIONS[name], value, origin)
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
