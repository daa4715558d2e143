"""Long runs hold no more at the end than at the beginning: memory, descriptors, threads.

The check is `growth.find_growth`. It is tried on curves that are made up, on a short real training
in which a leak is planted, and on half an hour of training (`make soak ARGS="-k long_runs -s"`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import growth
import numpy as np
import pytest
from conftest import patience, wait_until
from growth import BLOCKS, LIMIT, Sample, find_growth, memory_trend

from pixelpong.run.directory import RunDirectory

TESTS = Path(__file__).parents[1]
PIXELPONG = [sys.executable, "-m", "pixelpong"]

WARM_UP, MEASURED = 300, 1500
"""Seconds of a long training: until caches and pools have their size, and those that count."""


def curve(slope: float, noise: float = 0.3, seed: int = 5, extra=lambda number: 0) -> list[Sample]:
    """Twelve minutes, a sample every two seconds: noise that wanders, and a slope in MB/h."""
    samples, wander = [], 0.0
    for number, step in enumerate(np.random.default_rng(seed).normal(0, noise, 360)):
        wander = 0.5 * wander + step  # half of the one before, so that neighbours are alike
        megabytes = 300 + slope * number / 1800 + wander + extra(number)
        samples.append(Sample(2.0 * number, megabytes, 40, 9, 4))
    return samples


# --- the check itself -------------------------------------------------------------------------


@pytest.mark.soak
def test_the_check_finds_leaks_under_noise_and_raises_few_false_alarms():
    """The limit is 1 MB an hour; the interval of the slope holds the true one."""
    alarms = dict.fromkeys((0.0, LIMIT, 5.0, 5000.0), 0)
    inside = 0
    for seed in range(200):
        for slope in alarms:
            samples = curve(slope, seed=seed)
            alarms[slope] += bool(find_growth(samples))
            trend = memory_trend(samples)
            inside += trend.low <= slope <= trend.high
    assert alarms[0.0] == 0
    assert alarms[LIMIT] <= 6
    assert min(alarms[5.0], alarms[5000.0]) >= 190
    assert inside >= 4 * 190


@pytest.mark.parametrize(
    ("extra", "noise", "leak"),
    [
        (lambda number: number % 7 + (40 if 100 < number < 130 else 0), 0.3, 20.0),
        (lambda number: -30.0 * (number > 200), 0.1, 10.0),
        (lambda number: 15.0 * (number > 200), 0.0, 10.0),
    ],
)
def test_peaks_and_single_steps_neither_hide_a_leak_nor_look_like_one(extra, noise, leak):
    """Saw teeth and a busy minute; a heap that once grows or shrinks by some pages."""
    assert find_growth(curve(0.0, noise, extra=extra)) == []
    assert find_growth(curve(leak, noise, extra=extra)) != []


def test_many_steps_are_a_leak():
    samples = curve(0.0, extra=lambda number: 15.0 * (number // 90))
    assert "from 300" in "".join(find_growth(samples))


@pytest.mark.parametrize("name", growth.COUNTED)
def test_one_descriptor_more_is_found_and_one_for_a_moment_is_ignored(name):
    def with_more(more) -> list[Sample]:
        return [
            dataclasses.replace(each, **{name: getattr(each, name) + more(number)})
            for number, each in enumerate(curve(0.0))
        ]

    assert find_growth(with_more(lambda number: number % 3)) == []
    (line,) = find_growth(with_more(lambda number: number // 180))
    assert line.startswith(name)


# --- leaks that are planted -------------------------------------------------------------------


@contextlib.contextmanager
def started(command: list[str], **options) -> Iterator[subprocess.Popen]:
    """A process, ended with all that are below it."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            tree = growth.find_tree(process.pid)
            process.kill()
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree), 5)


@pytest.mark.soak
def test_a_leak_that_is_planted_is_found_wherever_it_is(tmp_path):
    """In a real training: first there is none, then one after the other leaks."""
    orders, run = tmp_path / "orders", tmp_path / "run"
    orders.write_text("")
    command = [sys.executable, str(Path(__file__).parent / "leaky.py"), str(run), str(orders)]
    paths = os.pathsep.join([str(TESTS), os.environ["PYTHONPATH"]])
    found = {}
    with started(command, env={**os.environ, "PYTHONPATH": paths}) as process:
        metrics = run / "metrics.jsonl"
        assert wait_until(lambda: metrics.exists() and metrics.stat().st_size > 400_000, 60)
        for order in ("", "worker", "driver", "descriptors", "threads"):
            orders.write_text(order)
            samples = growth.sample(process.pid, 2 * BLOCKS, 0.03 * patience())
            found[order] = {line.split()[0] for line in find_growth(samples)} - {"memory"}
            if memory_trend(samples).low > 3000:  # in a second or two, less says nothing
                found[order].add("memory")
    assert found[""] == set()
    assert "memory" in found["worker"] & found["driver"]
    assert all(order in found[order] for order in ("descriptors", "threads")), found


# --- half an hour of training -----------------------------------------------------------------


def check(what: str, samples: list[Sample], seen: float, **more) -> None:
    """Print the figures of a long run; nothing grows, and a leak of so many MB/h would show."""
    curve = growth.medians([each.megabytes for each in samples]).round(2).tolist()
    counts = {
        name: [min(values), max(values)]
        for name in growth.COUNTED
        if (values := [getattr(each, name) for each in samples])
    }
    figures = {"what": what, "trend": str(memory_trend(samples)), "curve_megabytes": curve}
    print(json.dumps(figures | counts | more))
    assert find_growth(samples) == []
    leaking = [
        dataclasses.replace(each, megabytes=each.megabytes + seen * each.seconds / 3600)
        for each in samples
    ]
    assert find_growth(leaking), f"{seen} MB/h would not have been seen"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("preset", ["fast", "classic"])
def test_long_runs_of_training_hold_no_more_at_the_end(preset, tmp_path):
    run = tmp_path / "run"
    words = ["train", "--preset", preset, "--updates", "1000000", "--run", str(run)]
    if preset == "classic":  # else its episodes, and with them its arrays, grow for hours
        words += ["--learning-rate", "1e-12"]
    with started([*PIXELPONG, *words], stdout=subprocess.DEVNULL) as process:
        samples = growth.sample(process.pid, (WARM_UP + MEASURED) // 2, 2.0)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    settled = [each for each in samples if each.seconds >= WARM_UP]
    last = list(RunDirectory(run).metrics.read())[-1]
    check(f"training {preset}", settled, 10.0, updates=last["update"], steps=last["steps"])
