"""The commands: each gathers what it needs, calls one function of the package and reports."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pixelpong.config import Config
from pixelpong.config.options import COMMAND_LINE
from pixelpong.config.presets import load_preset, resolve_config
from pixelpong.errors import CheckpointError, ConfigError, expected
from pixelpong.faces.api.training import carry_out, open_run, require_budget
from pixelpong.faces.cli.reporting import report_on, require_at_least

if TYPE_CHECKING:
    from pixelpong.engines import Engine
    from pixelpong.faces.cli.options import Request
    from pixelpong.run.checkpoints import Checkpoint
    from pixelpong.run.directory import RunDirectory

EXIT_INTERRUPTED = 130


def train(request: Request) -> int:
    """``pixelpong train``"""
    options = request.options
    config = resolve_config(request.given.get("preset"), options.config, request.given)
    require_budget(config, COMMAND_LINE)

    def create_run() -> RunDirectory:
        from pixelpong.run.directory import RunDirectory

        return RunDirectory.create(options.run, config)

    return _go(create_run, is_json=options.json)


def resume(request: Request) -> int:
    """``pixelpong resume RUN``"""
    options = request.options

    def reopen_run() -> RunDirectory:
        allow_changes = options.allow_changes
        return open_run(options.run, request.given, COMMAND_LINE, allow_changes=allow_changes)

    return _go(reopen_run, is_json=options.json)


def evaluate(request: Request) -> int:
    """``pixelpong evaluate RUN``"""
    from pixelpong.agent.network import fit_params
    from pixelpong.evaluation import evaluate as play
    from pixelpong.faces.text import describe_evaluation
    from pixelpong.run.directory import RunDirectory

    options = request.options
    if not 1 <= options.episodes <= 100_000:
        raise ConfigError(expected("--episodes from 1 to 100000", options.episodes, "see --help"))
    require_at_least("--seed", options.seed, 0)
    run = RunDirectory.open(options.run)
    checkpoint = _choose_checkpoint(run, options.checkpoint)
    given = {name: value for name, value in request.given.items() if name != "seed"}
    config = run.config.updated(given, COMMAND_LINE)
    report: dict[str, Any] = {
        "run": str(run.path),
        "update": checkpoint.update,
        "environment": config.environment.environment,
        "frame_skip": list(config.environment.protocol.frame_skips),
        "sticky": config.environment.protocol.sticky,
        "seed": options.seed,
        "episodes": options.episodes,
    }
    params = fit_params(checkpoint.params, config.learning.algorithm)
    with _engine_until_signal(config) as engine:
        for name, is_greedy in (("greedy", True), ("sampled", False)):
            report[name] = play(
                engine,
                params,
                seed=options.seed,
                episodes=options.episodes,
                is_greedy=is_greedy,
                tell=functools.partial(_count_on_terminal, name, options.episodes),
            ).to_dict()
    report_on(report, options.json, describe_evaluation)
    return 0


def inspect(request: Request) -> int:
    """``pixelpong inspect RUN``"""
    from pixelpong.faces.text import describe_run
    from pixelpong.learners import restoring
    from pixelpong.learners.progress import Progress
    from pixelpong.run.checkpoints import fingerprint
    from pixelpong.run.directory import RunDirectory
    from pixelpong.session import Counters

    run = RunDirectory.open(request.options.run)
    checkpoint = _choose_checkpoint(run, request.options.checkpoint)
    counters = Counters.of(checkpoint)
    with restoring():
        progress = Progress.from_dict(counters.progress)
    report = {
        "run": str(run.path),
        "update": checkpoint.update,
        "steps": progress.steps,
        "frames": progress.frames,
        "episodes": progress.episodes,
        "mean_return_100": progress.mean_return_100,
        "running_mean": progress.running_mean,
        "params_sha256": fingerprint(checkpoint.params),
        "optimizer_sha256": fingerprint(checkpoint.optimizer),
        "wall_seconds": counters.wall_seconds,
        "engine": run.config.engine.engine,
        "emulator": None if run.config.environment.is_toy else run.config.engine.emulator,
        "checkpoints": run.checkpoints.updates(),
        "versions": run.versions,
        "machine": run.machine,
        "config": run.config.to_flat(),
    }
    report_on(report, request.options.json, describe_run)
    return 0


def verify(request: Request) -> int:
    """``pixelpong verify``"""
    from pixelpong.interrupts import stop_on_signals
    from pixelpong.verify import compare_ways, default_emulators

    options, ways, verdicts = request.options, [], []
    engines = _read_names("engine", options.engines)
    emulators = options.emulators and _read_names("emulator", options.emulators)
    configs = [_shorten(preset, request) for preset in options.presets.split(",")]
    with stop_on_signals() as should_stop:
        for config in configs:
            of_this = []
            names = emulators or default_emulators(config)
            for way in compare_ways(config, engines, names, should_stop):
                of_this.append(way)
                if not options.json:
                    word = "same" if way.matches(of_this[0]) else "DIFFERENT"
                    line = f"{way.params_sha256[:16]}  {word:9}  {config.preset}, {way.name}"
                    print(line, flush=True)
            ways += [{"preset": config.preset, **vars(way)} for way in of_this]
            is_equal = all(way.matches(of_this[0]) for way in of_this)
            verdicts.append((config.preset, len(of_this), is_equal))
    is_equal = all(verdict[-1] for verdict in verdicts)
    report_on({"is_equal": is_equal, "ways": ways}, options.json, lambda _: _describe(verdicts))
    return 0 if is_equal else 1


def _read_names(option: str, text: str) -> list[str]:
    """Values of an option, of which a command takes several."""
    names = text.split(",")
    for name in names:
        Config().updated({option: name}, f"--{option}s")
    return names


def _describe(verdicts: list[tuple[str, int, bool]]) -> str:
    return "\n".join(
        f"{preset}: " + (f"all {count} ways gave the same bits" if is_equal else "the bits differ")
        for preset, count, is_equal in verdicts
    )


def _shorten(preset: str, request: Request) -> Config:
    """What `verify` trains: a preset, made as short as asked for."""
    options = request.options
    length = {
        "updates": options.updates,
        "batch_size": options.batch_size,
        "streams": options.batch_size,
        "seed": options.seed,
        "verbose": False,
    }
    return load_preset(preset).updated(length | request.given, COMMAND_LINE)


def _go(make_run: Callable[[], RunDirectory], *, is_json: bool) -> int:
    """Train in the run that `make_run` gives, and say how it ended."""
    began = time.monotonic() - time.process_time()  # imports came first, at full load
    stream = sys.stderr if is_json else sys.stdout
    from pixelpong.interrupts import stop_on_signals

    with stop_on_signals() as should_stop:
        from pixelpong.faces.text import describe_outcome

        run, outcome = carry_out(make_run, stream, should_stop, began)
    progress = outcome.progress
    report = {
        "run": str(run.path),
        "reason": outcome.reason,
        "update": progress.update,
        "steps": progress.steps,
        "episodes": progress.episodes,
        "mean_return_100": progress.mean_return_100,
        "running_mean": progress.running_mean,
        "points_won_1000": progress.points_won_1000,
        "estimated_return": progress.estimated_return,
        "params_sha256": outcome.params_sha256,
        "wall_seconds": outcome.wall_seconds,
        "training_seconds": outcome.training_seconds,
        "verdict": outcome.verdict and outcome.verdict.to_dict(),
    }
    report_on(report, is_json, describe_outcome)
    return EXIT_INTERRUPTED if outcome.reason == "interrupted" else 0


def _count_on_terminal(name: str, total: int, number: int) -> None:
    """One line that counts, for somebody who waits at a terminal; it is gone at the end."""
    if sys.stderr.isatty():
        text = "" if number == total else f"{name} play: {number} of {total} episodes"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _choose_checkpoint(run: RunDirectory, which: str) -> Checkpoint:
    if which == "latest":
        return run.checkpoints.load_latest()
    if which == "best":
        return run.checkpoints.load_best()
    known = run.checkpoints.updates()
    if which not in map(str, known):
        listed = ", ".join(str(update) for update in known) or "none"
        advice = f"use latest, best or one of: {listed}"
        raise CheckpointError(expected(f"a checkpoint of {run.path}", repr(which), advice))
    return run.checkpoints.load(int(which))


@contextlib.contextmanager
def _engine_until_signal(config: Config) -> Iterator[Engine]:
    from pixelpong.engines import make_engine
    from pixelpong.interrupts import stop_on_signals
    from pixelpong.play.worker import make_worker

    with stop_on_signals() as should_stop:
        engine = make_engine(config.engine, functools.partial(make_worker, config), should_stop)
        with contextlib.closing(engine):
            yield engine
