"""``pixelpong doctor``: gathers what is to be examined, has it examined, and reports."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from pixelpong.cli.reporting import report_on
from pixelpong.options import COMMAND_LINE
from pixelpong.presets import load_preset

if TYPE_CHECKING:
    from pixelpong.cli.options import Request


def doctor(request: Request) -> int:
    """``pixelpong doctor [RUN]``"""
    from pixelpong.doctor import SECONDS, examine, summarize
    from pixelpong.doctor.records import Case
    from pixelpong.doctor.text import show, show_end
    from pixelpong.run import RUNS_FOLDER

    options, begin = request.options, time.monotonic()
    config = load_preset("fast").updated(request.given, COMMAND_LINE)
    case = Case(
        config=config,
        run=options.run,
        runs_folder=RUNS_FOLDER,
        is_quick=options.quick,
        is_cluster_asked="ray_address" in request.given,
        seconds_left=lambda: SECONDS - (time.monotonic() - begin),
    )
    outcomes = examine(case)
    if not options.json:
        outcomes = show(outcomes, sys.stdout)
    report = summarize(outcomes, case, 0.0) | {"seconds": round(time.monotonic() - begin, 2)}
    if options.json:
        report_on(report, True, str)
    else:
        show_end(report, sys.stdout)
    return 0 if report["is_sound"] else 1
