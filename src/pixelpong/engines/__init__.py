"""Engines carry out work items. They know no policy and no emulator.

An engine maps items to results, in the order of the items. Every engine runs the same pure
function, so they differ only in speed; one contract test covers all of them.
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
    """Plays items for an engine, and keeps what is expensive to make."""

    def play(self, item: Any, params: Any) -> Any:
        """A pure function of its arguments."""


MakeWorker = Callable[[], ItemWorker]
"""Makes a worker; for Ray, whose workers are in other processes, it must be picklable."""


@dataclass
class RunStats:
    """Data sent and time waited in a run of an engine; complete after the last result.

    Attributes:
        workers: the largest number that took part.
        wait_seconds: from the first worker with nothing left to do to the last result.
        params_bytes: of the parameters, once for each of Ray's nodes that plays.
        bytes_sent: of the items, as sent to Ray's workers.
        bytes_received: of the results, as they come back.
        items_again: items played again because one of Ray's workers was lost.
        restarts: Ray's workers replaced since the engine's start, because they died or hung.
    """

    workers: int = 1
    wait_seconds: float = 0.0
    params_bytes: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    items_again: int = 0
    restarts: int = 0


class Results(Iterator[Any]):
    """The results of one run, in the order of its items, and the run's statistics."""

    def __init__(self, results: Generator[Any, None, None], stats: RunStats) -> None:
        self._results = results
        self.stats = stats

    def __next__(self) -> Any:
        """The next result; raises the errors of `Engine.run`."""
        return next(self._results)

    def close(self) -> None:
        """Give up the run, and drop what is still being played."""
        self._results.close()


class Engine(Protocol):
    """Carries out work items."""

    def run(self, items: Sequence[Any], params: Any) -> Results:
        """The result of each item, in the order of the items; they are played as they are taken.

        Args:
            items: the work; picklable for Ray.
            params: to play with; neither engine nor worker changes them.

        Raises:
            WorkerError: an item raised, took too long, or killed its worker repeatedly.
            Interrupted: a stop was requested; what was being played is dropped.
        """

    def close(self) -> None:
        """End all workers. Nothing is left behind; closing twice is harmless."""


def never() -> bool:
    """Never request a stop."""
    return False


def describe_error(item: Any, error: Exception) -> PixelpongError:
    """Make the error to raise here for an error in a worker, with the worker's traceback.

    Args:
        item: what the worker played, or words for what it did.
        error: the worker's error; the package's own errors do not change.
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
    """Make the engine that `config` names.

    Args:
        config: engine, number of workers, deadline.
        make_worker: makes one worker.
        should_stop: called several times a second while waiting.

    Raises:
        ConfigError: Ray is not installed, or nothing answers at its address.
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
    return ThreadEngine(make_worker, workers, should_stop)


def check(config: EngineConfig) -> None:
    """Refuse an engine that cannot start, before a run is made for it.

    Raises:
        ConfigError: Ray is not installed, or nothing answers at its address.
        WorkerError: there is no cluster that this process can join.
    """
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray.connection import check_address

        check_address(config.ray_address)


def has_ray() -> bool:
    """Whether Ray is installed."""
    return importlib.util.find_spec("ray") is not None


def require_ray() -> None:
    """Check that Ray is installed.

    Raises:
        ConfigError: it is not.
    """
    if not has_ray():
        advice = "pip install 'pixelpong[ray]'"
        raise ConfigError(expected("Ray, for the engine of this name", "no ray", advice))
