"""Engines turn items into results, in order, without knowing about policies or emulators.

All engines run the same pure function and differ only in speed. One contract test covers them all.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pixelpong.config import Config
from pixelpong.engines.address import find_cluster
from pixelpong.errors import ConfigError, Interrupted, PixelpongError, WorkerError
from pixelpong.machine import count_cores, how_to_install, is_installed

# Makes a worker, whose `play(item, params)` is a pure function of its arguments. The worker keeps
# what is expensive to make. This must be picklable for Ray, whose workers are other processes.
MakeWorker = Callable[[], Any]

# Joins the results of consecutive items before a Ray process sends them, to send fewer results.
Combine = Callable[[Sequence[Any], Iterator[Any]], list[Any]]


@dataclass(frozen=True)
class EngineStats:
    """The number of workers an engine has now, and what it has lost since its start."""

    workers: int = 1
    items_again: int = 0  # number of items played again because a Ray worker died or was late
    restarts: int = 0  # number of Ray workers that were replaced


def never() -> bool:
    """Never request a stop."""
    return False


class Engine:
    """Plays items one after the other in this process, for debugging and to check other engines.

    The other engines play several items at once.
    """

    stats = EngineStats()

    def __init__(self, make_worker: MakeWorker, should_stop: Callable[[], bool] = never) -> None:
        """Set up the engine without workers; `should_stop` is called several times a second."""
        self._make_worker, self._should_stop = make_worker, should_stop
        self._worker: Any = None

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """Play the items and yield their results, in order; this engine plays each on request.

        `params` are not changed. For Ray, items must be picklable. Closing the generator ends the
        run and drops the current items; so does a stop, which raises `Interrupted`. An item that
        raises an error or kills its worker repeatedly causes a `WorkerError`.
        """
        for item in items:
            if self._should_stop():
                raise Interrupted
            with naming(item):
                self._worker = self._worker or self._make_worker()
                result = self._worker.play(item, params)
            yield result

    def close(self) -> None:
        """End all workers and leave nothing behind; closing twice is harmless."""
        self._worker = None


@contextlib.contextmanager
def naming(item: Any) -> Iterator[None]:
    """Context manager that converts errors into a `WorkerError` that names the item.

    The package's own errors stay as they are.
    """
    try:
        yield
    except PixelpongError:
        raise
    except Exception as error:
        message = (
            f"{item} failed with {type(error).__name__}: {error}; "
            "run again with --engine serial --debug to see where"
        )
        raise WorkerError(message, "".join(traceback.format_exception(error))) from error


def make_engine(
    config: Config,
    make_worker: MakeWorker,
    should_stop: Callable[[], bool] = never,
    combine: Combine | None = None,
    when_lost: str = "",
) -> Engine:
    """Make the engine that `config` names; Ray's sends fewer results with `combine`.

    `when_lost` is the advice if a Ray cluster is lost.
    """
    if config.engine == "serial":
        return Engine(make_worker, should_stop)
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray import RayEngine

        return RayEngine(make_worker, config, should_stop, combine, when_lost)
    from pixelpong.engines.threads import ThreadEngine

    return ThreadEngine(make_worker, config.workers or count_cores(), should_stop)


@contextlib.contextmanager
def started(config: Config) -> Iterator[None]:
    """Context manager in which the engine that `config` names can be made.

    For Ray, it connects, or starts a local Ray. If that fails, no run was made or changed for it.
    """
    if config.engine != "ray":
        yield
        return
    require_ray()
    find_cluster(config.ray_address)  # checked before Ray is loaded, which takes seconds
    from pixelpong.engines.ray.connection import connected

    with connected(config.ray_address, config.workers):
        yield


def has_ray() -> bool:
    """Whether Ray is installed."""
    return is_installed("ray")


def require_ray() -> None:
    """Raise a `ConfigError` if Ray is not installed."""
    if not has_ray():
        raise ConfigError(f"The engine ray needs Ray: {how_to_install('ray')}")
