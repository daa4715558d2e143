"""How well an agent plays, from Python: a run's, the package's, one from a file."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import OPTIONS, Config
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.api.policy import Policy
from pixelpong.interrupts import stop_on_signals

if TYPE_CHECKING:
    from pixelpong.evaluation import Evaluation
    from pixelpong.faces.notebook import Run

_SECTIONS = ("environment", "engine")


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
            agent's own protocol holds where not given.

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
    for name, value, low in (("episodes", episodes, 1), ("seed", seed, 0)):
        if not low <= value <= 2**63 - 1:
            raise ConfigError(expected(f"{name} of at least {low}", value, "change it"))
    policy = what if isinstance(what, Policy) else Policy.load(what, which)
    config = _configure(policy, options)
    from pixelpong.engines import make_engine
    from pixelpong.evaluation import evaluate as play
    from pixelpong.play.worker import make_worker

    make = functools.partial(make_worker, config)
    with stop_on_signals(ends_process=False) as should_stop:
        try:
            with contextlib.closing(make_engine(config.engine, make, should_stop)) as engine:
                return play(engine, policy.params, seed=seed, episodes=episodes, is_greedy=greedy)
        except Interrupted:
            raise KeyboardInterrupt from None


def _configure(policy: Policy, options: dict[str, Any]) -> Config:
    """What the workers have to know: the algorithm, the protocol, the engine."""
    for name in options:
        if name in OPTIONS and OPTIONS[name].section not in _SECTIONS:
            known = [name for name, each in OPTIONS.items() if each.section in _SECTIONS]
            what = "an option of environment or engine"
            raise ConfigError("evaluate: " + expected(what, name, f"use one of {', '.join(known)}"))
    config = Config().updated({"algorithm": policy.algorithm}, "evaluate")
    if "environment" not in options:
        low, high = policy.protocol.frame_skips
        own = {"environment": policy.protocol.name, "sticky": policy.protocol.sticky}
        config = config.updated(own | ({"frame_skip": low} if low == high else {}), "evaluate")
    return config.updated(options, "evaluate")
