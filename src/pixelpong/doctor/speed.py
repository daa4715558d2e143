"""How fast it is here, and how long it takes to win: ``pixelpong bench predict``, made short.

It is run as the command that it is, so that it can be ended when the time is over: on a machine
that others use it may take minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from pixelpong.doctor import pages
from pixelpong.doctor.records import FAILURE, NOTE, OK, Case, Check, trouble
from pixelpong.report.progress import duration

SECONDS = 2.0
"""Of measuring."""

MIN_SECONDS = 4.0
"""With less left, it is not begun: it starts three processes first."""

SLOW_SHARE = 0.6
"""Of bare ALE's rate. Recorded is 0.81, in benchmarks/throughput.json."""


def check_speed(case: Case) -> Iterator[Check]:
    """Steps a second of bare ALE and of fast training, and the time to win."""
    left = case.seconds_left()
    report = _predict(case, left) if left >= MIN_SECONDS else None
    if report is None:
        got = "others at work, or kernels that were to be compiled"
        advice = "give more --seconds, or try `pixelpong bench predict`, which takes its time"
        yield trouble(NOTE, "speed", "time left to measure the speed", got, advice)
        return
    if "problem" in report:
        advice = "see it with: pixelpong bench predict --debug"
        yield trouble(FAILURE, "speed", "to measure the speed", report["problem"], advice)
        return
    yield _judge(report)
    if report["range"]:
        low, high = map(duration, report["range"])
        text = (
            f"about {duration(report['seconds'])} ({low} to {high} at the steps of the recorded "
            "seeds), where it wins; `pixelpong bench predict` measures for longer"
        )
        yield Check("time_to_win", OK, text, {name: report[name] for name in ("seconds", "range")})


def _judge(report: dict[str, Any]) -> Check:
    rates = report["steps_per_second"]
    share = rates["fast"] / rates["ale"]
    facts = {name: report[name] for name in ("workers", "steps_per_second")} | {"share": share}
    workers = f"{report['workers']} worker" + "s" * (report["workers"] > 1)
    pace = (
        f"{rates['fast']:,.0f} steps/s of fast training with {workers}, "
        f"{rates['ale']:,.0f} of bare ALE"
    )
    if share >= SLOW_SHARE:
        return Check("speed", OK, pace, facts)
    wanted = f"fast training at {SLOW_SHARE:.0%} of bare ALE's speed or more"
    advice = "are others using the cores? `pixelpong bench throughput` measures for longer"
    got = f"{share:.0%}: {pace}"
    return trouble(NOTE, "speed", wanted, got, advice, facts=facts, page=pages.SPEED)


def _predict(case: Case, seconds: float) -> dict[str, Any] | None:
    """The forecast, or why there is a ``problem``; None where the time was over."""
    words = ["bench", "predict", "--json", "--seconds", str(SECONDS)]
    if case.config.engine.workers:
        words += ["--workers", str(case.config.engine.workers)]
    # Of its own, so that one that is killed leaves nothing behind.
    with tempfile.TemporaryDirectory(prefix="pixelpong-doctor-") as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pixelpong", *words],
                capture_output=True, text=True, timeout=seconds,
                env={**os.environ, "TMPDIR": folder},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return {"problem": lines[-1] if lines else f"exit code {done.returncode}"}
    return report
