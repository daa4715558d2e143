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

BLOCKS = 24
"""Points that the slope is drawn through."""

Z = 2.576
"""Of the normal distribution, for an interval of 99 %."""

LIMIT = 1.0
"""Megabytes an hour that all processes together may grow, beyond noise."""

RISE = 0.1
"""Share of its beginning by which the memory may be higher at the end."""

STEP = 6.0
"""A change from one block to the next that is so many times as large as is usual is a step."""

COUNTED = ("descriptors", "threads", "processes")


@dataclass(frozen=True)
class Sample:
    """What all processes of a tree hold, so many seconds after the sampling began."""

    seconds: float
    megabytes: float
    descriptors: int
    threads: int
    processes: int


@dataclass(frozen=True)
class Trend:
    """A slope in units an hour, and the interval in which it is."""

    slope: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.slope:+.2f} MB/h [{self.low:+.2f}, {self.high:+.2f}]"


def fit_trend(seconds: Sequence[float], values: Sequence[float]) -> Trend:
    """The slope of Theil and Sen through the medians of `BLOCKS` blocks, with Sen's interval.

    >>> str(fit_trend(range(240), [each / 3600 for each in range(240)]))
    '+1.00 MB/h [+1.00, +1.00]'
    """
    hours, points = medians(seconds) / 3600, without_steps(medians(values))
    pairs = itertools.combinations(range(len(points)), 2)
    slopes = np.sort([(points[j] - points[i]) / (hours[j] - hours[i]) for i, j in pairs])
    n = len(points)
    half_width = Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2
    middle = len(slopes) / 2
    low = slopes[max(round(middle - half_width), 0)]
    high = slopes[min(round(middle + half_width), len(slopes) - 1)]
    return Trend(float(np.median(slopes)), float(low), float(high))


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
    trend, points = memory_trend(samples), medians([each.megabytes for each in samples])
    found = [f"memory grows by {trend}, more than {LIMIT:g}"] if trend.low > LIMIT else []
    if points[-1] > (1 + RISE) * points[0]:
        found.append(f"memory grows from {points[0]:.1f} to {points[-1]:.1f} MB")
    for name in COUNTED:
        first, *_, last = np.array_split([getattr(each, name) for each in samples], 4)
        if min(last) > min(first):
            found.append(f"{name} grow from {min(first)} to {min(last)}")
    return found


def memory_trend(samples: Sequence[Sample]) -> Trend:
    """How the memory of all processes moves."""
    return fit_trend([each.seconds for each in samples], [each.megabytes for each in samples])


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
