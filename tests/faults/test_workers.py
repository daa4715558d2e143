"""Ray's workers may die and hang: real signals at random moments, the same bits."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import random
import signal
import statistics
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import patience, wait_until
from ledgers import Ledger, require_exactly_once
from outcomes import outcome_of

from pixelpong.config.presets import load_preset
from pixelpong.engines import make_engine
from pixelpong.errors import WorkerError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

TRAIN = importlib.import_module("pixelpong.loop")

pytestmark = [pytest.mark.ray, pytest.mark.alone]  # deadlines of seconds

GAMES = {
    "toy classic": {"max_frames": 300, "hidden": 20, "batch_size": 24},
    "toy fast": {"max_frames": 300, "hidden": 8, "streams": 12, "horizon": 100},
    "pong classic": {"hidden": 20, "batch_size": 4},
    "pong fast": {"hidden": 16, "streams": 12, "horizon": 100},
}

SOAK = [
    *(("toy classic", seed) for seed in range(8)),
    *(("toy fast", seed) for seed in range(8)),
    *(("pong classic", seed) for seed in range(2)),
    *(("pong fast", seed) for seed in range(2)),
]
"""Ten runs of each mode, two of them of the real game."""

LOST_SECONDS = 4
"""Until another worker plays in the place of one that is gone; a quick core needs half of it."""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


class Hunter(threading.Thread):
    """Sends signals to workers of the engine in use, at random moments."""

    def __init__(self, number: signal.Signals, times: int, seed: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.engine, self.ledger = None, None
        self.is_done = threading.Event()
        self.seconds_waited: list[float] = []  # for those that hang, until they were given up
        self._number, self._left, self._pause = number, times, pause
        self._rng = random.Random(seed)

    def run(self) -> None:
        self._wait_for_updates(2)
        while self._left:
            time.sleep(self._rng.uniform(0.0, 2 * self._pause))
            with contextlib.suppress(IndexError, ProcessLookupError):  # none, for the moment
                self._hit(self._rng.choice(self.engine.worker_pids))
                # A start has minutes, not the deadline of items: only one that plays is hit.
                self._wait_for_updates(1)
        self._wait_for_updates(2)
        self.is_done.set()

    def _wait_for_updates(self, count: int) -> None:
        learned = self.ledger.learned
        wanted = len(learned) + count
        assert wait_until(lambda: len(learned) >= wanted, 60.0)

    def _hit(self, pid: int) -> None:
        engine = self.engine
        os.kill(pid, self._number)
        self._left -= 1
        begin = time.monotonic()
        # Until the engine has let go of it: a second signal to a dead one would not count.
        assert wait_until(lambda: pid not in engine.worker_pids, 60.0)
        if self._number == signal.SIGSTOP:
            self.seconds_waited.append(time.monotonic() - begin)
            assert wait_until(lambda: not is_alive(pid), 60.0)  # Ray gives it a second


@pytest.fixture
def hunted(tmp_path, monkeypatch, ray_cluster):
    """Train while a hunter is out, until it is done; the run, its ledger, restarts each update."""

    def go(game: str, hunter: Hunter, **changes) -> tuple[RunDirectory, Ledger]:
        mode = game.split()[1]
        ledger = Ledger(tmp_path / "ledger")
        ledger.watch_learning(monkeypatch)

        def make_hunted(config, make_worker, should_stop):
            (full_config,) = make_worker.args
            hunter.engine = make_engine(config, ledger.make_worker(full_config), should_stop)
            return hunter.engine

        monkeypatch.setattr(TRAIN, "make_engine", make_hunted)
        config = load_preset(mode).updated(
            {**GAMES[game], "engine": "ray", "workers": 2, "updates": 10**6, **changes},
            "test",
        )
        run = RunDirectory.create(tmp_path / "hunted", config)
        hunter.ledger = ledger
        hunter.start()
        while not hunter.is_done.is_set():
            try:
                train(run, should_stop=hunter.is_done.is_set)
            except WorkerError as error:  # it says why, and has saved: a user would resume
                assert "that failed" in str(error)
                ledger.given_up += 1
        hunter.join()
        monkeypatch.undo()
        return run, ledger

    return go


def require_nothing_lost(run: RunDirectory, ledger: Ledger, folder: Path) -> int:
    """The bits, the lines and the ledger are those of a training in which nobody died."""
    updates = run.checkpoints.load_latest().update
    serial = run.config.updated({"engine": "serial", "updates": updates}, "test")
    undisturbed = RunDirectory.create(folder / "undisturbed", serial)
    train(undisturbed)
    assert outcome_of(run) == outcome_of(undisturbed)
    num_items = {"reinforce": serial.reinforce.batch_size, "ppo": serial.ppo.streams}
    return require_exactly_once(ledger, updates, num_items[serial.learning.algorithm])


def seconds_lost(run: RunDirectory) -> list[float]:
    """What each lost worker has cost: rollouts in which some were lost, above the usual ones.

    Left out is the first update of each sitting, which waits for its workers to start.
    """
    timings = [line["timing"] for line in run.metrics.read()]
    usual = statistics.median(timing["rollout_seconds"] for timing in timings)
    lost = []
    for before, timing in itertools.pairwise(timings):
        restarts = timing["restarts"] - before["restarts"]
        if restarts > 0:
            lost += [(timing["rollout_seconds"] - usual) / restarts] * restarts
    return lost


@pytest.mark.slow
@pytest.mark.parametrize("game", ["toy classic", "toy fast"])
def test_workers_that_are_killed_lose_nothing(hunted, tmp_path, game):
    run, ledger = hunted(game, Hunter(signal.SIGKILL, times=2, seed=1, pause=0.3))
    require_nothing_lost(run, ledger, tmp_path)
    assert max(seconds_lost(run)) < LOST_SECONDS * patience()


@pytest.mark.slow
def test_workers_that_hang_are_replaced_after_their_deadline(hunted, tmp_path):
    hunter = Hunter(signal.SIGSTOP, times=2, seed=1, pause=0.3)
    run, ledger = hunted("toy fast", hunter, worker_timeout=0.5)
    assert max(hunter.seconds_waited) < 0.5 + 2 * patience()
    require_nothing_lost(run, ledger, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("game", "seed"), SOAK)
def test_twenty_workers_killed_a_run_lose_nothing(hunted, tmp_path, game, seed):
    run, ledger = hunted(game, Hunter(signal.SIGKILL, 20, seed, pause=1.0))
    again = require_nothing_lost(run, ledger, tmp_path)
    lost = seconds_lost(run)
    updates = run.checkpoints.load_latest().update
    print(
        f"\n{game}, seed {seed}: {updates} updates, {len(lost)} losses noticed, "
        f"{np.mean(lost):.2f} s each, {max(lost):.2f} s at most, {again} items played for nothing, "
        f"{ledger.given_up} times given up and resumed"
    )
    assert max(lost) < 2 * patience()


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("game", GAMES)
def test_ten_workers_that_hang_a_run_lose_nothing(hunted, tmp_path, game):
    # On a busy machine an item takes longer: it must not be taken for one that hangs.
    timeout = (2.0 if "pong" in game else 1.0) * patience()
    hunter = Hunter(signal.SIGSTOP, times=10, seed=3, pause=1.0)
    run, ledger = hunted(game, hunter, worker_timeout=timeout)
    require_nothing_lost(run, ledger, tmp_path)
    late = max(hunter.seconds_waited) - timeout
    print(f"\n{game}: given up {late:.2f} s after the deadline of {timeout:.1f} s at most")
    assert late < 2 * patience()
