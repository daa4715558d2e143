"""How long until it wins: whole trainings from outside, seed after seed, and the forecast.

The seeds are a sweep, one after the other, each with all cores in a process of its own. Its time to
win is the wall time from the start of that process to the verdict, evaluations in it.
Just before and after it bare ALE is measured on the same cores, so that figures of different
machines compare: *ALE-bound seconds* are steps ÷ that rate.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pixelpong.bench.record import recorded_steps
from pixelpong.bench.throughput import Measure, measure_apart, measure_training, play_bare
from pixelpong.config import OPTIONS
from pixelpong.config.presets import load_preset
from pixelpong.engines import never
from pixelpong.engines.jobs import Begun, Ended, Failed, JobEvents
from pixelpong.engines.threads import ThreadEngine
from pixelpong.machine import collect_versions, count_cores, describe_commit, describe_machine
from pixelpong.play.worker import make_worker
from pixelpong.run.directory import RunDirectory
from pixelpong.session import Session
from pixelpong.sweep.sweep import Sweep, median_of

Report = dict[str, Any]


def solve(
    seeds: Sequence[int], workers: int | None, options: Mapping[str, Any]
) -> Iterator[Report]:
    """Train once with each seed until it wins or its budget is spent.

    Args:
        seeds: one training each, one after the other.
        workers: threads; one a core if not given.
        options: of the training, beside those of the preset fast.

    Yields:
        After each seed the report on all seeds so far.

    Raises:
        PixelpongError: a training failed.
    """
    num_workers = workers or count_cores()
    config = load_preset("fast").updated(options, "bench")
    configs = [config.updated({"seed": seed}, "bench") for seed in seeds]
    given = [word for name, value in options.items() for word in (OPTIONS[name].flag, str(value))]
    results: list[Report] = []
    commit = describe_commit()  # now: the report itself may be written into the work tree
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pixelpong-bench-"))
        sweep = stack.enter_context(Sweep.create(Path(folder), configs))
        measure = stack.enter_context(measure_apart(play_bare, num_workers))
        measure(0.1)  # starts the processes
        trainings = sweep.carry_out(never, engine="serial", threads=num_workers)
        for result in _measured(stack.enter_context(contextlib.closing(trainings)), measure):
            results.append({"seed": seeds[len(results)], **result})
            yield {
                "command": ["train", "--preset", "fast", *given],
                "workers": num_workers,
                "seeds": results,
                "summary": summarize(results),
                "commit": commit,
                "versions": collect_versions(),
                "machine": describe_machine() | {"cores": count_cores()},
            }


def _measured(events: JobEvents, measure: Measure) -> Iterator[Report]:
    """The result of each training, with the rate of bare ALE just before and after it."""
    for event in events:
        match event:
            case Begun():
                before, begin = measure(3.0), time.perf_counter()
            case Failed(_, error):
                raise error
            case Ended(_, answer):
                seconds = time.perf_counter() - begin
                rate = statistics.mean([before, measure(3.0)])
                yield dataclasses.asdict(answer.result) | {
                    "whole_command_seconds": seconds,
                    "ale_steps_per_second": rate,
                    "ale_bound_seconds": answer.result.steps / rate,
                }


def summarize(results: Sequence[Report]) -> Report:
    """Medians over the seeds that won, and how many did within twice the median.

    Args:
        results: one a seed.
    """
    won = [result for result in results if result["is_won"]]
    summary: Report = {"seeds": len(results), "won": len(won)}
    if not won:
        return summary
    for name in ("seconds", "steps", "ale_bound_seconds"):
        summary[name] = median_of([float(result[name]) for result in won])
    limit = 2 * summary["seconds"]["median"]
    summary["within_twice_the_median"] = sum(result["seconds"] <= limit for result in won)
    summary["peak_memory_mb"] = max(result["peak_memory_mb"] for result in results)
    return summary


def predict(seconds: float, workers: int | None) -> Report:
    """The expected time to win on this machine, from its speed and the recorded steps to win.

    Args:
        seconds: how long to measure, about.
        workers: threads; one a core if not given.
    """
    num_workers = workers or count_cores()
    config = load_preset("fast").updated({"workers": num_workers}, "bench")
    with contextlib.ExitStack() as stack:
        bare = stack.enter_context(measure_apart(play_bare, num_workers))
        engine = stack.enter_context(
            contextlib.closing(ThreadEngine(functools.partial(make_worker, config), num_workers))
        )
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pixelpong-bench-"))
        session = Session(RunDirectory.create(Path(folder) / "run", config), time.monotonic())
        measure_training(engine, session, 0.5)  # starts the workers, compiles what is not yet
        bare(0.1)  # starts the processes
        limit = bare(seconds / 6)
        rates = [measure_training(engine, session, seconds / 4) for _ in range(3)]
    rate = statistics.median(rates)
    steps = recorded_steps()
    times = [count / rate for count in steps]
    return {
        "workers": num_workers,
        "steps_per_second": {"ale": limit, "fast": rate},
        "recorded_steps": steps,
        "seconds": statistics.median(times) if times else None,
        "range": [min(times), max(times)] if times else None,
        "rates": [min(rates), max(rates)],
        "machine": describe_machine(),
    }
