"""The driver may die at any moment: what is saved goes on, and nothing of it is left behind."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import patience
from drivers import Driver, words_of
from outcomes import outcome_of, updates_of

from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

TOY = {
    "classic": ["--batch-size", "20", "--hidden", "20"],
    "fast": ["--num-envs", "8", "--num-steps", "50", "--hidden", "8", "--num-minibatches", "2"],
}
AGENTS_SECONDS = 90.0
"""Ray's own agents report that their raylet has gone; they wait up to a minute for Ray's head."""

RAY_TOY = ["--preset", "classic", "--max-frames", "300", *TOY["classic"], "--engine", "ray"]


@dataclass
class Deaths:
    """What was found each time: updates lost, and seconds until the last worker was gone."""

    lost: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    shared: set[Path] = field(default_factory=set)
    drivers: list[Driver] = field(default_factory=list)


def die_again_and_again(folder: Path, mode: str, times: int, seed: int, *words: str) -> Deaths:
    """Start a training, kill its driver at a random moment, resume, and so on."""
    rng, deaths = random.Random(seed), Deaths()
    options = ["--preset", mode, "--max-frames", "300", *TOY[mode], "--save-every", "1"]
    options += ["--evaluate-every", "7", "--evaluate-episodes", "3"]
    first = ["train", "--run", "run", *options, "--updates", "1000000", "--workers", "2", *words]
    startup = 0.0
    while len(deaths.lost) < times:
        has_begun = (folder / "run" / "config.json").exists()
        driver = Driver(folder, *(["resume", "run"] if has_begun else first))
        if not has_begun:
            startup = wait_for_updates(driver)
        time.sleep(rng.uniform(0.0, 1.5 * startup) if has_begun else rng.uniform(0.0, 0.5))
        deaths.drivers.append(driver)
        deaths.shared |= driver.shared_files()
        assert driver.is_running(), driver.said()
        driver.send(signal.SIGKILL)
        driver.wait(30.0)
        deaths.seconds.append(driver.seconds_until_gone(AGENTS_SECONDS if "ray" in words else 2.0))
        run = RunDirectory(folder / "run")
        newest = run.checkpoints.load_latest().update
        deaths.lost.append(max(updates_of(run), default=0) - newest)
        deaths.updates.append(newest)
    return deaths


def wait_for_updates(driver: Driver) -> float:
    """Wait until three updates are done; how long that took."""
    metrics = driver.folder / "run" / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < 3:
        assert driver.is_running(), driver.said()
        time.sleep(0.01)
    return time.monotonic() - driver.began


def require_nothing_lost(folder: Path, deaths: Deaths) -> None:
    """Resume once more, to its end, and compare with a training to which nothing happened."""
    updates = deaths.updates[-1] + 3
    driver = Driver(folder, "resume", "run", "--updates", str(updates))
    assert driver.wait(60.0) == 0, driver.said()
    run = RunDirectory(folder / "run")
    whole = run.config.updated({"engine": "serial"}, "test")
    undisturbed = RunDirectory.create(folder / "undisturbed", whole)
    train(undisturbed)
    assert outcome_of(run) == outcome_of(undisturbed)
    assert updates_of(run) == list(range(1, updates + 1))
    assert max(deaths.lost) <= 1
    assert not any(path.exists() for path in deaths.shared)
    assert [each.temporary_files() for each in (*deaths.drivers, driver)] == [[]] * (
        len(deaths.drivers) + 1
    )


@pytest.mark.slow
def test_a_driver_that_is_killed_loses_one_update_at_most_and_leaves_nothing(tmp_path):
    require_nothing_lost(tmp_path, die_again_and_again(tmp_path, "fast", 2, seed=1))


@pytest.mark.slow
@pytest.mark.ray
def test_a_driver_of_ray_that_is_killed_leaves_no_process_and_resumes_to_the_same_bits(tmp_path):
    deaths = die_again_and_again(tmp_path, "classic", 1, 4, "--engine", "ray")
    require_nothing_lost(tmp_path, deaths)


@pytest.mark.slow
@pytest.mark.ray
def test_a_ray_that_dies_ends_its_driver_and_it_resumes_to_the_same_bits(tmp_path):
    words = ["--save-every", "1", "--updates", "1000000"]
    driver = Driver(tmp_path, "train", "--run", "run", *RAY_TOY, *words)
    wait_for_updates(driver)
    (raylet,) = (pid for pid in driver.processes() if "raylet/raylet " in words_of(pid))
    shared = driver.shared_files()
    os.kill(raylet, signal.SIGKILL)
    assert driver.wait(30 * patience()) == 1, driver.said()
    seconds = driver.seconds_until_gone(AGENTS_SECONDS)
    run = RunDirectory(tmp_path / "run")
    newest = run.checkpoints.load_latest().update
    lost = max(updates_of(run)) - newest
    require_nothing_lost(tmp_path, Deaths([lost], [seconds], [newest], shared, [driver]))


@pytest.mark.slow
@pytest.mark.ray
def test_ctrl_c_saves_and_leaves_nothing_of_ray_behind(tmp_path):
    driver = Driver(tmp_path, "train", "--run", "run", *RAY_TOY, "--updates", "1000000")
    wait_for_updates(driver)
    driver.send(signal.SIGINT, to_all=True)  # as a terminal does it
    assert driver.wait(20 * patience()) == 130, driver.said()
    driver.seconds_until_gone(5.0)
    assert driver.temporary_files() == []
    assert RunDirectory(tmp_path / "run").checkpoints.load_latest().update >= 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", TOY)
def test_a_driver_that_is_killed_fifty_times_loses_nothing(tmp_path, mode):
    deaths = die_again_and_again(tmp_path, mode, 50, seed=2)
    print(f"\n{mode}: lost {deaths.lost}, gone after {max(deaths.seconds):.2f} s at most")
    require_nothing_lost(tmp_path, deaths)


@pytest.mark.soak
@pytest.mark.ray
@pytest.mark.timeout(3600)
def test_a_driver_of_ray_that_is_killed_loses_nothing(tmp_path):
    deaths = die_again_and_again(tmp_path, "fast", 10, 3, "--engine", "ray")
    print(f"\nray: lost {deaths.lost}, gone after {max(deaths.seconds):.2f} s at most")
    require_nothing_lost(tmp_path, deaths)
