"""Long runs hold no more at the end than at the beginning: memory, descriptors, threads.

The check is `growth.find_growth`. It is tried on curves that are made up, and on half an hour of
training (`make soak ARGS="-k long_runs -s"`).
"""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys

import growth
import numpy as np
import pytest
from drivers import Driver
from growth import Sample, find_growth, memory_trend
from promises import promise

pytestmark = promise("no growth")

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


@pytest.mark.parametrize(
    ("extra", "noise", "leak"),
    [
        (lambda number: 0, 0.3, 5.0),
        (lambda number: 0, 0.3, 5000.0),
        (lambda number: number % 7 + (40 if 100 < number < 130 else 0), 0.3, 20.0),
        (lambda number: -30.0 * (number > 200), 0.1, 10.0),
        (lambda number: 15.0 * (number > 200), 0.0, 10.0),
    ],
)
def test_peaks_and_single_steps_neither_hide_a_leak_nor_look_like_one(extra, noise, leak):
    """Noise alone; saw teeth and a busy minute; a heap that once grows or shrinks by some pages."""
    for seed in range(5):
        assert find_growth(curve(0.0, noise, seed, extra)) == []
        assert find_growth(curve(leak, noise, seed, extra)) != []


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


HOLDER = """
import os, threading
input()
held = [b"1" * 50_000_000, [open(os.devnull) for _ in range(50)]]
for _ in range(50):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(flush=True)
input()
"""


def test_what_a_process_holds_is_seen():
    """50 MB, 50 descriptors and 50 threads more, in a process that does nothing else."""
    program = [sys.executable, "-S", "-c", HOLDER]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        before = growth.take_sample([process.pid], 0.0)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        after = growth.take_sample([process.pid], 0.0)
        process.communicate(b"\n")
    for name in ("megabytes", "descriptors", "threads"):
        assert 40 < getattr(after, name) - getattr(before, name) < 70, name


# --- half an hour of training -----------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("preset", ["fast", "classic"])
def test_long_runs_of_training_hold_no_more_at_the_end(preset, tmp_path):
    """And a leak of 10 MB an hour would have been seen."""
    words = ["train", "--preset", preset, "--updates", "1000000", "--run", "run"]
    if preset == "classic":  # else its episodes, and with them its arrays, grow for hours
        words += ["--learning-rate", "1e-12"]
    with Driver(tmp_path, *words) as driver:
        samples = growth.sample(driver, (WARM_UP + MEASURED) // 2, 2.0)
        assert driver.is_running(), driver.said()
        driver.send(signal.SIGINT)
        assert driver.wait() == 130
    settled = [each for each in samples if each.seconds >= WARM_UP]
    print(f"{preset}: MB/h and its interval {memory_trend(settled)}; {settled[0]}; {settled[-1]}")
    assert find_growth(settled) == []
    leaking = [
        dataclasses.replace(each, megabytes=each.megabytes + 10.0 * each.seconds / 3600)
        for each in settled
    ]
    assert find_growth(leaking) != []
