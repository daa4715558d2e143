"""How fast it is here, and how long it takes to win, by the model of ``bench predict``."""

from __future__ import annotations

from collections.abc import Iterator

from pixelpong.bench.solve import predict
from pixelpong.doctor import pages
from pixelpong.doctor.records import NOTE, OK, Case, Check, trouble
from pixelpong.report.progress import duration

SECONDS = 3.0
"""Of measuring, when there is time."""

START_SECONDS = 3.0
"""That workers take to start, about."""

MIN_SECONDS = 1.0

SLOW_SHARE = 0.6
"""Of the bare emulator's rate. Recorded is 0.81, in benchmarks/throughput.json."""

PAGE = pages.SPEED


def check_speed(case: Case) -> Iterator[Check]:
    """Steps a second of the bare emulator and of fast training, and the time to win."""
    seconds = min(SECONDS, case.seconds_left() - START_SECONDS)
    if seconds < MIN_SECONDS:
        advice = "run it again now that the kernels are compiled, or `pixelpong bench predict`"
        yield trouble(NOTE, "speed", "time to measure the speed", "none left", advice)
        return
    report = predict(seconds, case.config.engine.workers)
    rates = report["steps_per_second"]
    share = rates["fast"] / rates["emulator"]
    facts = {name: report[name] for name in ("workers", "steps_per_second", "seconds", "range")}
    workers = f"{report['workers']} worker" + "s" * (report["workers"] > 1)
    pace = (
        f"{rates['fast']:,.0f} steps/s of fast training with {workers}, "
        f"{rates['emulator']:,.0f} of the bare emulator"
    )
    if share < SLOW_SHARE:
        wanted = f"fast training at {SLOW_SHARE:.0%} of the bare emulator's speed or more"
        advice = "are others using the cores? `pixelpong bench throughput` measures for longer"
        yield trouble(NOTE, "speed", wanted, f"{share:.0%}: {pace}", advice, page=PAGE, facts=facts)
    else:
        yield Check("speed", OK, pace, facts)
    if report["range"]:
        low, high = map(duration, report["range"])
        text = (
            f"about {duration(report['seconds'])} ({low} to {high} at the steps of the recorded "
            "seeds), where it wins; `pixelpong bench predict` measures for longer"
        )
        yield Check("time_to_win", OK, text, {name: report[name] for name in ("seconds", "range")})
