"""The commands about the runs on this disk: list, remove, prune, note."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, PixelpongError, expected
from pixelpong.faces.cli.reporting import report_on, tell


def list_all(options: Any) -> int:
    """``pixelpong runs``"""
    from pixelpong.faces import runs

    found = runs.list_summaries(
        options.folders or (Path("runs"),),
        sort=options.sort,
        states=options.state or "",
        text=options.filter or "",
    )
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80

    def describe(_: Any) -> str:
        if not found and (options.state or options.filter):
            return "no such runs here; see all: pixelpong runs"
        return runs.describe_list(found, width)

    report_on(runs.report_list(found), options.json, describe)
    return 0


def remove(options: Any) -> int:
    """``pixelpong runs rm RUN…``"""
    from pixelpong.faces import runs
    from pixelpong.run.names import find_run
    from pixelpong.run.summary import measure

    paths = list(dict.fromkeys(find_run(word) for word in options.runs))
    for path in paths:
        runs.check_removable(path)
    sizes = [f"{path} ({runs.describe_bytes(measure(path))})" for path in paths]
    if not options.yes and not _confirm(f"Remove {', '.join(sizes)} for ever?"):
        tell("nothing is removed")
        return 1
    removed = [{"run": str(path), "bytes": runs.remove(path)} for path in paths]
    for folder in {path.parent for path in paths}:
        runs.sweep(folder)

    def describe(_: Any) -> str:
        return "\n".join(f"removed {size}" for size in sizes)

    report_on({"removed": removed}, options.json, describe)
    return 0


def _confirm(question: str) -> bool:
    """Whether a person at the terminal says yes.

    Raises:
        ConfigError: there is nobody to ask.
    """
    if not (sys.stdin and sys.stdin.isatty()):
        raise ConfigError(expected("--yes, for nobody can be asked", "none", "give --yes"))
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def prune(options: Any) -> int:
    """``pixelpong runs prune [RUN…]``"""
    from pixelpong.faces import runs
    from pixelpong.run.names import find_run, list_runs

    paths = [find_run(word) for word in options.runs or ()] or list_runs(Path("runs"))
    report: list[dict[str, Any]] = []
    for path in paths:
        try:
            report.append(runs.prune(path, options.keep))
        except PixelpongError as error:
            if len(paths) == 1:
                raise
            report.append({"run": str(path), "problem": str(error)})
    report_on({"runs": report}, options.json, runs.describe_pruned)
    return int(any("problem" in each for each in report))


def note(options: Any) -> int:
    """``pixelpong runs note RUN TEXT``"""
    from pixelpong.faces import runs
    from pixelpong.run.names import find_run
    from pixelpong.run.summary import read_note

    path = find_run(options.run)
    runs.write_note(path, options.text)
    report = {"run": str(path), "note": read_note(path)}
    report_on(report, options.json, lambda _: f"{path}: {report['note'] or 'no note'}")
    return 0
