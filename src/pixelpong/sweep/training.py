"""One training of a sweep, as a job that any process on any machine can carry out.

It is the ordinary loop in the ordinary run directory. So a training that was killed goes on from
its checkpoint, wherever it is started again, to the same bits.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from threadpoolctl import threadpool_limits

from pixelpong.config import Config, differences
from pixelpong.errors import RunError, expected
from pixelpong.evaluation import Evaluation, bootstrap_interval
from pixelpong.interrupts import stop_on_signals
from pixelpong.loop import Outcome, train
from pixelpong.machine import describe_machine, peak_mb
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_file
from pixelpong.schema import Count, Meta, Return, Seconds
from pixelpong.seeding import make_rng

MARK_FILE = "sweep.mark"
"""In the sweep's folder: by its random content a machine finds out whether it sees this folder."""

LOCK_SECONDS = 60.0
"""How long a training waits for the process that had its run before, and that is ending."""

MAX_POINTS = 100
"""Points of a curve that are kept."""

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Returns:
    """An evaluation without its single episodes."""

    mean_return: Return
    std: Return
    ci95: tuple[Return, Return]
    mean_steps: Seconds
    episodes: Count


@dataclass(frozen=True)
class Curve:
    """How the estimate of the return rose, thinned out to `MAX_POINTS`."""

    steps: tuple[Count, ...] = ()
    seconds: tuple[Seconds, ...] = ()
    estimated_return: tuple[Return | None, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.steps) == len(self.seconds) == len(self.estimated_return):
            raise ValueError("a curve of which a part is missing")


@dataclass(frozen=True)
class Result:
    """What came of a training.

    Attributes:
        reason: why it ended, see `pixelpong.loop.Outcome`.
        is_won: whether the target return is reached.
        update: of the last checkpoint.
        steps: decisions of the agent.
        seconds: wall time until it was won, evaluations included; if it was not, of the training.
        training_seconds: wall time without evaluations.
        core_seconds: processor time since it was last started or resumed.
        peak_memory_mb: of its process.
        final_return: mean of greedy play if it was judged, else of the last 100 episodes.
        final_ci95: 95 % interval of that mean.
        greedy: evaluation of greedy play that decided; None if it was never judged.
        sampled: the same of sampled play; None if it is not won.
        params_sha256: of the final parameters.
        processor: of the machine that ended it.
        warnings: what a run of its own would have shown.
        curve: how it learned.
    """

    reason: str
    is_won: bool
    update: Count
    steps: Count
    seconds: Seconds
    training_seconds: Seconds
    core_seconds: Seconds
    peak_memory_mb: Seconds
    final_return: Return | None
    final_ci95: tuple[Return, Return] | None
    greedy: Returns | None
    sampled: Returns | None
    params_sha256: Sha256
    processor: str
    warnings: tuple[str, ...]
    curve: Curve


@dataclass(frozen=True)
class Answer:
    """What a job returns: the result, and the run's files if the sweep's folder was not there."""

    result: Result
    files: dict[str, bytes] | None


@dataclass(frozen=True)
class Job:
    """A training that can be carried out anywhere, again and again.

    Attributes:
        folder: of the sweep.
        mark: what its `MARK_FILE` says.
        name: of the training, and of its run directory there.
        config: what is trained.
        is_alone: its process was started for it, so the start is part of its time.
    """

    folder: Path
    mark: str
    name: str
    config: Config
    is_alone: bool

    def __call__(self) -> Answer:
        """Train to the end, or until SIGINT or SIGTERM comes or the parent process is gone.

        Raises:
            PixelpongError: as `pixelpong.loop.train`, or another run is in the way.
        """
        spent = 0.0 if self.is_alone else time.process_time()
        began = time.monotonic() - (time.process_time() - spent)
        parent, notes = os.getppid(), list[str]()
        with contextlib.ExitStack() as stack:
            asked = stack.enter_context(stop_on_signals(ends_process=False))
            stack.enter_context(threadpool_limits(self.config.engine.workers))
            path = stack.enter_context(self._find_place())
            run = _open_or_create(path, self.config, notes)
            outcome = train(run, None, lambda: asked() or os.getppid() != parent, began)
            result = _summarize(run, outcome, time.process_time() - spent, notes)
            is_away = path.parent != self.folder and outcome.reason != "interrupted"
            return Answer(result, _pack(path) if is_away else None)

    @contextlib.contextmanager
    def _find_place(self) -> Iterator[Path]:
        """The run directory; on a machine that does not see the sweep's folder, a temporary one."""
        with contextlib.suppress(OSError):
            if (self.folder / MARK_FILE).read_text("utf-8", "replace") == self.mark:
                yield self.folder / self.name
                return
        with tempfile.TemporaryDirectory(prefix="pixelpong-sweep-") as away:
            yield Path(away) / self.name


def unpack(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files of a run that was trained elsewhere, all of them or none.

    Args:
        folder: the run directory; what is there is replaced.
        files: what the training has sent.

    Raises:
        RunError: they cannot be written.
    """
    temporary = folder.with_name(f".{folder.name}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        for name, content in files.items():
            target = temporary / name
            assert target.resolve().is_relative_to(temporary.resolve())
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, content)
        shutil.rmtree(folder, ignore_errors=True)
        temporary.replace(folder)
    except OSError as error:
        got = error.strerror or str(error)
        raise RunError(
            expected(f"to write {folder}", got, "make room there, then resume")
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _pack(path: Path) -> dict[str, bytes]:
    files = [file for file in path.rglob("*") if file.is_file()]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def _open_or_create(path: Path, config: Config, notes: list[str]) -> RunDirectory:
    """The run, begun or not, that nobody else trains any more."""
    if not (path / "config.json").exists():
        with contextlib.suppress(OSError):  # killed while it was made
            for file in path.glob(".config.json-*"):
                file.unlink()
            path.rmdir()
        return RunDirectory.create(path, config, notes.append)
    run = RunDirectory.open(path, notes.append)
    if changed := differences(run.config, config):
        shown = ", ".join(f"{name} {old}, not {new}" for name, (old, new) in changed.items())
        raise RunError(expected(f"this sweep's run in {path}", shown, "move it away, then resume"))
    run.warn_of_other_machine()
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(RunError), run.lock():
            break
        time.sleep(0.2)
    return run.with_config(config)


def _summarize(
    run: RunDirectory, outcome: Outcome, core_seconds: float, notes: list[str]
) -> Result:
    verdict, progress = outcome.verdict, outcome.progress
    greedy = _shorten(verdict.greedy if verdict else None)
    final_return, final_ci95 = progress.mean_return_100, None
    if greedy is not None:
        final_return, final_ci95 = greedy.mean_return, greedy.ci95
    elif returns := list(progress.recent_returns):
        final_ci95 = bootstrap_interval(returns, make_rng(run.config.seed, "bootstrap"))
    is_won = verdict is not None and verdict.is_won
    return Result(
        reason=outcome.reason,
        is_won=is_won,
        update=progress.update,
        steps=verdict.steps if verdict and is_won else progress.steps,
        seconds=verdict.seconds if verdict and is_won else outcome.wall_seconds,
        training_seconds=outcome.training_seconds,
        core_seconds=core_seconds,
        peak_memory_mb=peak_mb(),
        final_return=final_return,
        final_ci95=final_ci95,
        greedy=greedy,
        sampled=_shorten(verdict.sampled if verdict else None),
        params_sha256=outcome.params_sha256,
        processor=describe_machine()["processor"],
        warnings=tuple(notes[:20]),
        curve=_read_curve(run),
    )


def _shorten(evaluation: Evaluation | None) -> Returns | None:
    if evaluation is None:
        return None
    wanted: dict[str, Any] = vars(evaluation) | {"episodes": len(evaluation.returns)}
    del wanted["returns"]
    return Returns(**wanted)


def _read_curve(run: RunDirectory) -> Curve:
    lines = list(run.metrics.read())
    kept = lines[:: -(-len(lines) // MAX_POINTS) or 1]
    estimates = [line["estimated_return"] for line in kept]
    return Curve(
        tuple(line["steps"] for line in kept),
        tuple(round(line["timing"]["wall_seconds"], 1) for line in kept),
        tuple(None if value is None else round(value, 2) for value in estimates),
    )
