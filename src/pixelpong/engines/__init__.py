"""Engines: they carry out work items. They know no policy and no emulator.

An engine maps items to results, yielded in the order of the items. Every engine runs the same
pure function, so they differ in speed alone; one contract test holds for all of them.
"""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pixelpong.config import EngineConfig
from pixelpong.errors import ConfigError, PixelpongError, WorkerError, expected
from pixelpong.machine import count_cores


class ItemWorker(Protocol):
    """What an engine runs: keeps what is expensive to make, and plays item after item."""

    def play(self, item: Any, params: Any) -> Any:
        """A pure function of its arguments."""


MakeWorker = Callable[[], ItemWorker]
"""Makes a worker; for Ray, whose workers are in other processes, it must be picklable."""


@dataclass
class RunStats:
    """What a run of an engine moved, and how long it waited; complete after the last result.

    Attributes:
        workers: how many took part, at most.
        wait_seconds: from when a worker had nothing left to do to the last result.
        params_bytes: of the parameters, once for each of Ray's nodes that plays.
        bytes_sent: of the items, as they travel to Ray's workers.
        bytes_received: of the results, as they come back from there.
        items_again: items that had to be played again because a worker of Ray's was lost.
        restarts: Ray's workers that were replaced since the engine's start, because they died
            or hung.
    """

    workers: int = 1
    wait_seconds: float = 0.0
    params_bytes: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    items_again: int = 0
    restarts: int = 0


class Results(Iterator[Any]):
    """The results of one run, in the order of its items, and what is to be said about the run."""

    def __init__(self, results: Generator[Any, None, None], stats: RunStats) -> None:
        self._results = results
        self.stats = stats

    def __next__(self) -> Any:
        """The next result; see `Engine.run` for what it raises."""
        return next(self._results)

    def close(self) -> None:
        """Give up the run: what is still being played is dropped."""
        self._results.close()


class Engine(Protocol):
    """Carries out work items."""

    def run(self, items: Sequence[Any], params: Any) -> Results:
        """The result of each item, in the order of the items; they are played as they are taken.

        Args:
            items: what to play; picklable for Ray.
            params: what to play it with; neither engine nor worker changes it.

        Raises:
            WorkerError: an item raised, took too long, or killed its worker again and again.
            Interrupted: a stop was asked for; what was being played is dropped.
        """

    def close(self) -> None:
        """End all workers. Nothing is left behind; closing twice is harmless."""


def never() -> bool:
    """Nobody asks for a stop."""
    return False


def describe_error(item: Any, error: Exception) -> PixelpongError:
    """What is to be raised at home for what an item's worker has raised, with its traceback.

    Args:
        item: what was played, or in words what was done.
        error: what was raised there; the package's own errors stay as they are.
    """
    if isinstance(error, PixelpongError):
        return error
    message = (
        f"expected a result for {item}, got {type(error).__name__}: {error}; "
        "run again with --engine serial --debug to see where"
    )
    return WorkerError(message, "".join(traceback.format_exception(error)))


def make_engine(
    config: EngineConfig, make_worker: MakeWorker, should_stop: Callable[[], bool] = never
) -> Engine:
    """The engine that `config` names.

    Args:
        config: which engine, how many workers, which deadline.
        make_worker: makes one worker.
        should_stop: asked several times a second while waiting.

    Raises:
        ConfigError: Ray is not installed, or nobody answers at its address.
        WorkerError: the workers cannot be started.
    """
    if config.engine == "serial":
        from pixelpong.engines.serial import SerialEngine

        return SerialEngine(make_worker, should_stop)
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray import RayEngine

        shared = config.workers, config.worker_timeout, should_stop
        return RayEngine(make_worker, *shared, config.ray_address, config.ray_mode)
    from pixelpong.engines.threads import ThreadEngine

    # ALE holds Python's lock while it plays: more threads would only wait for it.
    workers = config.workers or (1 if config.emulator == "ale" else count_cores())
    return ThreadEngine(make_worker, workers, config.worker_timeout, should_stop)


def require_ray() -> None:
    """Refuse to go on if Ray is not installed.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec("ray") is None:
        advice = "pip install 'pixelpong[ray]'"
        raise ConfigError(expected("Ray, for the engine of this name", "no ray", advice))
