"""A run as one HTML file that opens from disk, with nothing else there and no network.

``pixelpong export RUN --html FILE``. Curves, replays that play, health, evaluations, configuration
and hashes: the page's own view of a run, with the answers that it would ask the server for.

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
    choose_replay,
    load_agent,
    open_replay,
    read_replays,
)
from pixelpong.agent.health import DeadUnits
from pixelpong.errors import CheckpointError, ConfigError, PixelpongError, RunError, expected
from pixelpong.faces.page.jobs import count_dead_units
from pixelpong.faces.page.offline import RUN, assemble
from pixelpong.faces.page.reel import Reel, make_reel
from pixelpong.faces.page.view import View
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
    hashes = _hash_files(run, left_out)
    left_out = list(dict.fromkeys(left_out))
    about = view.tell_all() | {"hashes": hashes, "left_out": left_out}
    text = assemble(about["name"], _collect_answers(about, view, reels))
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


def _make_reels(run: RunDirectory, max_replays: int, left_out: list[str]) -> Iterator[Reel]:
    """The best agent's greedy episode, then some of the training, oldest first."""
    if max_replays < 1:
        return
    lines = read_replays(run)
    places = np.linspace(0, len(lines) - 1, min(len(lines), max_replays - 1))
    makers = [functools.partial(choose_replay, run, which="best")]
    makers += [functools.partial(open_replay, run, lines[round(each)]) for each in places.tolist()]
    for make in makers:
        try:
            yield make_reel(make(), _stop_after(REEL_STEPS))
        except PixelpongError as error:
            left_out.append(str(error))


def _hash_files(run: RunDirectory, left_out: list[str]) -> dict[str, str]:
    """SHA-256 of the parameters of the best and the latest agent, and of the run's files."""
    hashes = {}
    for which in ("best", "latest"):
        try:
            about = load_agent(run, which).about
            hashes[f"params of {which}, update {about['update']}"] = about["params_sha256"]
        except CheckpointError as error:
            left_out.append(str(error))
    for name in _HASHED:
        try:
            hashes[name] = hashlib.sha256((run.path / name).read_bytes()).hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunError(expected(f"to read {name}", error.strerror, "check it")) from error
    return hashes


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


def _collect_answers(about: Report, view: View, reels: list[Reel]) -> Report:
    """What the page asks for, by path; it knows the agents and replays that are in the file."""
    base = f"/api/runs/{RUN}"
    own = {reel["agent_update"]: reel for reel in reels if reel["is_own"]}
    others = {reel["episode"]: reel for reel in reels if not reel["is_own"]}
    replays = [
        {name: reel[name] for name in ("episode", "update", "episode_return")}
        | {"steps": reel["steps"] - 1}
        for reel in others.values()
    ]
    shown = about | {
        "id": RUN,
        "is_offline": True,
        "is_live": False,
        "was_live": about["is_live"],
        "agents": [agent for agent in about["agents"] if agent["update"] in own],
        "replays": replays,
    }
    return {
        base: shown,
        f"{base}/metrics?after=0": {"columns": view.table.columns(max_rows=MAX_ROWS)},
        **{f"{base}/reels/agent/{update}": reel for update, reel in own.items()},
        **{f"{base}/reels/replay/{episode}": reel for episode, reel in others.items()},
    }
