"""Checks two promises on this machine: the game equals ALE's, and a seed gives the same bits.

It plays frames in lock-step with ALE. Then it trains one short run in several ways, each time in a
temporary directory, and compares the parameters, the optimizer's memory and the recorded lines,
except for times.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pixelpong.atari.lockstep import STYLES, Comparison, Lockstep
from pixelpong.atari.machine.compiled import Game
from pixelpong.config import Config
from pixelpong.engines import never
from pixelpong.errors import Interrupted, number_of
from pixelpong.loop import Ended, train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng

NUM_FRAMES = 2000  # number of frames compared with ALE in each style; they take a second
WORKER_COUNTS = (1, 2, 3)


def compare_with_ale(game: Game, seed: int, frames: int = NUM_FRAMES) -> Comparison:
    """Play a game here and on ALE, `frames` frames in each of three styles, with every picture.

    Differences in memory, rewards, lives or ends finish the comparison; wrong pictures do not.
    """
    lockstep = Lockstep(game, picture_every=1)
    for number, style in enumerate(STYLES):
        if not lockstep.result.differences:
            lockstep.run(style, frames, make_rng(seed, "play", number))
    return lockstep.result


def compare_ways(
    config: Config,
    engines: list[str],
    should_stop: Callable[[], bool] = never,
    train: Callable[..., Ended] = train,
) -> Iterator[dict[str, Any]]:
    """Train in every way; yield each way's name and hashes, and whether they equal the first's.

    Each engine trains once with each number of workers, and once stopped and resumed at every
    update. A way that does not stop where it should is not the same. `should_stop` is called
    several times a second; if it returns True, `Interrupted` is raised. `train` trains a run, as
    `pixelpong.loop.train` does.
    """
    updates, first_hashes = config.updates, None
    assert updates is not None
    for engine in engines:
        ways = {}  # by name, the options of each part of a way
        for workers in (1,) if engine == "serial" else WORKER_COUNTS:
            ways[number_of(workers, "worker")] = [{"engine": engine, "workers": workers}]
        parts = [{"engine": engine, "workers": 2, "updates": 1 + k} for k in range(updates)]
        ways["stopped and resumed at every update"] = parts
        for name, parts in ways.items():
            stops, hashes = _train_in_parts(config, parts, should_stop, train)
            first_hashes = first_hashes or hashes
            has_stopped = stops == [part.get("updates", updates) for part in parts]
            name = f"{engine}, {name}"
            yield {"name": name, "is_same": hashes == first_hashes and has_stopped, **hashes}


def _train_in_parts(
    config: Config,
    parts: list[dict[str, Any]],
    should_stop: Callable[[], bool],
    train: Callable[..., Ended],
) -> tuple[list[int], dict[str, str]]:
    """Train in parts with changed options, resuming for each part.

    Return the update at which each part stopped, and the hashes of the result.
    """
    with tempfile.TemporaryDirectory(prefix="pixelpong-verify-") as folder:
        path, stops = Path(folder) / "run", []
        for options in parts:
            changed = config.updated(options, "verify")
            run = RunDirectory(path) if path.exists() else RunDirectory.create(path, changed)
            ended = train(run.with_config(changed), should_stop=should_stop)
            if ended.reason == "interrupted":
                raise Interrupted
            stops.append(ended.progress.update)
        checkpoint = run.checkpoints.load_latest()
        lines = [line for file in (run.metrics, run.episodes) for line in file.read()]
        text = json.dumps([line | {"timing": None} for line in lines])
        return stops, {
            "params_sha256": checkpoint.card["about"]["params_sha256"],
            "state_sha256": fingerprint(checkpoint.arrays),  # with the optimizer and the streams
            "lines_sha256": hashlib.sha256(text.encode()).hexdigest(),
        }
