"""The commands: each gathers what it needs, calls one function of the package and reports."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pixelpong.config import OPTIONS, Config, require_used
from pixelpong.config.options import COMMAND_LINE
from pixelpong.config.presets import load_preset, resolve_config
from pixelpong.faces.cli.reporting import count, report_on
from pixelpong.interrupts import stop_on_signals
from pixelpong.machine import count_cores, describe_machine

if TYPE_CHECKING:
    from pixelpong.loop import Outcome
    from pixelpong.run.directory import RunDirectory

EXIT_INTERRUPTED = 130

_PROGRESS = (
    "update", "steps", "episodes", "mean_return_100", "running_mean", "points_won_1000",
    "estimated_return",
)  # fmt: skip


def train(options: Any) -> int:
    """``pixelpong train``"""
    from pixelpong.faces.api.training import create_run

    config = resolve_config(options.given.get("preset"), options.config, options.given)
    return _carry_out(lambda: create_run(config, options.run, options.name), options)


def resume(options: Any) -> int:
    """``pixelpong resume RUN``"""
    from pixelpong.faces.api.training import open_run
    from pixelpong.run.names import find_run

    path, changes = find_run(options.run), (options.given, COMMAND_LINE, options.allow_changes)
    return _carry_out(lambda: open_run(path, *changes), options)


def _carry_out(make_run: Callable[[], RunDirectory], options: Any) -> int:
    """Train in the run that `make_run` returns, and report how it ended."""
    began = time.monotonic() - time.process_time()  # imports came first, at full load
    stream = None if options.quiet else sys.stderr if options.json else sys.stdout
    with stop_on_signals() as should_stop:
        from pixelpong.faces.api.training import carry_out
        from pixelpong.faces.text import describe_outcome

        run, outcome = carry_out(make_run, stream, should_stop, began, options.every)
    progress = outcome.progress
    report = {
        "run": str(run.path),
        "reason": outcome.reason,
        **{name: getattr(progress, name) for name in _PROGRESS},
        "params_sha256": outcome.params_sha256,
        "wall_seconds": outcome.wall_seconds,
        "training_seconds": outcome.training_seconds,
        "verdict": outcome.verdict and outcome.verdict.to_dict(),
        "rank": _rank(run, outcome),
        "environment": run.config.environment.environment,
        "machine": f"{count_cores()} cores of {describe_machine()['processor'].split(',')[0]}",
    }
    report_on(report, options.json, describe_outcome)
    return EXIT_INTERRUPTED if outcome.reason == "interrupted" else 0


def _rank(run: RunDirectory, outcome: Outcome) -> tuple[int, int] | None:
    """The rank of a training that has won among the recorded ones, if they are comparable."""
    from pixelpong.faces.recorded import is_comparable, rank

    if outcome.verdict is None or not outcome.verdict.is_won or not is_comparable(run.config):
        return None
    return rank(outcome.verdict.steps)


def evaluate(options: Any) -> int:
    """``pixelpong evaluate RUN``"""
    from pixelpong.agent.choice import open_agent
    from pixelpong.faces.api import evaluation as games
    from pixelpong.faces.api.policy import Policy
    from pixelpong.faces.text import describe_evaluation

    run, agent = open_agent(options.run, options.checkpoint)
    if options.in_gymnasium:
        games.refuse_options(options.given, COMMAND_LINE)
    config = games.configure(agent.algorithm, agent.protocol, options.given, COMMAND_LINE)

    def tell(way: str, number: int) -> None:
        count(number, options.episodes, f"{way} episodes")

    with stop_on_signals() as should_stop:
        numbers = options.seed, options.episodes, should_stop
        if options.in_gymnasium:
            config = Config()  # the rules of ALE/Pong-v5
            results = games.evaluate_in_gymnasium(Policy(agent), *numbers, tell=tell)
        else:
            results = games.evaluate_ways(config, agent.params, *numbers, tell=tell)
    protocol = config.environment.protocol
    report = {
        "run": options.run if run is None else str(run.path),
        "update": agent.about.get("update"),
        "environment": protocol.name,
        "in_gymnasium": options.in_gymnasium,
        "frame_skip": list(protocol.frame_skips),
        "sticky": protocol.sticky,
        "seed": options.seed,
        "episodes": options.episodes,
        **{way: result.to_dict() for way, result in results.items()},
    }
    report_on(report, options.json, describe_evaluation)
    return 0


def verify(options: Any) -> int:
    """``pixelpong verify``"""
    from pixelpong.verify import NUM_FRAMES, compare_ways, compare_with_ale

    engines = _read_names("engine", options.engines)
    length = {name: getattr(options, name) for name in ("updates", "batch_size", "seed")}
    changes = {**length, "num_envs": options.batch_size, "verbose": False, **options.given}
    presets = options.presets.split(",")
    configs = [load_preset(preset).updated(changes, COMMAND_LINE) for preset in presets]
    if "opponent" in options.given:  # REINFORCE has the built-in one alone
        configs = [each for each in configs if each.learning.algorithm == "ppo"] or configs
    for config in configs:
        require_used(options.given, config, COMMAND_LINE)
    differs_at = compare_with_ale(options.seed)
    is_equal = differs_at is None
    found = "as on ALE" if is_equal else f"DIFFERENT from ALE after frame {differs_at}"
    if not options.json:
        print(f"{NUM_FRAMES} frames of the game: memory, reward and picture {found}", flush=True)
    ways: list[dict[str, Any]] = []
    lines = []
    with stop_on_signals() as should_stop:
        for config in configs:
            of_this = []
            for way in compare_ways(config, engines, should_stop):
                of_this.append(way)
                if not options.json:
                    word = "same" if way.matches(of_this[0]) else "DIFFERENT"
                    line = f"{way.params_sha256[:16]}  {word:9}  {config.preset}, {way.name}"
                    print(line, flush=True)
            ways += [{"preset": config.preset, **vars(way)} for way in of_this]
            is_same = all(way.matches(of_this[0]) for way in of_this)
            found = f"all {len(of_this)} ways gave the same bits" if is_same else "the bits differ"
            lines.append(f"{config.preset}: {found}")
            is_equal &= is_same
    report = {"is_equal": is_equal, "differs_from_ale_at": differs_at, "ways": ways}
    report_on(report, options.json, lambda _: "\n".join(lines))
    return 0 if is_equal else 1


def _read_names(option: str, text: str) -> list[str]:
    return [OPTIONS[option].check(name, f"--{option}s") for name in text.split(",")]
