"""The tournaments that are shown: looked up by id, and only read.

They are the folders in ``tournaments``, beside the folder of runs. One without a file yet, or with
a damaged one, is listed with its problem.

Covered: ids, lists, one tournament, the reel of a pair's best rally.
Not covered: their file (`pixelpong.tournament.report`).
"""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path
from typing import Any

from pixelpong.errors import RunError, expected
from pixelpong.faces.page.reel import Reel, make_film
from pixelpong.faces.page.view import id_of
from pixelpong.tournament.games import watch_rally
from pixelpong.tournament.report import FILE, FOLDER, read_report

MAX_TOURNAMENTS = 500
"""The most tournaments listed, the newest ones."""

Stamp = tuple[int, ...]


class Tournaments:
    """All tournaments beside a folder of runs, which need not exist."""

    def __init__(self, runs_dir: Path) -> None:
        self._folder = runs_dir.resolve().parent / FOLDER
        self._read = functools.lru_cache(16)(lambda path, stamp: read_report(path))
        self._glance = functools.lru_cache(MAX_TOURNAMENTS)(_glance)

    def list(self) -> list[dict[str, Any]]:
        """The tournaments in a few words, the newest first."""
        stamps = {path: read_stamp(path) for path in self._paths().values()}
        newest = sorted(stamps, key=lambda path: stamps[path][-1], reverse=True)
        return [self._glance(path, stamps[path]) for path in newest[:MAX_TOURNAMENTS]]

    def find(self, tournament_id: str) -> tuple[Path, Stamp]:
        """The folder of the tournament with this id, and what changes with its file.

        Raises:
            RunError: there is none.
        """
        path = self._paths().get(tournament_id)
        if path is None:
            advice = "reload the page"
            raise RunError(expected("a tournament of the list", "another id", advice))
        return path, read_stamp(path)

    def describe(self, tournament_id: str) -> dict[str, Any]:
        """One tournament: its ladder, who plays how well against whom, circles, rallies.

        Raises:
            RunError: there is none, or it is damaged.
        """
        path, stamp = self.find(tournament_id)
        report = self._read(path, stamp)
        pairs = [
            {"players": pair.players, "rally": _describe_rally(pair.best_rally)}
            for pair in report.pairs
        ]
        told = dataclasses.asdict(dataclasses.replace(report, pairs=()))
        return {**told, "pairs": pairs, **_name(path, stamp)}

    def _paths(self) -> dict[str, Path]:
        try:
            found = [Path(entry.path) for entry in os.scandir(self._folder) if entry.is_dir()]
        except OSError:  # it does not exist yet, or we may not read it
            found = []
        return {id_of(path): path for path in found}


def make_rally_reel(path: Path, number: int) -> Reel:
    """The reel of the best rally of a pair, by its place among the pairs.

    Raises:
        RunError: there is none, or it is damaged.
        EmulatorError: the game cannot be played here.
    """
    return make_film(watch_rally(played := read_report(path).find_rally(number)), played.players)


def read_stamp(path: Path) -> Stamp:
    """Changes with a tournament's file; the last is the time in nanoseconds, of the folder if there
    is no file.
    """
    for place in (path / FILE, path):
        try:
            file = place.stat()
        except OSError:
            continue
        return file.st_ino, file.st_size, file.st_mtime_ns
    return (0,)


def _glance(path: Path, stamp: Stamp) -> dict[str, Any]:
    try:
        report = read_report(path)
    except RunError as error:
        return {**_name(path, stamp), "problem": str(error)}
    names = [player.name for player in report.players]
    return {**_name(path, stamp), "players": names, "games_played": report.games_played}


def _name(path: Path, stamp: Stamp) -> dict[str, Any]:
    return {"id": id_of(path), "name": path.name, "modified": stamp[-1] / 1e9}


def _describe_rally(played: Any) -> dict[str, Any] | None:
    if played is None or played.rally is None:
        return None
    begin, end = played.rally
    return {"game": played.number + 1, "sides": played.players, "frames": end - begin + 1}
