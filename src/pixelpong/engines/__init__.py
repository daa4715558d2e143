"""Engines map items to results, in the order of the items. They know no policy and no emulator.

Every engine runs the same pure function, so they differ only in speed; one contract test covers all
of them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pixelpong.config import Config
from pixelpong.errors import ConfigError, Interrupted, PixelpongError, WorkerError, expected
from pixelpong.machine import count_cores

# Makes a worker, whose `play(item, params)` is a pure function of its arguments; the worker keeps
# what is expensive to make. For Ray, whose workers are in other processes, it must be picklable.
MakeWorker = Callable[[], Any]


@dataclass(frozen=True)
class EngineStats:
    """The workers of an engine now, and what was lost since its start."""

    workers: int = 1
    items_again: int = 0  # played again, because one of Ray's workers died or was late
    restarts: int = 0  # of Ray's workers


def never() -> bool:
    """Never request a stop."""
    return False


class Engine:
    """Plays items: one after the other, in this process. The other engines play several at once.

    Use it to debug, and to check the others.
    """

    stats = EngineStats()

    def __init__(self, make_worker: MakeWorker, should_stop: Callable[[], bool] = never) -> None:
        """`should_stop` is called several times a second."""
        self._make_worker, self._should_stop = make_worker, should_stop
        self._worker: Any = None

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """The result of each item, in the order of the items; they are played as they are taken.

        `params` are not changed; for Ray, items are picklable. Closing the generator gives the run
        up, and drops what is being played; so does a stop, which raises `Interrupted`. An item that
        raises, or kills its worker repeatedly, raises a `WorkerError`.
        """
        for item in items:
            if self._should_stop():
                raise Interrupted
            with naming(item):
                self._worker = self._worker or self._make_worker()
                result = self._worker.play(item, params)
            yield result

    def close(self) -> None:
        """End all workers. Nothing is left behind; closing twice is harmless."""
        self._worker = None


@contextlib.contextmanager
def naming(item: Any) -> Iterator[None]:
    """While inside, an error names the item, or what the worker did; our own errors stay as is."""
    try:
        yield
    except PixelpongError:
        raise
    except Exception as error:
        message = (
            f"expected a result for {item}, got {type(error).__name__}: {error}; "
            "run again with --engine serial --debug to see where"
        )
        raise WorkerError(message, "".join(traceback.format_exception(error))) from error


def make_engine(
    config: Config, make_worker: MakeWorker, should_stop: Callable[[], bool] = never
) -> Engine:
    """Make the engine that `config` names."""
    if config.engine == "serial":
        return Engine(make_worker, should_stop)
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray import RayEngine

        return RayEngine(make_worker, config, should_stop)
    from pixelpong.engines.threads import ThreadEngine

    return ThreadEngine(make_worker, config.workers or count_cores(), should_stop)


def check(config: Config) -> None:
    """Refuse an engine that cannot start, before a run is made for it."""
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray.connection import connected

        if config.ray_address or os.environ.get("RAY_ADDRESS"):
            with connected(config.ray_address, None):
                pass  # the cluster is joined and left


def has_ray() -> bool:
    """Whether Ray is installed."""
    return importlib.util.find_spec("ray") is not None


def require_ray() -> None:
    """Raise a `ConfigError` if Ray is not installed."""
    if not has_ray():
        advice = "pip install 'pixelpong[ray]'"
        raise ConfigError(expected("Ray, for the engine of this name", "no ray", advice))
