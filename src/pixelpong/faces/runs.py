"""The runs on this disk: a list of them, removing some, making some smaller, notes.

A run that is being trained is never touched: whatever changes one holds its lock. Nothing outside a
run is moved or removed, and no link is followed.

Covered: the list as a table and as JSON, `create_run`, `remove`, `prune`, `write_note`.
Not covered: what a run's state is (`pixelpong.run.summary`).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pixelpong.config import Config
from pixelpong.config.options import COMMAND_LINE
from pixelpong.errors import ConfigError, RunError, expected, on_one_line, refusing
from pixelpong.items import BUILTIN
from pixelpong.run.directory import RUNS_FOLDER, RunDirectory, RunLock
from pixelpong.run.files import write_whole
from pixelpong.run.milestones import is_due
from pixelpong.run.names import LATEST, list_runs
from pixelpong.run.states import SORTS, STATES
from pixelpong.run.summary import (
    NOTE_FILE,
    NOTE_LENGTH,
    Summary,
    measure,
    signed,
    summarize,
)

Report = dict[str, Any]

_REMOVED = ".removed-"
"""Begins the name of a run that is being removed."""

_MAX_NAME = 28


def list_summaries(
    folders: Sequence[Path], *, sort: str = "age", states: str = "", text: str = ""
) -> list[Summary]:
    """The runs in some folders; a run among them is listed itself.

    Args:
        folders: of runs, or runs.
        sort: one of `SORTS`.
        states: only runs in these states, with commas; "" for all.
        text: only runs with this text in name, preset or note.

    Raises:
        ConfigError: an unknown order or state.
        RunError: a folder is not there.
    """
    if sort not in SORTS:
        raise ConfigError(expected("an order", repr(sort), f"use one of {', '.join(SORTS)}"))
    wanted = set(states.split(",")) if states else set(STATES)
    if unknown := wanted - STATES.keys():
        advice = f"use some of {', '.join(STATES)}"
        raise ConfigError(expected("states of runs", ", ".join(sorted(unknown)), advice))
    found = [
        summary
        for path in dict.fromkeys(path for folder in folders for path in _find_runs(folder))
        for summary in (summarize(path),)
        if summary.state in wanted and text.casefold() in _text_of(summary)
    ]
    return sorted(found, key=lambda each: _rank(each, sort))


def _find_runs(folder: Path) -> list[Path]:
    if (folder / "config.json").is_file():
        return [folder]
    if not folder.is_dir() and folder != RUNS_FOLDER:
        got, advice = f"{folder}, which is not there", "check its name"
        raise RunError(expected("a folder of runs", got, advice))
    return [path for path in list_runs(folder) if not path.name.startswith(_REMOVED)]


def _text_of(summary: Summary) -> str:
    preset = summary.config.preset if summary.config else ""
    return f"{summary.path} {preset} {summary.note}".casefold()


def _rank(summary: Summary, sort: str) -> Any:
    best, seed = summary.best_known, summary.config.seed if summary.config else -1
    keys: dict[str, Any] = {
        "age": -summary.modified,
        "name": str(summary.path),
        "return": -best if best is not None else 99.0,
        "seed": seed,
        "size": -summary.bytes,
        "state": list(STATES).index(summary.state),
        "steps": -summary.steps,
    }
    return keys[sort], str(summary.path)


def report_list(summaries: Sequence[Summary]) -> Report:
    """The list as JSON holds it."""
    return {
        "runs": [
            {
                "run": str(each.path),
                "state": each.state,
                "verdict": each.verdict,
                "preset": each.config.preset if each.config else None,
                "seed": each.config.seed if each.config else None,
                "update": each.update,
                "steps": each.steps,
                "episodes": each.episodes,
                "greedy_return": each.greedy and vars(each.greedy) | {"ci95": each.greedy.ci95},
                "estimated_return": each.estimated_return,
                "mean_return_100": each.mean_return_100,
                "seconds": each.seconds,
                "bytes": each.bytes,
                "modified": each.modified,
                "note": each.note,
                "problem": each.problem,
            }
            for each in summaries
        ],
        "bytes": sum(each.bytes for each in summaries),
    }


def describe_list(summaries: Sequence[Summary], width: int = 80) -> str:
    """The list as a table of at most `width` columns, and a line with the total."""
    if not summaries:
        return "no runs here; train one: pixelpong train"
    heads: tuple[str, ...] = ("run", "state", "return", "steps", "seed", "preset", "size", "age")
    rows = [heads, *map(_row, summaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {0, 1, 5}
    lines = [
        "  ".join(
            f"{cell:{'<' if place in left else '>'}{widths[place]}}"
            for place, cell in enumerate(row)
        )
        for row in rows
    ]
    room = max(width - len(lines[0]) - 2, 0)
    for place, each in enumerate(summaries, start=1):
        more = each.problem or each.note
        if more and room >= 12:
            lines[place] += "  " + _shorten(more, room)
        elif more:
            lines[place] += "\n  " + _shorten(more, width - 2)
    total = describe_bytes(sum(each.bytes for each in summaries))
    num = f"{len(summaries)} run" + "s" * (len(summaries) != 1)
    is_estimated = any(each.greedy is None and each.best_known is not None for each in summaries)
    hint = "; ~ is an estimate from the points won" * is_estimated
    return "\n".join(line.rstrip() for line in (*lines, f"{num}, {total}{hint}"))


def _row(each: Summary) -> tuple[str, ...]:
    best = each.best_known
    return (
        _shorten(each.path.name or str(each.path), _MAX_NAME),
        each.state,
        "–" if best is None else "~" * (each.greedy is None) + signed(best),
        describe_count(each.steps),
        str(each.config.seed) if each.config else "–",
        each.config.preset[:10] if each.config else "–",
        describe_bytes(each.bytes),
        describe_age(time.time() - each.modified),
    )


def _shorten(text: str, width: int) -> str:
    text = on_one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def describe_bytes(number: int) -> str:
    """A size in megabytes.

    >>> describe_bytes(29_412_000), describe_bytes(4_200)
    ('29.4 MB', '0.0 MB')
    """
    return f"{number / 1e6:,.1f} MB"


def describe_count(number: int) -> str:
    """A number of steps in three digits.

    >>> describe_count(950), describe_count(65_536), describe_count(1_187_840)
    ('950', '66k', '1.19M')
    """
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.0f}k" if number >= 1e3 else str(number)


def describe_age(seconds: float) -> str:
    """How long ago something was.

    >>> [describe_age(age) for age in (5, 240, 7_300, 260_000, -3)]
    ['5s', '4m', '2h', '3d', '0s']
    """
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def check_removable(path: Path) -> None:
    """Refuse to remove what is no run of its own.

    Raises:
        RunError: it is a link, or other runs are in it.
    """
    if path.is_symlink():
        advice = "remove the link yourself, or name the run that it leads to"
        raise RunError(expected("a run directory", f"{path}, which is a link", advice))
    if inside := list_runs(path):
        got, advice = f"{path}, which holds other runs ({inside[0].name})", "move them first"
        raise RunError(expected("a run directory", got, advice))


def remove(path: Path) -> int:
    """Remove a run; if it is killed meanwhile, the run is there or it is not.

    Returns:
        The bytes that it took.

    Raises:
        RunError: it is being trained, `check_removable` refuses it, or the disk does.
    """
    check_removable(path)
    size, aside = measure(path), path.with_name(_REMOVED + path.name)
    with RunLock(path), refusing(f"to remove {path}", "check its rights", RunError):
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        shutil.rmtree(aside)
    return size


def sweep(folder: Path) -> None:
    """Finish what a killed `remove` has begun."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(_REMOVED) and not (folder / name).is_symlink():
            shutil.rmtree(folder / name, ignore_errors=True)


def prune(path: Path, keep: int) -> Report:
    """Make a run smaller: it can still be resumed, to the same bits.

    The last `keep` checkpoints stay, the best and that of update 0. Of the milestones those of
    updates 0, 10, 20, 40, 80 … stay.

    Args:
        path: of the run.
        keep: checkpoints that stay, at least 1.

    Raises:
        RunError: it is being trained or cannot be read, or the disk refuses something.
        CheckpointError: no checkpoint is sound: then nothing is removed.
    """
    run = RunDirectory.open(path)
    with run.lock():
        before = measure(path)
        newest = run.checkpoints.load_latest()
        if newest.update != run.checkpoints.updates()[-1]:
            got = f"a damaged one of update {run.checkpoints.updates()[-1]}"
            what = f"a sound newest checkpoint in {path}"
            raise RunError(expected(what, got, "resume the run first, then prune it"))
        run.checkpoints.thin(keep)
        every = run.config.schedule.milestone_every
        run.milestones.remove(
            update
            for update in run.milestones.updates()
            if is_due(update, every) and (update // every).bit_count() > 1
        )
        kept = {
            "checkpoints": run.checkpoints.updates(),
            "milestones": run.milestones.updates(),
        }
        after = measure(path)
    return {"run": str(path), "before": before, "after": after, "freed": before - after, **kept}


def describe_pruned(report: Report) -> str:
    """A line a run: what it took and takes now, and what is kept."""
    lines = []
    for each in report["runs"]:
        if "problem" in each:
            lines.append(f"{each['run']}: left as it is: {each['problem']}")
            continue
        sizes = " → ".join(describe_bytes(each[name]) for name in ("before", "after"))
        kept = ", ".join(map(str, each["checkpoints"]))
        lines.append(f"{each['run']}: {sizes}; can be resumed; checkpoints of updates {kept}")
    freed = describe_bytes(sum(each.get("freed", 0) for each in report["runs"]))
    return "\n".join([*lines, f"freed {freed}"])


def create_run(
    config: Config,
    path: str | Path | None = None,
    name: str | None = None,
    note: str | None = None,
    origin: str = COMMAND_LINE,
) -> RunDirectory:
    """Create the directory of a new run.

    Args:
        config: of its training.
        path: of the directory.
        name: instead of `path`: of the run in the folder ``runs``. Without both, the next number.
        note: to keep beside the run.
        origin: where they were given, for the error messages.

    Raises:
        ConfigError: it is no name, a path is given as well, the note is too long, or the opponent
            cannot be met.
        CheckpointError: the opponent is damaged.
        RunError: the directory already exists, or a file cannot be written.
    """
    if name is not None:
        path = _path_for(name, path, origin)
    note = check_note(note or "")
    if config.ppo.opponent != BUILTIN:
        from pixelpong.agent.choice import settle_opponents

        (config,) = settle_opponents([config])
    run = RunDirectory.create(None if path is None else Path(path), config)
    write_note(run.path, note)
    return run


def _path_for(name: str, path: str | Path | None, origin: str) -> Path:
    is_command = origin == COMMAND_LINE
    if path is not None:
        both = "--run or --name" if is_command else "run or name"
        raise ConfigError(expected(both, "both", "leave one of them out"))
    if name != Path(name).name or name == LATEST or name[:1] in ("", ".", "-"):
        advice = (
            f"give a plain name such as fast-wide, or {'--run DIR' if is_command else 'run=DIR'}"
        )
        raise ConfigError(expected("the name of a run", repr(name), advice))
    return RUNS_FOLDER / name


def check_note(text: str) -> str:
    """A note on one line.

    Raises:
        ConfigError: it is longer than `NOTE_LENGTH`.
    """
    text = on_one_line(text)
    if len(text) > NOTE_LENGTH:
        what = f"a note of at most {NOTE_LENGTH} characters"
        raise ConfigError(expected(what, len(text), "shorten it"))
    return text


def write_note(path: Path, text: str) -> None:
    """Note something beside a run; "" removes the note.

    Raises:
        ConfigError: it is longer than `NOTE_LENGTH`.
        RunError: it cannot be written.
    """
    text, file = check_note(text), path / NOTE_FILE
    if text:
        write_whole(file, text.encode() + b"\n", advice="make room there")
        return
    with refusing(f"to remove {file}", "check its rights", RunError):
        file.unlink(missing_ok=True)
