"""Proof of "same seed, same bits": one short training, done in many ways, and the hashes compared.

Each way writes a run directory of its own, in a temporary folder. Compared are the parameters,
the optimizer's memory and the recorded lines without their times.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pixelpong.config import Config
from pixelpong.engines import never
from pixelpong.errors import Interrupted
from pixelpong.run import Run
from pixelpong.store import fingerprint
from pixelpong.train import train

WORKER_COUNTS = (1, 2, 3)
"""Numbers of workers that are compared."""


@dataclass(frozen=True)
class Way:
    """One way through the same training, and what came out.

    Attributes:
        name: in words.
        params_sha256: of the final parameters.
        optimizer_sha256: of the optimizer's memory.
        lines_sha256: of metrics and episodes, wall times left out.
    """

    name: str
    params_sha256: str
    optimizer_sha256: str
    lines_sha256: str

    def matches(self, other: Way) -> bool:
        """Whether all bits are the same; the name does not count."""
        return dataclasses.replace(self, name=other.name) == other


def compare_ways(
    config: Config, engines: list[str], should_stop: Callable[[], bool] = never
) -> Iterator[Way]:
    """Train in every way and yield each as it is done; the first is the reference.

    Args:
        config: what is trained; ``budget.updates`` must be given.
        engines: names of engines; each is run undisturbed and then stopped and resumed.
        should_stop: asked several times a second.

    Raises:
        Interrupted: `should_stop` said so.
    """
    updates = config.budget.updates
    assert updates is not None
    for engine in engines:
        for workers in (1,) if engine == "serial" else WORKER_COUNTS:
            name = engine if engine == "serial" else f"{engine}, {workers} workers"
            yield _go(config, name, engine, workers, [updates], should_stop)
    for stop in range(1, updates):
        engine = engines[stop % len(engines)]
        name = f"{engine}, stopped at update {stop} and resumed"
        yield _go(config, name, engine, 2, [stop, updates], should_stop)
    name = f"{engines[-1]}, stopped and resumed at every update"
    yield _go(config, name, engines[-1], 2, list(range(1, updates + 1)), should_stop)


def _go(
    config: Config,
    name: str,
    engine: str,
    workers: int,
    stops: list[int],
    should_stop: Callable[[], bool],
) -> Way:
    changes = {"engine": engine, "workers": workers}
    with tempfile.TemporaryDirectory(prefix="pixelpong-verify-") as folder:
        path = Path(folder) / "run"
        for stop in stops:
            step = config.updated({**changes, "updates": stop}, "verify")
            run = Run.open(path).with_config(step) if path.exists() else Run.create(path, step)
            if train(run, should_stop=should_stop).reason == "interrupted":
                raise Interrupted
        checkpoint = run.checkpoints.load_latest()
        lines = [line for file in (run.metrics, run.episodes) for line in file.read()]
        for line in lines:
            line.pop("timing", None)
        text = json.dumps(lines).encode()
        return Way(
            name,
            fingerprint(checkpoint.params),
            fingerprint(checkpoint.optimizer),
            hashlib.sha256(text).hexdigest(),
        )
