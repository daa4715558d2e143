"""Ray's workers may die and hang: real signals at random moments, the same bits."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import wait_until
from ledgers import Ledger, require_exactly_once
from outcomes import outcome_of

from pixelpong.config.presets import load_preset
from pixelpong.engines import make_engine
from pixelpong.errors import WorkerError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

TRAIN = importlib.import_module("pixelpong.loop")

pytestmark = pytest.mark.ray

GAMES = {
    "short classic": {"max_frames": 300, "hidden": 20, "batch_size": 24},
    "short fast": {"max_frames": 300, "hidden": 8, "num_envs": 12, "num_steps": 100},
    "pong classic": {"hidden": 20, "batch_size": 4},
    "pong fast": {"hidden": 16, "num_envs": 12, "num_steps": 100},
}

# Ten runs of each mode, two of them of whole games.
SOAK = [(game, seed) for game in GAMES for seed in range(8 if "short" in game else 2)]


class Hunter(threading.Thread):
    """Sends signals to workers of the engine in use, at random moments."""

    def __init__(self, number: signal.Signals, times: int, seed: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.engine, self.ledger = None, None
        self.is_done = threading.Event()
        self._number, self._left, self._pause = number, times, pause
        self._rng = random.Random(seed)

    def run(self) -> None:
        while self._left:
            # A start has minutes, not the deadline of items: only one that plays is hit.
            self._wait_for_updates(2)
            time.sleep(self._rng.uniform(0.0, 2 * self._pause))
            with contextlib.suppress(IndexError, ProcessLookupError):  # none, for the moment
                pid, engine = self._rng.choice(self.engine.worker_pids), self.engine
                os.kill(pid, self._number)
                self._left -= 1
                # Until the engine has let go of it: a second signal would not count.
                assert wait_until(lambda pid=pid, it=engine: pid not in it.worker_pids, 120.0)
        self._wait_for_updates(2)
        self.is_done.set()

    def _wait_for_updates(self, count: int) -> None:
        wanted = len(self.ledger.learned) + count
        assert wait_until(lambda: len(self.ledger.learned) >= wanted, 120.0)


@pytest.fixture
def hunt(tmp_path, monkeypatch, ray_cluster):
    """Train while a hunter is out; then bits, lines and ledger are as if nobody had died."""

    def go(game: str, hunter: Hunter, **changes) -> str:
        mode, ledger = game.split()[1], Ledger(tmp_path / "ledger")
        ledger.watch_learning(monkeypatch)

        def make_hunted(config, make_worker, should_stop):
            full_config, *_ = make_worker.args
            hunter.engine = make_engine(config, ledger.make_worker(full_config), should_stop)
            return hunter.engine

        monkeypatch.setattr(TRAIN, "make_engine", make_hunted)
        changes |= {**GAMES[game], "engine": "ray", "workers": 2, "updates": 10**6}
        config = load_preset(mode).updated(changes, "test")
        run = RunDirectory.create(tmp_path / "hunted", config)
        hunter.ledger, given_up = ledger, 0
        hunter.start()
        while not hunter.is_done.is_set():
            try:
                train(run, should_stop=hunter.is_done.is_set)
            except WorkerError as error:  # it says why, and has saved: a user would resume
                assert "that failed" in str(error)
                given_up += 1
        hunter.join()
        monkeypatch.undo()
        again = require_nothing_lost(run, ledger, tmp_path)
        return f"{again} items played for nothing, {given_up} times given up and resumed"

    return go


def require_nothing_lost(run: RunDirectory, ledger: Ledger, folder: Path) -> int:
    updates = run.checkpoints.load_latest().update
    serial = run.config.updated({"engine": "serial", "updates": updates}, "test")
    undisturbed = RunDirectory.create(folder / "undisturbed", serial)
    train(undisturbed)
    assert outcome_of(run) == outcome_of(undisturbed)
    num_items = {"reinforce": serial.batch_size, "ppo": serial.num_envs}
    return require_exactly_once(ledger, updates, num_items[serial.algorithm])


@pytest.mark.slow
@pytest.mark.parametrize("game", ["short classic", "short fast"])
def test_workers_that_are_killed_lose_nothing(hunt, game):
    hunt(game, Hunter(signal.SIGKILL, times=2, seed=1, pause=0.3))


@pytest.mark.slow
def test_workers_that_hang_are_replaced_after_their_deadline(hunt):
    hunt("short fast", Hunter(signal.SIGSTOP, times=1, seed=1, pause=0.3), worker_timeout=0.5)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("game", "seed"), SOAK)
def test_twenty_workers_killed_a_run_lose_nothing(hunt, game, seed):
    print(f"\n{game}, seed {seed}:", hunt(game, Hunter(signal.SIGKILL, 20, seed, pause=1.0)))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("game", GAMES)
def test_ten_workers_that_hang_a_run_lose_nothing(hunt, game):
    print(f"\n{game}:", hunt(game, Hunter(signal.SIGSTOP, 10, 3, pause=1.0), worker_timeout=2.0))
