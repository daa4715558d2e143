"""``pixelpong doctor``: has the machine and a run examined, and reports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pixelpong.faces.cli.reporting import report_on

if TYPE_CHECKING:
    from pixelpong.faces.cli.options import Request


def doctor(request: Request) -> int:
    """``pixelpong doctor [RUN]``"""
    from pixelpong.faces.doctor import describe, examine, show, summarize

    options = request.options
    checks = examine(options.run)
    if not options.json:
        checks = show(checks, sys.stdout)
    report = summarize(checks, options.run)
    report_on(report, options.json, describe)
    return 0 if report["is_sound"] else 1
