"""Ctrl-C and SIGTERM at random moments: saved, nothing left, exit code 130."""

from __future__ import annotations

import random
import signal
import time

import pytest
from drivers import Driver
from promises import promise
from waiting import wait_until

from pixelpong.run.directory import RunDirectory

pytestmark = promise("signals")

WAYS = {
    "rollouts": ["--batch-size", "200", "--save-every", "50"],
    "evaluations": ["--batch-size", "5", "--evaluate-every", "1", "--evaluate-episodes", "400"],
    "saves": ["--batch-size", "2", "--hidden", "500", "--save-every", "1"],
    "serial": ["--batch-size", "20", "--engine", "serial"],
}
"""Where each of these trainings spends its time."""

MAX_SECONDS = 5.0
"""That a training may take to end, with nothing else on the machine."""


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fifty_signals_at_random_moments(tmp_path, number):
    """Once or twice; to the command alone, or to its whole group as a terminal does."""
    rng, seconds = random.Random(4), []
    for index in range(50):
        way, to_all = list(WAYS)[index % len(WAYS)], rng.random() < 0.5
        folder = tmp_path / f"{index} {way}"
        folder.mkdir()
        options = ["--preset", "classic", "--max-frames", "300", "--workers", "2", *WAYS[way]]
        with Driver(folder, "train", "--run", "run", "--updates", 10**6, *options) as driver:
            wait_until(driver.is_ours)
            time.sleep(rng.uniform(0.0, 4.0))
            begin = time.monotonic()
            driver.send(number, to_all=to_all)
            if rng.random() < 0.75:
                time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.3), rng.uniform(0.0, 1.5))))
                driver.send(number, to_all=to_all)
            assert driver.wait() == 130, driver.said()
            seconds.append(time.monotonic() - begin)
            assert driver.said() in ("", "pixelpong: interrupted\n")
            assert driver.leaves() == []
        if (folder / "run/config.json").exists():
            run = RunDirectory(folder / "run")
            written = [line["update"] for line in run.metrics.read()]
            if run.checkpoints.updates() or driver.said() == "":
                assert run.checkpoints.load_latest().update == max(written, default=0)
    print(f"\n{number.name}: out after {sorted(seconds)[25]:.2f} s, {max(seconds):.2f} s at most")
    assert max(seconds) < MAX_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_tournaments_processes_end_with_it(tmp_path, number):
    """A terminal sends SIGINT to each of them; SIGKILL is for the command alone."""
    words = ["tournament", "perfect", "person", "--games", "1000", "--points", "3"]
    with Driver(tmp_path, *words, "--workers", "2") as driver:
        wait_until(lambda: len(driver.processes()) >= 4)  # with Python's resource tracker
        driver.send(number, to_all=number == signal.SIGINT)
        assert driver.wait() == (130 if number == signal.SIGINT else -signal.SIGKILL)
        wait_until(lambda: not driver.processes())
    assert driver.said() in ("", "pixelpong: interrupted\n") or number == signal.SIGKILL
