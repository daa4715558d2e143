"""Long runs hold no more at the end than at the beginning: memory, descriptors, threads.

Memory is the sum over all processes of Pss_Anon and Pss_Shmem in ``/proc/PID/smaps_rollup``: what
they have written, each shared page counted once. The check is tried on curves that are made up, and
on half an hour of training (`make soak ARGS="-k long_runs -s"`).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from drivers import Driver
from promises import promise
from waiting import pause

pytestmark = promise("no growth")

WARM_UP, MEASURED = 300, 1500
"""Seconds of a long training: until caches and pools have their size, and those that count."""

LIMIT = 1.0
"""Megabytes an hour that all processes together may grow."""

RISE = 1.1
"""How many times what they held at the beginning they may hold at the end."""


class Sample(NamedTuple):
    """What all processes of a tree hold, so many seconds after the sampling began."""

    seconds: float
    megabytes: float
    descriptors: int
    threads: int
    processes: int


COUNTED = Sample._fields[2:]


def take_sample(pids: Iterable[int], seconds: float) -> Sample:
    """What processes hold now; one that ends meanwhile counts for nothing."""
    megabytes, descriptors, threads, processes = 0.0, 0, 0, 0
    for pid in pids:
        folder = Path(f"/proc/{pid}")
        try:
            rollup = (folder / "smaps_rollup").read_text()
            opened, running = len(os.listdir(folder / "fd")), len(os.listdir(folder / "task"))
        except OSError:
            continue
        fields = (line.split() for line in rollup.splitlines())
        kilobytes = {each[0]: int(each[1]) for each in fields if each[-1] == "kB"}
        megabytes += 1024 * (kilobytes["Pss_Anon:"] + kilobytes["Pss_Shmem:"]) / 1e6
        descriptors += opened
        threads += running
        processes += 1
    return Sample(seconds, megabytes, descriptors, threads, processes)


def find_growth(samples: Sequence[Sample]) -> list[str]:
    """What grows in the samples of a time after the start-up.

    Memory does if its median grows from each eighth to the next, but for one change, by more than
    `LIMIT`: so neither noise nor a step of a heap is a leak, nor do they hide one. Of descriptors,
    threads and processes the least is compared: what is open for a moment is no leak.
    """
    eighths = np.array_split(np.array(samples), 8)
    seconds, megabytes = np.transpose([np.median(each, axis=0)[:2] for each in eighths])
    slopes = np.sort(3600 * np.diff(megabytes) / np.diff(seconds))
    print(f"MB/h: {slopes.round(2)}; from {samples[0]} to {samples[-1]}")
    found = []
    if slopes[1] > LIMIT or megabytes[-1] > RISE * megabytes[0]:
        found.append("megabytes")
    first, last = eighths[0].min(axis=0), eighths[-1].min(axis=0)
    return found + [
        name for name, at in zip(COUNTED, (2, 3, 4), strict=True) if last[at] > first[at]
    ]


def with_more(samples: Sequence[Sample], name: str, more) -> list[Sample]:
    """The samples, with ``more(seconds)`` of something on top."""
    return [each._replace(**{name: getattr(each, name) + more(each.seconds)}) for each in samples]


def leak(slope: float):
    """So many MB/h."""
    return lambda seconds: slope * seconds / 3600


# --- the check itself -------------------------------------------------------------------------


@pytest.fixture(params=range(5))
def noise(request) -> list[Sample]:
    """Noise that wanders: as much as in a training that was sampled."""
    samples, wander = [], 0.0
    for number, step in enumerate(np.random.default_rng(request.param).normal(0, 0.1, 750)):
        wander = 0.5 * wander + step
        samples.append(Sample(2.0 * number, 300 + wander, 40, 9, 4))
    return samples


@pytest.mark.parametrize(
    "odd",
    [
        lambda seconds: 0,
        lambda seconds: seconds % 7 + (40 if 200 < seconds < 260 else 0),
        lambda seconds: -30 * (seconds > 600),
        lambda seconds: 15 * (seconds > 600),
    ],
    ids=["noise", "saw teeth and a busy minute", "a step down", "a step up"],
)
def test_peaks_and_a_single_step_neither_hide_a_leak_nor_look_like_one(noise, odd):
    samples = with_more(noise, "megabytes", odd)
    assert find_growth(samples) == []
    for slope in (5, 5000):
        assert find_growth(with_more(samples, "megabytes", leak(slope))) == ["megabytes"]
    assert find_growth(with_more(samples, "megabytes", lambda seconds: 25 * (seconds // 300)))


@pytest.mark.parametrize("name", COUNTED)
def test_one_descriptor_more_is_found_and_one_for_a_moment_is_ignored(noise, name):
    assert find_growth(with_more(noise, name, lambda seconds: seconds % 6)) == []
    assert find_growth(with_more(noise, name, lambda seconds: seconds // 700)) == [name]


def test_what_a_process_holds_is_seen():
    """50 MB, 50 descriptors and 50 threads more."""
    before, goes_on = take_sample([os.getpid()], 0.0), threading.Event()
    with contextlib.ExitStack() as held:
        held.callback(goes_on.set)
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        held.enter_context(mmap.mmap(-1, 50_000_000, private)).write(bytes(50_000_000))
        for _ in range(50):
            held.enter_context(open(os.devnull))
            threading.Thread(target=goes_on.wait).start()
        after = take_sample([os.getpid()], 0.0)
    for name in ("megabytes", "descriptors", "threads"):
        assert 40 < getattr(after, name) - getattr(before, name) < 70, name


# --- half an hour of training -----------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("preset", ["fast", "classic"])
def test_long_runs_of_training_hold_no_more_at_the_end(preset, tmp_path):
    """And a leak of 10 MB an hour would have been seen."""
    words = ["train", "--preset", preset, "--updates", "1000000", "--run", "run"]
    words += ["--until-return", "none"]  # else it wins, and ends
    if preset == "classic":  # else its episodes, and with them its arrays, grow for hours
        words += ["--learning-rate", "1e-12"]
    samples: list[Sample] = []
    with Driver(tmp_path, *words) as driver:
        pause(WARM_UP)
        begin = time.monotonic()
        while not samples or samples[-1].seconds < MEASURED:
            samples.append(take_sample(driver.processes(), time.monotonic() - begin))
            pause(2)
        assert driver.is_running(), driver.said()
        driver.send(signal.SIGINT)
        assert driver.wait() == 130
    assert find_growth(samples) == []
    assert find_growth(with_more(samples, "megabytes", leak(10))) == ["megabytes"]
