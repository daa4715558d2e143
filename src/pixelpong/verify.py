"""Proof of two promises on this machine: the game is ALE's, and the same seed gives the same bits.

Frames are played in lock-step with ALE. Then one short training is done in many ways, each in a
temporary run directory, and the parameters, the optimizer's memory and the recorded lines without
their times are compared.
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

import numpy as np

from pixelpong.atari.machine import DRAW_PICTURE
from pixelpong.config import Config
from pixelpong.engines import never
from pixelpong.env.native import NativeConsole
from pixelpong.env.rom import rom_path
from pixelpong.errors import Interrupted, number_of
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.seeding import make_rng

NUM_FRAMES = 2000  # to compare with ALE, a second
WORKER_COUNTS = (1, 2, 3)
Part = dict[str, Any]  # the options that change in a part of a training


@dataclass(frozen=True)
class Way:
    """One way through the same training, and its result."""

    name: str
    params_sha256: str
    state_sha256: str  # of the optimizer's memory and the streams, too
    lines_sha256: str  # of metrics and episodes

    def matches(self, other: Way) -> bool:
        """Whether all bits are the same; ignores the name."""
        return dataclasses.replace(self, name=other.name) == other


def compare_with_ale(seed: int, frames: int = NUM_FRAMES) -> int | None:
    """Play random actions here and on ALE; return the first frame that differs, None if none does.

    Memory, reward and picture are compared.
    """
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("frame_skip", 1)
    ale.loadROM(rom_path())
    ale.reset_game()
    actions, console = ale.getMinimalActionSet(), NativeConsole()
    choices = make_rng(seed, "play").integers(len(actions), size=1 + frames // 8).repeat(8)
    for frame, action in enumerate(choices[:frames].tolist(), start=1):
        reward, is_over, _ = console.run(bytes([action]), DRAW_PICTURE)
        is_same = (
            (reward, is_over) == (ale.act(actions[action]), ale.game_over())
            and np.array_equal(console.memory, ale.getRAM())
            and np.array_equal(console.picture, ale.getScreen())
        )
        if not is_same:
            return frame
        if is_over:
            break
    return None


def compare_ways(
    config: Config, engines: list[str], should_stop: Callable[[], bool] = never
) -> Iterator[Way]:
    """Train in every way and yield each when it is done; the first is the reference.

    Each engine runs without a stop, and then stopped and resumed. `Interrupted` is raised if
    `should_stop`, called several times a second, returns True.
    """
    updates = config.budget.updates
    assert updates is not None
    for engine in engines:
        for workers in (1,) if engine == "serial" else WORKER_COUNTS:
            name = engine if engine == "serial" else f"{engine}, {number_of(workers, 'worker')}"
            yield _go(config, name, [{"engine": engine, "workers": workers}], should_stop)
    for stop in range(1, updates):
        engine = engines[stop % len(engines)]
        name = f"{engine}, stopped at update {stop} and resumed"
        parts = [{"engine": engine, "workers": 2, "updates": each} for each in (stop, updates)]
        yield _go(config, name, parts, should_stop)
    every = [{"engine": engines[-1], "workers": 2, "updates": 1 + k} for k in range(updates)]
    yield _go(config, f"{engines[-1]}, stopped and resumed at every update", every, should_stop)


def _go(config: Config, name: str, parts: list[Part], should_stop: Callable[[], bool]) -> Way:
    """Train in parts, each resumed from the one before."""
    with tempfile.TemporaryDirectory(prefix="pixelpong-verify-") as folder:
        path = Path(folder) / "run"
        for part in parts:
            step = config.updated(part, "verify")
            has_begun = path.exists()
            run = RunDirectory(path) if has_begun else RunDirectory.create(path, step)
            if train(run.with_config(step), should_stop=should_stop).reason == "interrupted":
                raise Interrupted
        checkpoint = run.checkpoints.load_latest()
        lines = [line for file in (run.metrics, run.episodes) for line in file.read()]
        text = json.dumps([line | {"timing": None} for line in lines])
        params = checkpoint.card["about"]["params_sha256"]
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        return Way(name, params, fingerprint(checkpoint.arrays), sha256)
