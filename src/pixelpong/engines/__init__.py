"""Engines: where work items are carried out. They know no policy and no emulator.

An engine maps items to results, yielded in the order of the items. Every engine runs the same
pure function, so they differ in speed alone; one contract test holds for all of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pixelpong.config import EngineConfig
from pixelpong.errors import ConfigError, expected
from pixelpong.machine import count_cores


class ItemWorker(Protocol):
    """What an engine runs: keeps what is expensive to make, and plays item after item."""

    def play(self, item: Any, params: Any) -> Any:
        """A pure function of its arguments."""


MakeWorker = Callable[[], ItemWorker]
"""Makes a worker; for Ray, whose workers are other processes, it must be picklable."""


@dataclass
class RunStats:
    """What a run of an engine moved, and how it waited.

    Attributes:
        workers: how many took part, at most.
        wait_seconds: from when a worker had nothing left to do to the last result.
        params_bytes: of the parameters, once for each of Ray's nodes that has workers.
        bytes_sent: of the items, as they travel to Ray's workers.
        bytes_received: of the results.
        items_again: items that had to be played again because a worker of Ray's was lost.
    """

    workers: int = 1
    wait_seconds: float = 0.0
    params_bytes: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    items_again: int = 0


class Engine(Protocol):
    """Carries out work items."""

    def run(self, items: Sequence[Any], params: Any) -> Iterator[Any]:
        """Yield the result of each item, in the order of the items.

        Args:
            items: what to play; picklable for Ray.
            params: what to play it with; neither engine nor worker changes it.

        Raises:
            WorkerError: an item raised, took too long, or killed its worker again and again.
            Interrupted: a stop was asked for; what was being played is dropped.
        """

    def close(self) -> None:
        """End all workers. Nothing is left behind; closing twice is harmless."""

    @property
    def num_restarts(self) -> int:
        """Ray's workers that were replaced since the start because they died or hung."""

    @property
    def last_run(self) -> RunStats:
        """Of the run that was begun last, whole once it has ended."""


def never() -> bool:
    """Nobody asks for a stop."""
    return False


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
        return _make_ray_engine(config, make_worker, should_stop)
    from pixelpong.engines.threads import ThreadEngine

    # ALE holds Python's lock while it plays: more threads would only wait for it.
    workers = config.workers or (1 if config.emulator == "ale" else count_cores())
    return ThreadEngine(make_worker, workers, config.worker_timeout, should_stop)


def _make_ray_engine(
    config: EngineConfig, make_worker: MakeWorker, should_stop: Callable[[], bool]
) -> Engine:
    require_ray()
    from pixelpong.engines.ray import RayEngine

    return RayEngine(
        make_worker,
        config.workers,
        config.worker_timeout,
        should_stop,
        config.ray_address,
        config.ray_mode,
    )


def require_ray() -> None:
    """Refuse to go on where Ray is not installed.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec("ray") is None:
        advice = "pip install 'pixelpong[ray]'"
        raise ConfigError(expected("Ray, for the engine of this name", "no ray", advice))
