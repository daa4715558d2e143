"""The configuration of a run; one definition gives the flag, the file key, the help and the check.

Each training option is a field of `Config`, from which the command line and the TOML format are
generated: ``batch_size`` here is ``--batch-size`` as a flag and ``batch_size = 10`` in a file. The
types contain the bounds, as in `pixelpong.schema`. Presets and files are in `config.presets`; the
options of single commands are in `faces.api`. `config.options`, for editors, is made from this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from pixelpong.atari.machine.cartridges import require_covered, scored_names
from pixelpong.config.option import Option, option
from pixelpong.config.protocols import PONG, Name, Protocol, find_protocol, protocol_of
from pixelpong.errors import ConfigError, EmulatorError, did_you_mean, unknown
from pixelpong.schema import (
    Count,
    FrameLimit,
    FrameSkip,
    Meta,
    Number,
    Positive,
    Share,
    Weight,
)


@dataclass(frozen=True)
class Config:
    """Everything needed to repeat a run, bit for bit.

    The first option of a section names it.
    """

    preset: Literal["atari", "classic", "fast", "half", "karpathy", "numpy", "ray"] = option(
        "fast", "Named set of options to start from; atari for games other than Pong."
    )
    game: str = option(
        PONG, "Game, by its name in ale-py, such as breakout; `pixelpong.games()` lists all."
    )
    seed: Count = option(0, "Seed for all randomness in the run.", short="-s")

    environment: Name = option(
        "ALE/Pong-v5",
        "Protocol: the rules of Pong, by the name used in publications. Other games have those of "
        "ALE/GAME-v5.",
        section="environment",
        games="pong",
    )
    frame_skip: FrameSkip | None = option(None, "Frames per step; by default the protocol's.")
    sticky: Share | None = option(
        None,
        "Probability that a frame repeats the previous action; by default the protocol's.",
    )
    max_frames: FrameLimit | None = option(
        None, "Frames after which an episode is cut off; by default the protocol's."
    )

    hidden: Annotated[int, Meta(ge=1, le=65536)] = option(
        200, "Hidden units.", source="Karpathy", section="network"
    )
    dtype: Literal["float32", "float64"] = option(
        "float32", "Floating-point type of the parameters."
    )

    algorithm: Literal["reinforce", "ppo"] = option(
        "reinforce",
        "REINFORCE with RMSProp on whole episodes, or PPO with Adam on segments of games.",
        section="learning",
        games="pong",
    )
    learning_rate: Annotated[float, Meta(ge=1e-12, le=10)] = option(
        1e-4, "Step size of the optimizer.", source="Karpathy"
    )
    gamma: Share = option(0.99, "Discount factor per step.", source="Karpathy")

    batch_size: Annotated[int, Meta(ge=1, le=100_000)] = option(
        10, "Episodes per update.", source="Karpathy", section="reinforce"
    )
    decay_rate: Share = option(
        0.99, "RMSProp's decay rate of the mean squared gradient.", source="Karpathy"
    )

    num_envs: Number = option(32, "Games played in parallel.", section="ppo")
    num_steps: Annotated[int, Meta(ge=1, le=100_000)] = option(
        128, "Steps of each game per update."
    )
    update_epochs: Annotated[int, Meta(ge=1, le=100)] = option(
        3, "Passes over the steps of an update."
    )
    num_minibatches: Annotated[int, Meta(ge=1, le=10_000)] = option(4, "Adam steps per pass.")
    clip_coef: Annotated[float, Meta(ge=0.001, le=10)] = option(
        0.2, "PPO's clip range of the probability ratio.", source="Schulman et al. 2017"
    )
    gae_lambda: Share = option(
        0.95, "GAE lambda: weight of later value errors.", source="Schulman et al. 2016"
    )
    gae_lambda_end: Share = option(
        0.95, "Final GAE lambda, approached as the learning rate and the entropy bonus fall."
    )
    ent_coef: Weight = option(0.01, "Weight of the entropy bonus.")
    vf_coef: Weight = option(0.5, "Weight of the value loss.")
    anneal_from: Share = option(
        0.5,
        "Share of points won at which learning rate and entropy bonus begin to fall to 0.",
        games="pong",
    )
    restart_after: Count = option(
        0,
        "Start again with new parameters if, after this many steps, the share of points won is "
        "below --anneal-from. 0 means never.",
        games="pong",
    )
    anneal_steps: Count = option(
        0,
        "Steps over which the learning rate and the entropy bonus fall to 0; with 0, they follow "
        "the share of points lost in Pong, and do not fall in other games. In those, "
        "--total-timesteps sets it too.",
    )
    target_kl: Annotated[float, Meta(ge=0, le=1)] = option(
        0.0,
        "KL divergence of an update to which the learning rate is steered, until half of "
        "--anneal-steps. 0 means that it is not steered.",
    )
    life_cost: Weight = option(0.0, "What a lost life costs, in rewards.", games="others")
    explore_share: Share = option(
        0.0,
        "Share of the games in which some actions are preferred at random for many steps, so that "
        "they explore further. Their returns are not counted.",
        games="others",
    )
    explore_scale: Weight = option(
        3.0, "Standard deviation of these preferences, in logits.", games="others"
    )
    opponent: str = option(
        "builtin",
        "Opponent: builtin (the game's own), self, half (builtin in half of the games, self in the "
        "others), or an agent: a run or a file.",
        games="pong",
    )

    updates: Positive | None = option(
        None,
        "Stop after this many updates. A limit on updates, episodes or steps replaces the "
        "preset's limits on these; the target return stays.",
        section="budget",
    )
    episodes: Positive | None = option(None, "Stop at the update that reaches this many episodes.")
    total_timesteps: Positive | None = option(
        None, "Stop at the update that reaches this many steps."
    )
    until_return: Annotated[float, Meta(ge=-21, le=21)] | None = option(
        None,
        "Stop when an evaluation confirms this mean return of greedy play; none means no target.",
        games="pong",
    )

    save_every: Positive = option(10, "Updates between checkpoints.", section="schedule")
    save_agent_every: Count = option(
        10, "Updates between the first saved agents; later gaps are longer. 0 means never."
    )
    evaluate_every: Count = option(0, "Updates between evaluations. 0 means never.")
    evaluate_episodes: Positive = option(
        10, "Episodes in each evaluation: greedy in Pong, sampled in other games."
    )
    final_episodes: Count = option(
        0,
        "Sampled episodes that are played at the end, to report the score. 0 means none.",
        games="others",
    )

    engine: Literal["serial", "threads", "ray"] = option(
        "threads",
        "How episodes are played: one at a time, in one thread per worker, or by Ray.",
        section="engine",
    )
    workers: Number | None = option(None, "Workers; by default one per core.")
    worker_timeout: Annotated[float, Meta(ge=0.1, le=86400)] = option(
        60.0, "Seconds that a Ray worker may take for one item before it is replaced."
    )
    ray_address: str | None = option(
        None, "Ray cluster to use, auto or HOST:PORT; by default a new local one."
    )
    ray_mode: Literal["actors", "tasks"] = option(
        "actors", "Ray's workers: actors (one per node, with threads) or tasks (one per core)."
    )
    verbose: bool = option(False, "Also print a line for each point, episode and batch.")

    @property
    def protocol(self) -> Protocol:
        """The rules of the game in effect."""
        name = self.environment if self.is_pong else protocol_of(self.game).environment
        return find_protocol(name, self.frame_skip, self.sticky, self.max_frames)

    @property
    def is_pong(self) -> bool:
        """Whether the game is Pong, which is seen and scored in its own way."""
        return self.game == PONG

    def spent(self, progress: Any) -> dict[str, float]:
        """Return the used share of each counted budget that is set, by the counts in `progress`."""
        goals = {name: getattr(self, name) for name in COUNTED}
        return {
            name: getattr(progress, COUNTED[name]) / goal for name, goal in goals.items() if goal
        }

    def reached(self, progress: Any) -> str | None:
        """Return the name of the first budget that the counts in `progress` have used up, or None.

        The target return is not checked here, because that takes an evaluation.
        """
        return next((name for name, share in self.spent(progress).items() if share >= 1), None)

    def updated(self, changes: Mapping[str, Any], origin: str) -> Config:
        """Return this configuration with `changes`; for a new budget, see `with_budget`.

        Options that the algorithm does not use are accepted too; `require_used` refuses them if
        they come from a user.

        Raises:
            ConfigError: a name is unknown, or a value has the wrong type or is out of range.
        """
        for name in changes:
            if name not in OPTIONS:
                advice = did_you_mean(name, OPTIONS, "see `pixelpong train --help-all`")
                raise ConfigError(f"{origin}: {unknown('option', name, advice)}")
        values = {name: OPTIONS[name].check(value, origin) for name, value in changes.items()}
        if "game" in values:
            _require_game(values["game"], origin)
        budget = {name: values.pop(name) for name in BUDGET if name in values}
        return replace(self.with_budget(budget), **values)

    def with_budget(self, given: Mapping[str, Any]) -> Config:
        """Return this configuration with a new budget; `given` has some of the options in `BUDGET`.

        A count replaces all previous counts: a preset's 100 updates must not cut short 5,000
        requested episodes. The target return is not a count: it stays unless `given` replaces it.

        >>> config = Config(updates=100, until_return=18.0).with_budget({"episodes": 5000})
        >>> config.updates, config.episodes, config.until_return
        (None, 5000, 18.0)
        """
        has_count = any(given.get(name) is not None for name in COUNTED)
        budget: dict[str, Any] = dict.fromkeys(COUNTED) if has_count else {}
        return replace(self, **(budget | dict(given)))


def _list_options() -> Iterator[Option]:
    types, section = get_type_hints(Config, include_extras=True), ""
    for it in fields(Config):
        section = it.metadata.get("section", section)
        facts = {**it.metadata, "section": section}
        yield Option(it.name, types[it.name], it.default, **facts)


OPTIONS = {option.name: option for option in _list_options()}
# The budgets that are counts, each with the field of a run's progress that it limits.
COUNTED = {"updates": "update", "episodes": "episodes", "total_timesteps": "steps"}
BUDGET = (*COUNTED, "until_return")  # a run ends when the first of these is reached

# These options say where and how a run is played. A resumed run takes them from the command that
# resumes it, never from its own files, which may come from another machine.
LOCAL_OPTIONS = ("engine", "workers", "ray_address", "ray_mode")


class Algorithm(NamedTuple):
    """Facts about a learning algorithm."""

    title: str
    preset: str  # a preset that uses it
    num_actions: int  # number of actions of its policy


# The algorithms by name, which is also the section of their options.
ALGORITHMS = {
    "reinforce": Algorithm("REINFORCE", "classic", num_actions=2),
    "ppo": Algorithm("PPO", "fast", num_actions=3),
}


def can_be_learned(name: str) -> bool:
    """Whether an agent can learn a game: its points are known."""
    return name in scored_names()


def _require_game(name: str, origin: str) -> None:
    """Refuse a game that cannot be learned."""
    try:
        require_covered(name)
    except EmulatorError as error:
        raise ConfigError(f"{origin}: {error}") from None


def require_used(names: Iterable[str], config: Config, origin: str) -> None:
    """Refuse options that would have no effect: of another algorithm, or for other games.

    >>> require_used(["num_envs", "seed"], Config().updated({"algorithm": "ppo"}, "here"), "here")
    >>> require_used(["num_envs", "seed"], Config(), "here")
    Traceback (most recent call last):
    pixelpong.errors.ConfigError: here: num_envs is an option of PPO, which is not in use. Leave \
it out, or use a preset with PPO, such as fast.
    """
    for name in names:
        option = OPTIONS[name]
        if option.games == "pong" and not config.is_pong:
            what = f"{option.spell(origin)} is for Pong alone, and the game is {config.game}."
            raise ConfigError(f"{what} Leave it out.", options=[name])
        if option.games == "others" and config.is_pong:
            what = f"{option.spell(origin)} is for games other than Pong."
            raise ConfigError(f"{what} Leave it out, or choose a --game.", options=[name])
        if option.section in ALGORITHMS and option.section != config.algorithm:
            algorithm = ALGORITHMS[option.section]
            what = f"{origin}: {name} is an option of {algorithm.title}, which is not in use."
            advice = f"Leave it out, or use a preset with {algorithm.title}"
            raise ConfigError(f"{what} {advice}, such as {algorithm.preset}.", options=[name])


def in_use(config: Config) -> dict[str, Any]:
    """Return the options that a run uses, by name: all except those that have no effect.

    >>> "num_envs" in in_use(Config()), "batch_size" in in_use(Config())
    (False, True)
    """
    others = ALGORITHMS.keys() - {config.algorithm}
    games = "others" if config.is_pong else "pong"
    return {
        name: value
        for name, value in vars(config).items()
        if OPTIONS[name].section not in others
        and (OPTIONS[name].games != games or name == "algorithm")
    }


def differences(old: Config, new: Config, *, with_free: bool = False) -> dict[str, tuple[Any, Any]]:
    """Return the options that differ: name → (old, new).

    Options that do not change the result, such as the budget or the engine, are included only
    if `with_free` is set.
    """
    before, after = vars(old), vars(new)
    return {
        name: (before[name], after[name])
        for name, option in OPTIONS.items()
        if before[name] != after[name] and (with_free or not option.is_free)
    }
