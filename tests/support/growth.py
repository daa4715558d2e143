"""Whether a tree of processes holds ever more: what is sampled, and how it is judged.

Memory is the sum over all processes of Pss_Anon and Pss_Shmem in ``/proc/PID/smaps_rollup``: what
they have written, each shared page counted once. RSS would count shared pages once for each
process; the whole of PSS moves when a process that is not ours maps the same library.

The slope is Theil and Sen's, the median of the slopes between all pairs of points, each point the
median of a block of samples, with Sen's interval. Steps are taken out first: a heap that once grew
or shrank by some pages is no leak, nor may it hide one. All steps together may not lift the memory
by more than `RISE`. Descriptors, threads and processes are compared by the least of the first and
of the last quarter, because what is open for a moment is no leak.

Sources: Sen (1968), Journal of the American Statistical Association 63, 1379-1389; Linux,
Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from drivers import Driver

BLOCKS = 24  # points that the slope is drawn through
Z = 2.576  # of the normal distribution, for an interval of 99 %
LIMIT = 1.0  # megabytes an hour that all processes together may grow, beyond noise
RISE = 0.1  # share of its beginning by which the memory may be higher at the end
STEP = 6.0  # a change from one block to the next that is so many times as usual is a step
COUNTED = ("descriptors", "threads", "processes")


@dataclass(frozen=True)
class Sample:
    """What all processes of a tree hold, so many seconds after the sampling began."""

    seconds: float
    megabytes: float
    descriptors: int
    threads: int
    processes: int


def memory_trend(samples: Sequence[Sample]) -> tuple[float, float, float]:
    """The slope of the memory of all processes in MB/h, and the ends of its interval."""
    hours = medians([each.seconds for each in samples]) / 3600
    points = without_steps(medians([each.megabytes for each in samples]))
    pairs = itertools.combinations(range(BLOCKS), 2)
    slopes = np.sort([(points[j] - points[i]) / (hours[j] - hours[i]) for i, j in pairs])
    half_width = Z * math.sqrt(BLOCKS * (BLOCKS - 1) * (2 * BLOCKS + 5) / 18) / 2
    low, high = (round(len(slopes) / 2 + side * half_width) for side in (-1, 1))
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def without_steps(points: np.ndarray) -> np.ndarray:
    """The curve with its steps taken out; what goes up or down as usual stays.

    >>> without_steps(np.array([1.0, 2.0, 3.0, 10.0, 11.0, 12.0])).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    changes = np.diff(points)
    usual = np.median(changes)
    spread = 1.4826 * np.median(np.abs(changes - usual))  # of a normal distribution, its sigma
    kept = np.where(np.abs(changes - usual) > STEP * spread, usual, changes)
    return points[0] + np.concatenate([[0.0], np.cumsum(kept)])


def find_growth(samples: Sequence[Sample]) -> list[str]:
    """What grows in the samples of a time after the start-up, a line each."""
    slope, low, high = memory_trend(samples)
    points, found = medians([each.megabytes for each in samples]), []
    if low > LIMIT:
        found.append(f"memory grows by {slope:.2f} MB/h [{low:.2f}, {high:.2f}]")
    if points[-1] > (1 + RISE) * points[0]:
        found.append(f"memory grows from {points[0]:.1f} to {points[-1]:.1f} MB")
    for name in COUNTED:
        first, *_, last = np.array_split([getattr(each, name) for each in samples], 4)
        if min(last) > min(first):
            found.append(f"{name} grow from {min(first)} to {min(last)}")
    return found


def medians(values: Sequence[float]) -> np.ndarray:
    """The median of each of `BLOCKS` blocks."""
    return np.array([np.median(block) for block in np.array_split(values, BLOCKS)])


# --- sampling ---------------------------------------------------------------------------------


def sample(driver: Driver, count: int, every: float) -> list[Sample]:
    """Sample a command and all that it has started, so many times, so many seconds apart."""
    begin, samples = time.monotonic(), []
    for number in range(count):
        time.sleep(max(begin + number * every - time.monotonic(), 0))
        samples.append(take_sample(driver.processes(), time.monotonic() - begin))
    return samples


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
