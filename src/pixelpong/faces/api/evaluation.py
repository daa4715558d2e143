"""Evaluation from Python: of an agent from a run, from the package, or from a file."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pixelpong.config import OPTIONS, Config
from pixelpong.config.options import Option
from pixelpong.config.protocols import Protocol
from pixelpong.errors import ConfigError, Interrupted, expected
from pixelpong.faces.api.policy import Policy
from pixelpong.interrupts import stop_on_signals
from pixelpong.items import Params
from pixelpong.schema import Positive

if TYPE_CHECKING:
    from pixelpong.evaluation import Evaluation
    from pixelpong.faces.notebook import Run

_SECTIONS = ("environment", "engine")
_EPISODES = Option("episodes", Positive, 100)


def evaluate(
    what: str | Path | Run | Policy = "package",
    episodes: int = 100,
    *,
    checkpoint: int | str = "best",
    greedy: bool = True,
    seed: int = 0,
    in_gymnasium: bool = False,
    **options: Any,
) -> Evaluation:
    """Play a fixed number of episodes with an agent and summarise its returns.

    Args:
        what: a run, its directory, its name in the folder ``runs`` or ``"latest"``; an agent's
            file; a policy; ``"package"`` for the package's agent, or the name of another one in it.
        episodes: the number of episodes.
        checkpoint: of a run's agents: ``"best"``, ``"latest"`` or an update.
        greedy: take the most probable action instead of drawing one.
        seed: of the episodes; the same seed means the same coins.
        in_gymnasium: play in Gymnasium's own ``ALE/Pong-v5``, with ALE's coins; a game takes
            seconds, and there are no options.
        options: of the environment and of the engine, such as ``sticky=0.0`` or ``workers=2``; the
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
    policy = what if isinstance(what, Policy) else Policy.load(what, checkpoint)
    way = "greedy" if greedy else "sampled"
    if in_gymnasium:
        refuse_options(options, "evaluate")
        return evaluate_in_gymnasium(policy, seed, episodes, lambda: False, [way])[way]
    config = configure(policy.algorithm, policy.protocol, options, "evaluate")
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
    """Evaluate parameters in some ways; `tell` gets the way and number of each episode."""
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


def evaluate_in_gymnasium(
    policy: Policy,
    seed: int,
    episodes: int,
    should_stop: Callable[[], bool],
    ways: Sequence[str] = ("greedy", "sampled"),
    tell: Callable[[str, int], None] = lambda way, number: None,
) -> dict[str, Evaluation]:
    """Evaluate in Gymnasium's own ``ALE/Pong-v5``, whose emulator tosses its own coins."""
    from pixelpong.env.gym import make_theirs
    from pixelpong.evaluation import Evaluation
    from pixelpong.seeding import make_rng

    evaluations = {}
    with contextlib.closing(make_theirs()) as env:
        for way in ways:
            returns, steps = [0.0] * episodes, [0] * episodes
            for number in range(episodes):
                rng = make_rng(seed, "evaluate", 0, number)
                frame, _ = env.reset(seed=int(rng.integers(2**31)))
                policy.reset()
                is_over = False
                while not is_over:
                    action = policy.act(frame, None if way == "greedy" else rng)
                    frame, reward, terminated, truncated, _ = env.step(action)
                    is_over = terminated or truncated
                    returns[number] += float(reward)
                    steps[number] += 1
                    if should_stop():
                        raise Interrupted
                tell(way, number + 1)
            evaluations[way] = Evaluation.of(returns, steps, seed)
    return evaluations


def refuse_options(options: dict[str, Any], origin: str) -> None:
    """Refuse options of a game that has its own rules."""
    if options:
        what = "no options of environment or engine for games in Gymnasium"
        raise ConfigError(f"{origin}: " + expected(what, ", ".join(options), "leave them out"))


def configure(algorithm: str, protocol: Protocol, options: dict[str, Any], origin: str) -> Config:
    """The configuration of an agent's workers: its own protocol, unless `options` say otherwise."""
    known = [name for name, each in OPTIONS.items() if each.section in _SECTIONS]
    for name in options:
        if name in OPTIONS and name not in known:
            what, advice = "an option of environment or engine", f"use one of {', '.join(known)}"
            raise ConfigError(f"{origin}: " + expected(what, name, advice))
    own: dict[str, Any] = {"algorithm": algorithm}
    if "environment" not in options:
        low, high = protocol.frame_skips
        own |= {"environment": protocol.name, "sticky": protocol.sticky}
        own["max_frames"] = protocol.max_frames
        own |= {"frame_skip": low} if low == high else {}
    return Config().updated(own | options, origin)
