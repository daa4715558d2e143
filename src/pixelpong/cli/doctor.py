"""``pixelpong doctor``: gathers what is to be examined, has it examined, and reports."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pixelpong.cli.reporting import report_on, require_between
from pixelpong.errors import PixelpongError
from pixelpong.options import COMMAND_LINE
from pixelpong.presets import load_preset

if TYPE_CHECKING:
    from pixelpong.cli.options import Request
    from pixelpong.config import Config


def doctor(request: Request) -> int:
    """``pixelpong doctor [RUN]``"""
    from pixelpong.doctor import examine, summarize
    from pixelpong.doctor.records import Case
    from pixelpong.doctor.text import show, show_end

    options, begin = request.options, time.monotonic()
    require_between("--seconds", options.seconds, 1, 3600)
    case = Case(
        config=_config_of(options.run).updated(request.given, COMMAND_LINE),
        run=options.run,
        is_quick=options.quick,
        is_cluster_asked="ray_address" in request.given,
        seconds_left=lambda: options.seconds - (time.monotonic() - begin),
    )
    outcomes = examine(case)
    if not options.json:
        outcomes = show(outcomes, sys.stdout)
    report = summarize(outcomes, case, lambda: time.monotonic() - begin)
    if options.json:
        report_on(report, True, str)
    else:
        show_end(report, sys.stdout)
    return 0 if report["is_sound"] else 1


def _config_of(run: Path | None) -> Config:
    """The run's; where that cannot be read, which is said later, the default."""
    try:
        if run is not None:
            from pixelpong.run import Run

            return Run.open(run, lambda _: None).config
    except (PixelpongError, OSError, ImportError):
        pass
    return load_preset("fast")
