"""``pixelpong runs``: the list, or one run and whether its checkpoints are sound."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from pixelpong.faces.cli.reporting import report_on


def show(options: Any) -> int:
    """``pixelpong runs [RUN | DIR…]``"""
    from pixelpong.faces import runs
    from pixelpong.run.directory import RUNS_FOLDER
    from pixelpong.run.names import find_run, list_runs
    from pixelpong.run.record import Record

    words = options.runs or (str(RUNS_FOLDER),)
    folders = {word for word in words if list_runs(Path(word)) or word == str(RUNS_FOLDER)}
    if len(words) == 1 and not folders:
        report = runs.report_run(find_run(words[0]))
        report_on(report, options.json, runs.describe_run)
        return 1 if report["damaged"] else 0
    paths = [
        path
        for word in dict.fromkeys(words)
        for path in (list_runs(Path(word)) if word in folders else [find_run(word)])
    ]
    found = runs.sort_records(map(Record.read, paths), options.sort)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    report = {"runs": [each.to_dict() for each in found]}
    report_on(report, options.json, lambda _: runs.describe_list(found, width))
    return 0
