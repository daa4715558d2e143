"""Proof of "same seed, same bits": does one short training in many ways and compares the hashes.

Each way writes its own run directory, in a temporary folder. The parameters, the optimizer's
memory and the recorded lines without their times are compared.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.config import OPTIONS, Config
from pixelpong.engines import never
from pixelpong.errors import Interrupted, number_of
from pixelpong.items import BUILTIN
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory

WORKER_COUNTS = (1, 2, 3)
"""Numbers of workers to compare."""


@dataclass(frozen=True)
class Way:
    """One way through the same training, and its result.

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
        """Whether all bits are the same; ignores the name."""
        return dataclasses.replace(self, name=other.name) == other


def default_emulators(config: Config) -> list[str]:
    """The emulators to compare by default: both; the game for two has only one."""
    emulators = list(OPTIONS["emulator"].choices)
    is_for_two = config.ppo.opponent != BUILTIN
    return emulators[:1] if is_for_two else emulators


def compare_ways(
    config: Config,
    engines: list[str],
    emulators: list[str],
    should_stop: Callable[[], bool] = never,
) -> Iterator[Way]:
    """Train in every way and yield each when it is done; the first is the reference.

    Args:
        config: what to train; must have ``budget.updates``.
        engines: names of engines; each runs once without a stop, and then stopped and resumed.
        emulators: names of emulators; the first plays in all these ways. Each other one plays once
            alone, and then in turn with the first.
        should_stop: called several times a second.

    Raises:
        Interrupted: `should_stop` returned True.
    """
    updates = config.budget.updates
    assert updates is not None
    config = config.updated({"emulator": emulators[0]}, "verify")
    for engine in engines:
        for workers in (1,) if engine == "serial" else WORKER_COUNTS:
            name = engine if engine == "serial" else f"{engine}, {number_of(workers, 'worker')}"
            whole = {"engine": engine, "workers": workers, "updates": updates}
            yield _go(config, name, [whole], should_stop)
    for stop in range(1, updates):
        engine = engines[stop % len(engines)]
        name = f"{engine}, stopped at update {stop} and resumed"
        parts = [{"engine": engine, "workers": 2, "updates": each} for each in (stop, updates)]
        yield _go(config, name, parts, should_stop)
    every = [{"engine": engines[-1], "workers": 2, "updates": 1 + k} for k in range(updates)]
    name = f"{engines[-1]}, stopped and resumed at every update"
    yield _go(config, name, every, should_stop)
    for other in emulators[1:]:
        whole = {"engine": engines[0], "workers": 1, "updates": updates, "emulator": other}
        yield _go(config, f"{engines[0]}, emulator {other}", [whole], should_stop)
        if updates > 1:
            pair = emulators[0], other
            in_turn = [part | {"emulator": pair[k % 2]} for k, part in enumerate(every)]
            name = f"{engines[-1]}, emulators {pair[0]} and {pair[1]} in turn, an update each"
            yield _go(config, name, in_turn, should_stop)


def _go(
    config: Config,
    name: str,
    parts: list[dict[str, Any]],
    should_stop: Callable[[], bool],
) -> Way:
    """Train in parts, each resumed from the one before.

    Args:
        config: what to train.
        name: of the way.
        parts: the options that change, including ``updates``, at which the part stops.
        should_stop: called several times a second.
    """
    with tempfile.TemporaryDirectory(prefix="pixelpong-verify-") as folder:
        path = Path(folder) / "run"
        for part in parts:
            step = config.updated(part, "verify")
            run = (
                RunDirectory.open(path).with_config(step)
                if path.exists()
                else RunDirectory.create(path, step)
            )
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
