"""A run as one HTML file that opens from disk, with nothing else there and no network.

``pixelpong export RUN --html FILE``. Curves, replays that play, health, evaluations, configuration
and hashes. The page's own viewer and curves are joined into it; in plotly's place stands a drawing
of our own (``static/drawing.js``), some 8 kB where plotly has 4.8 MB.

Covered: what goes in. Not covered: how it is put together (`pixelpong.faces.page.offline`).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pixelpong.agent.choice import (
    ChosenReplay,
    choose_replay,
    load_agent,
    open_replay,
    read_replays,
)
from pixelpong.agent.health import DeadUnits
from pixelpong.errors import CheckpointError, ConfigError, PixelpongError, RunError, expected
from pixelpong.faces.page.jobs import count_dead_units
from pixelpong.faces.page.library import View
from pixelpong.faces.page.offline import assemble
from pixelpong.faces.page.reel import Reel, make_reel
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole

MAX_ROWS = 1000
"""Lines of metrics that a page holds; longer runs are thinned out."""

REEL_STEPS = 12_000
"""A replay is cut off here; an episode has some 1,500 steps, and 300 bytes a step."""

_HASHED = ("config.json", "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl", "replays.jsonl")

Report = dict[str, Any]


def write_page(run: RunDirectory, path: Path, *, max_replays: int) -> Report:
    """Write the page of a run, whole or not at all.

    Args:
        run: the run; one that is being trained is shown as it is now.
        path: the file; one that is there is replaced.
        max_replays: that it holds at most. The first is the greedy episode of the best agent, the
            others are of the training, spread over it.

    Returns:
        ``file``, ``bytes``, ``run``, ``update``, titles of the ``replays``, and what was
        ``left_out`` because it could not be made, a line each.

    Raises:
        ConfigError: a negative number of replays.
        RunError: the run cannot be read, or the file not written.
    """
    if max_replays < 0:
        raise ConfigError(expected("--replays of at least 0", max_replays, "see --help"))
    left_out: list[str] = []
    view = View(run.path)
    view.refresh()
    reels = list(_make_reels(run, max_replays, left_out))
    facts = view.tell_all()
    if facts["problem"]:
        raise RunError(facts["problem"])
    view.dead = _count_dead(run, facts)
    about = view.tell_all() | {"hashes": collect_hashes(run, left_out), "left_out": left_out}
    text = assemble(about, _columns(view), reels)
    write_whole(path, text.encode())
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "run": str(run.path),
        "update": about["update"],
        "replays": [reel["title"] for reel in reels],
        "left_out": left_out,
    }


def describe_page(report: Report) -> str:
    """What was written, in a few lines."""
    lines = [
        f"{report['file']}: {report['bytes'] / 1e6:.1f} MB, up to update {report['update']}, "
        f"{len(report['replays'])} replays; it opens offline, in any browser of 2023 or later"
    ]
    return "\n".join([*lines, *(f"left out: {line}" for line in report["left_out"])])


def choose_shows(run: RunDirectory, max_replays: int) -> list[Callable[[], ChosenReplay]]:
    """What is replayed: the best agent's greedy episode, then some of the training, oldest first.

    Returns:
        What makes each of them, and raises where there is no agent, or nothing to play on.

    Raises:
        RunError: the run cannot be read.
    """
    if max_replays < 1:
        return []
    lines = read_replays(run)
    places = np.linspace(0, len(lines) - 1, min(len(lines), max_replays - 1))
    chosen = [lines[round(place)] for place in places.tolist()]
    best = functools.partial(choose_replay, run, which="best")
    return [best, *(functools.partial(open_replay, run, line) for line in chosen)]


def collect_hashes(run: RunDirectory, left_out: list[str]) -> dict[str, str]:
    """SHA-256 of the parameters that are kept whole, and of the run's files.

    Args:
        run: the run.
        left_out: is told what cannot be read.
    """
    hashes = {}
    for which in ("best", "latest"):
        try:
            about = load_agent(run, which).about
            hashes[f"params of {which}, update {about['update']}"] = about["params_sha256"]
        except CheckpointError as error:
            if str(error) not in left_out:
                left_out.append(str(error))
    for name in _HASHED:
        try:
            hashes[name] = hashlib.sha256((run.path / name).read_bytes()).hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunError(expected(f"to read {name}", error.strerror, "check it")) from error
    return hashes


def _make_reels(run: RunDirectory, max_replays: int, left_out: list[str]) -> Iterator[Reel]:
    """What cannot be replayed is no reason to have no page."""
    for make_show in choose_shows(run, max_replays):
        try:
            yield make_reel(make_show(), _stop_after(REEL_STEPS))
        except PixelpongError as error:
            if str(error) not in left_out:
                left_out.append(str(error))


def _stop_after(steps: int) -> Callable[[], bool]:
    count = iter(range(steps))
    return lambda: next(count, None) is None


def _count_dead(run: RunDirectory, facts: Report) -> DeadUnits | None:
    if not facts["agents"]:
        return None
    try:
        found = count_dead_units(run, facts["agents"][-1]["update"])
    except PixelpongError:
        return None  # the reels have said why
    return None if found is None else DeadUnits(**found)


def _columns(view: View) -> dict[str, list[Any]]:
    """The metrics as the page's charts name them."""
    columns = view.table.columns(max_rows=MAX_ROWS)
    return {name.removeprefix("timing."): column for name, column in columns.items()}
