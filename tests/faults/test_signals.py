"""Ctrl-C and SIGTERM at any moment: out within five seconds, saved, nothing left, exit code 130."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import patience, wait_for_checkpoint, wait_until
from drivers import Driver
from outcomes import updates_of

from pixelpong.run.directory import RunDirectory

WAYS = {
    "rollouts": ["--batch-size", "200", "--save-every", "50"],
    "evaluations": ["--batch-size", "5", "--evaluate-every", "1", "--evaluate-episodes", "400"],
    "saves": ["--batch-size", "2", "--hidden", "500", "--save-every", "1"],
    "serial": ["--batch-size", "20", "--engine", "serial"],
}
"""Where each of these trainings spends its time."""


@dataclass
class Stop:
    """A signal, or two: which, when, and to whom; and how long the driver still took."""

    number: signal.Signals
    moment: float
    second: float | None
    to_all: bool
    seconds: float = 0.0


def draw_stop(rng: random.Random, number: signal.Signals, latest: float) -> Stop:
    """Once or twice; to the driver alone, or to its whole group as a terminal or a cluster does."""
    second = rng.choice((None, 0.0, rng.uniform(0.0, 0.3), rng.uniform(0.0, 1.5)))
    return Stop(number, rng.uniform(0.0, latest), second, to_all=rng.random() < 0.5)


def start(folder: Path, way: str) -> Driver:
    """Start a training of short games; returns when our first line runs."""
    options = ["--preset", "classic", "--max-frames", "300", "--workers", "2", *WAYS[way]]
    folder.mkdir()
    driver = Driver(folder, "train", "--run", "run", "--updates", "1000000", *options)
    while not driver.is_ours():
        assert driver.is_running(), driver.said()
        time.sleep(0.001)
    return driver


def interrupt(driver: Driver, stop: Stop) -> None:
    """Send the signals now, and require what is promised."""
    begin = time.monotonic()
    driver.send(stop.number, to_all=stop.to_all)
    if stop.second is not None:
        time.sleep(stop.second)
        driver.send(stop.number, to_all=stop.to_all)
    assert driver.wait(60.0) == 130, driver.said()
    stop.seconds = time.monotonic() - begin
    assert stop.seconds < 5 * patience()
    driver.seconds_until_gone(1.0)
    assert driver.said() in ("", "pixelpong: interrupted\n")
    assert driver.temporary_files() == []
    if (driver.folder / "run" / "config.json").exists():
        run = RunDirectory(driver.folder / "run")
        if run.checkpoints.updates() or driver.said() == "":
            assert run.checkpoints.load_latest().update == max(updates_of(run), default=0)


def after_moments(folder: Path, number: signal.Signals, times: int, seed: int) -> list[Stop]:
    """Trainings that are stopped at random moments, of start-up too."""
    rng, stops = random.Random(seed), []
    for index in range(times):
        way = list(WAYS)[index % len(WAYS)]
        stop = draw_stop(rng, number, latest=4.0)
        driver = start(folder / f"{index}", way)
        time.sleep(stop.moment)
        shared = driver.shared_files()
        try:
            interrupt(driver, stop)
        except BaseException:
            print(f"\n{way}, {stop}, seed {seed}, number {index}:\n{driver.said()}")
            raise
        assert not any(path.exists() for path in shared)
        stops.append(stop)
    return stops


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_starts_ends_it_without_a_word_too_many(tmp_path, number):
    for way, moment in (("rollouts", 0.0), ("serial", 0.3)):
        driver = start(tmp_path / way, way)
        time.sleep(moment)
        interrupt(driver, Stop(number, moment, 0.0, to_all=False))


@pytest.mark.slow
def test_a_signal_in_the_middle_of_a_save_lets_it_end(tmp_path):
    driver = start(tmp_path / "training", "saves")
    checkpoints = driver.folder / "run" / "checkpoints"
    wait_for_checkpoint(driver.folder / "run")
    while not list(checkpoints.glob(".0*.safetensors-*")):
        assert driver.is_running(), driver.said()
    interrupt(driver, Stop(signal.SIGTERM, 0.0, 0.01, to_all=False))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["evaluations", "serial"])
def test_a_signal_in_the_middle_of_an_update_loses_nothing(tmp_path, way):
    driver = start(tmp_path / "training", way)
    metrics = driver.folder / "run" / "metrics.jsonl"
    assert wait_until(lambda: metrics.exists() and metrics.stat().st_size > 0, 30)
    shared = driver.shared_files()
    interrupt(driver, Stop(signal.SIGINT, 0.0, 0.1, to_all=True))
    assert not any(path.exists() for path in shared)
    run = RunDirectory(driver.folder / "run")
    assert len(list(run.evaluations.read())) < max(updates_of(run))


def test_a_training_that_was_stopped_for_long_goes_on(tmp_path):
    """Ctrl-Z and fg, a debugger, a paused container: longer than any deadline of Ray's workers."""
    options = ["--preset", "classic", "--max-frames", "300", "--worker-timeout", "0.1"]
    driver = Driver(tmp_path, "train", "--run", "run", "--updates", "1000000", *options)
    metrics = tmp_path / "run" / "metrics.jsonl"
    for _ in range(5):
        size = metrics.stat().st_size if metrics.exists() else 0
        assert wait_until(lambda size=size: metrics.exists() and metrics.stat().st_size > size, 60)
        driver.send(signal.SIGSTOP)
        time.sleep(0.5)
        driver.send(signal.SIGCONT)
        assert driver.is_running(), driver.said()
    driver.send(signal.SIGINT)
    assert driver.wait(60.0) == 130, driver.said()
    assert driver.said() in ("", "pixelpong: interrupted\n")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fifty_signals_at_random_moments(tmp_path, number):
    stops = after_moments(tmp_path, number, times=50, seed=4)
    seconds = sorted(stop.seconds for stop in stops)
    print(
        f"\n{number.name}: out after {seconds[len(stops) // 2]:.2f} s, {seconds[-1]:.2f} s at most"
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_tournaments_processes_end_with_it(tmp_path, number):
    """A terminal sends SIGINT to each of them; SIGKILL is for the command alone."""
    words = ["tournament", "perfect", "person", "--games", "1000", "--points", "3"]
    driver = Driver(tmp_path, *words, "--workers", "2")
    assert wait_until(lambda: len(driver.processes()) >= 4)  # with Python's resource tracker
    driver.send(number, to_all=number == signal.SIGINT)
    driver.seconds_until_gone(20 * patience())
    assert driver.wait(1) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    if number == signal.SIGINT:
        assert (tmp_path / "err").read_text() in ("", "pixelpong: interrupted\n")
