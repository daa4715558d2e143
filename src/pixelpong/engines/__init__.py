"""Engines map items to results, in the order of the items. They know no policy and no emulator.

Every engine runs the same pure function, so they differ only in speed; one contract test covers all
of them.
"""

from __future__ import annotations

import contextlib
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


# Makes a worker; for Ray, whose workers are in other processes, it must be picklable.
MakeWorker = Callable[[], ItemWorker]


@dataclass(frozen=True)
class EngineStats:
    """The workers of an engine now, and what was lost since its start."""

    workers: int = 1
    items_again: int = 0  # played again, because one of Ray's workers died or was late
    restarts: int = 0  # of Ray's workers


class Engine(Protocol):
    """Plays items."""

    @property
    def stats(self) -> EngineStats:
        """Who plays, and what was lost."""

    def run(self, items: Sequence[Any], params: Any) -> Generator[Any, None, None]:
        """The result of each item, in the order of the items; they are played as they are taken.

        `params` are not changed; for Ray, items are picklable. Closing the generator gives the run
        up, and drops what is being played; so does a stop, which raises `Interrupted`. An item that
        raises, or kills its worker repeatedly, raises a `WorkerError`.
        """

    def close(self) -> None:
        """End all workers. Nothing is left behind; closing twice is harmless."""


def never() -> bool:
    """Never request a stop."""
    return False


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
    config: EngineConfig, make_worker: MakeWorker, should_stop: Callable[[], bool] = never
) -> Engine:
    """Make the engine that `config` names; `should_stop` is called several times a second."""
    if config.engine == "serial":
        from pixelpong.engines.serial import SerialEngine

        return SerialEngine(make_worker, should_stop)
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray import RayEngine

        shared = config.workers, config.worker_timeout, should_stop
        return RayEngine(make_worker, *shared, config.ray_address, config.ray_mode)
    from pixelpong.engines.threads import ThreadEngine

    return ThreadEngine(make_worker, config.workers or count_cores(), should_stop)


def check(config: EngineConfig) -> None:
    """Refuse an engine that cannot start, before a run is made for it."""
    if config.engine == "ray":
        require_ray()
        from pixelpong.engines.ray.connection import check_address

        check_address(config.ray_address)


def has_ray() -> bool:
    """Whether Ray is installed."""
    return importlib.util.find_spec("ray") is not None


def require_ray() -> None:
    """Raise a `ConfigError` if Ray is not installed."""
    if not has_ray():
        advice = "pip install 'pixelpong[ray]'"
        raise ConfigError(expected("Ray, for the engine of this name", "no ray", advice))
