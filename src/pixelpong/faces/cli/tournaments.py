"""``pixelpong tournament``: who plays how well against whom."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from pixelpong.errors import Interrupted, RunError, refusing
from pixelpong.faces.cli.reporting import report_on
from pixelpong.interrupts import stop_on_signals
from pixelpong.machine import count_cores

EXIT_INTERRUPTED = 130


def tournament(options: Any) -> int:
    """``pixelpong tournament PLAYER…``"""
    from pixelpong.tournament.games import Rules
    from pixelpong.tournament.players import find_players
    from pixelpong.tournament.tournament import carry_out, summarize

    rules = Rules(options.seed, not options.sampled, options.points)
    workers = options.given.get("workers") or count_cores()
    played: list[Any] = []
    with stop_on_signals() as should_stop:
        players = find_players(options.players)
        folder = _make_folder(options.out)
        total = options.games * len(players) * (len(players) - 1)
        try:
            for each in carry_out(players, options.games, rules, workers, should_stop):
                played.append(each)
                _count(len(played), total)
        finally:  # also after an error: what has been played is kept
            _count(total, total)
            if played:
                _finish(summarize(players, played, options.games, rules), folder, options.json)
            else:
                _remove_empty(folder)
    if not played:
        raise Interrupted
    return EXIT_INTERRUPTED if len(played) < total else 0


def _make_folder(out: Path | None) -> Path:
    """Make the folder before the games, which may take hours.

    Args:
        out: where; None for the next free ``tournaments/tournament-NNN``.

    Raises:
        RunError: it cannot be made, or holds a tournament.
    """
    from pixelpong.run.directory import largest_number
    from pixelpong.tournament.report import FILE, FOLDER

    with refusing(f"a folder {out or FOLDER} for --out", "give another one", RunError):
        (out or FOLDER).mkdir(parents=True, exist_ok=True)
        if out is not None:
            if (out / FILE).exists():
                raise ValueError("one with a tournament")
            return out
        for number in itertools.count(largest_number(FOLDER, "tournament") + 1):
            with contextlib.suppress(FileExistsError):
                folder = FOLDER / f"tournament-{number:03d}"
                folder.mkdir()
                break
        return folder


def _finish(report: dict[str, Any], folder: Path, is_json: bool) -> None:
    """Save what came of a tournament and print it, even if it cannot be saved."""
    from pixelpong.faces.text import describe_tournament
    from pixelpong.tournament.report import FILE

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    try:
        _save(report, folder)
    finally:
        _remove_empty(folder)
        told = report | {"folder": str(folder) if (folder / FILE).is_file() else None}
        report_on(told, is_json, lambda it: describe_tournament(it, width))


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is not empty
        folder.rmdir()


def _save(report: dict[str, Any], folder: Path) -> None:
    from pixelpong.run.files import write_whole
    from pixelpong.tournament.report import FILE

    write_whole(folder / FILE, json.dumps(report, indent=1).encode() + b"\n")


def _count(number: int, total: int) -> None:
    """Show a counter on a terminal, which disappears at the end."""
    if sys.stderr.isatty():
        text = "" if number == total else f"{number:,} of {total:,} games"
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
