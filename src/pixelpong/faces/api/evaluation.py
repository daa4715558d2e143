"""How well an agent plays, from Python: a run's, the package's, one from a file."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import OPTIONS, Config
from pixelpong.config.options import Option
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.api.policy import Policy
from pixelpong.interrupts import stop_on_signals
from pixelpong.items import Params

if TYPE_CHECKING:
    from pixelpong.evaluation import Evaluation
    from pixelpong.faces.notebook import Run

_SECTIONS = ("environment", "engine")
_EPISODES = Option("episodes", int, 100, bounds=(1, None))


def evaluate(
    what: str | Path | Run | Policy = "package",
    episodes: int = 100,
    *,
    which: int | str = "best",
    greedy: bool = True,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """Play a fixed number of episodes with an agent and summarise its returns.

    Args:
        what: a run or its directory, a file of an agent, a policy, or ``"package"`` for the agent
            that comes with it.
        episodes: how many.
        which: of a run's agents: ``"best"``, ``"latest"`` or an update.
        greedy: take the most probable action instead of drawing one.
        seed: of the episodes; the same one means the same coins.
        options: of the environment and of the engine, as ``sticky=0.0`` or ``workers=2``; the
            agent's own protocol holds if none is given.

    Raises:
        ConfigError: a number out of range, or an option of another kind.
        RunError: there is no such run.
        CheckpointError: there is no such agent, or it is damaged.
        WorkerError: a worker raised, or failed too often.
        KeyboardInterrupt: somebody pressed Ctrl-C.

    >>> evaluation = evaluate("package", episodes=1, engine="serial", sticky=0.0)
    >>> evaluation.returns
    (21.0,)
    """
    episodes = _EPISODES.check(episodes, "evaluate")
    seed = OPTIONS["seed"].check(seed, "evaluate")
    policy = what if isinstance(what, Policy) else Policy.load(what, which)
    config, way = _configure(policy, options), "greedy" if greedy else "sampled"
    with stop_on_signals(ends_process=False) as should_stop:
        try:
            return evaluate_ways(config, policy.params, seed, episodes, should_stop, [way])[way]
        except Interrupted:
            raise KeyboardInterrupt from None


def evaluate_ways(
    config: Config,
    params: Params,
    seed: int,
    episodes: int,
    should_stop: Callable[[], bool],
    ways: Sequence[str] = ("greedy", "sampled"),
    tell: Callable[[str, int], None] = lambda way, number: None,
) -> dict[str, Evaluation]:
    """Evaluate parameters, in greedy play, sampled play or both.

    Args:
        config: the algorithm, the protocol and the engine.
        params: what plays.
        seed: of the episodes.
        episodes: how many, each way.
        should_stop: asked several times a second.
        ways: of play.
        tell: is told after each episode how many of its way are done.

    Raises:
        WorkerError, Interrupted: as `pixelpong.engines.Engine.run`.
    """
    from pixelpong.engines import make_engine
    from pixelpong.evaluation import evaluate as play
    from pixelpong.play.worker import make_worker

    make = functools.partial(make_worker, config)
    with contextlib.closing(make_engine(config.engine, make, should_stop)) as engine:
        evaluate_way = functools.partial(play, engine, params, seed=seed, episodes=episodes)
        return {
            way: evaluate_way(is_greedy=way == "greedy", tell=functools.partial(tell, way))
            for way in ways
        }


def _configure(policy: Policy, options: dict[str, Any]) -> Config:
    """What the workers have to know: the algorithm, the protocol, the engine."""
    known = [name for name, each in OPTIONS.items() if each.section in _SECTIONS]
    for name in options:
        if name in OPTIONS and name not in known:
            what = "an option of environment or engine"
            raise ConfigError("evaluate: " + expected(what, name, f"use one of {', '.join(known)}"))
    own: dict[str, Any] = {"algorithm": policy.algorithm}
    if "environment" not in options:
        low, high = policy.protocol.frame_skips
        own |= {"environment": policy.protocol.name, "sticky": policy.protocol.sticky}
        own |= {"frame_skip": low} if low == high else {}
    return Config().updated(own | options, "evaluate")
