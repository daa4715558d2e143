"""A sweep whose trainings and whose driver are killed again and again, and which loses nothing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time

import pytest
from conftest import patience, wait_until
from drivers import Driver
from fakes import pid_at_work

from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.sweep.sweep import Sweep

TOY = [
    "--preset", "classic", "--max-frames", "300", "--hidden", "20", "--batch-size", "3",
    "--updates", "3000", "--save-every", "5",
]  # fmt: skip


@pytest.mark.soak
@pytest.mark.ray
@pytest.mark.timeout(3600)
def test_a_sweep_survives_random_kills_of_its_trainings_and_its_driver(tmp_path):
    rng, kills = random.Random(5), {"training": 0, "driver": 0}
    words = ["sweep", "--seeds", "0-5", *TOY, "--out", "s"]
    runs = [tmp_path / "s" / f"seed-{seed}" for seed in range(6)]
    failed_starts = 0
    while sum(kills.values()) < 20:
        if (tmp_path / "s" / "sweep.csv").exists():
            words = ["sweep", "resume", "s"]
        driver = Driver(tmp_path, *words)
        if not wait_until(lambda: any(map(pid_at_work, runs)), 60):
            assert "Ray cluster at local" in driver.said()  # a crowded machine: Ray gave up
            failed_starts += 1
            assert failed_starts < 5, driver.said()
            continue
        for _ in range(rng.randrange(4)):
            time.sleep(rng.uniform(0.2, 2.0))
            if pids := [pid for run in runs if (pid := pid_at_work(run))]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(pids), signal.SIGKILL)
                    kills["training"] += 1
        if not driver.is_running():
            break
        driver.send(signal.SIGKILL)
        kills["driver"] += 1
        driver.wait(30)
        driver.seconds_until_gone(30)
    driver = Driver(tmp_path, "sweep", "resume", "s")
    assert driver.wait(600 * patience()) == 0, driver.said()
    print(f"\nkilled: {kills}")
    assert sum(kills.values()) >= 20
    with Sweep(tmp_path / "s") as sweep:
        for name, result in sweep.results().items():
            alone = train(RunDirectory.create(tmp_path / name, sweep.runs[name].config))
            assert result.params_sha256 == alone.params_sha256
