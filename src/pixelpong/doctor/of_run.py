"""A run: whether it is sound, whether it can go on, and how its learning does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pixelpong.disk import open_to_read
from pixelpong.doctor import pages
from pixelpong.doctor.machine import look_at_folder
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Case, Check, trouble
from pixelpong.errors import CheckpointError, PixelpongError
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.metrics import LineFile
from pixelpong.report import health
from pixelpong.report.web.alive import is_live
from pixelpong.report.web.jobs import count_dead_units
from pixelpong.report.web.library import View
from pixelpong.run import Run

_LEVELS = {health.GOOD: OK, health.NOTE: NOTE, health.WARNING: WARNING}


def check_run(case: Case) -> Iterator[Check]:
    """All there is to say of the run; of one that cannot be opened, why."""
    assert case.run is not None
    try:
        run = Run.open(case.run, lambda _: None)  # warnings are said as checks
    except PixelpongError as error:
        page = pages.DAMAGED if case.run.is_dir() else ""
        yield Check("run", FAILURE, str(error), {"run": str(case.run)}, page)
        return
    yield _look_at_config(run)
    yield from check_checkpoints(run)
    yield from _look_at_lines(run)
    yield _look_at_lock(run.path)
    yield look_at_folder("run_disk", run.path)
    yield _look_at_machine(run)
    yield from check_health(run, can_play=not case.is_quick)


def _look_at_config(run: Run) -> Check:
    config = run.config
    facts = {
        "run": str(run.path), "preset": config.preset, "seed": config.seed,
        "environment": config.environment.environment, "algorithm": config.learning.algorithm,
    }  # fmt: skip
    text = f"{run.path}: preset {config.preset}, seed {config.seed}, {facts['environment']}"
    return Check("run", OK, text, facts)


def check_checkpoints(run: Run) -> Iterator[Check]:
    """Every checkpoint, every byte of it against its hash."""
    updates, damaged = run.checkpoints.updates(), dict[int, str]()
    for update in updates:
        try:
            run.checkpoints.load(update)
        except CheckpointError as error:
            damaged[update] = str(error).partition(", got ")[2].rpartition(";")[0] or str(error)
    sound = [update for update in updates if update not in damaged]
    facts = {"sound": sound, "damaged": {str(update): why for update, why in damaged.items()}}
    listed = ", ".join(map(str, sound))
    if not sound and run.has_begun:
        got = f"{len(damaged)} damaged ones" if damaged else "none"
        advice = "put a copy of one there, or train anew in another run"
        wanted = f"a sound checkpoint in {run.checkpoints.folder}"
        yield trouble(FAILURE, "checkpoints", wanted, got, advice, page=pages.DAMAGED, facts=facts)
    elif not sound:
        yield Check("checkpoints", NOTE, "none yet: this training has not begun", facts)
    elif damaged:
        got = ", ".join(f"update {update} with {why}" for update, why in damaged.items())
        advice = f"a resume goes on from update {sound[-1]}, to the same bits"
        yield trouble(
            WARNING, "checkpoints", "only sound checkpoints", got, advice, page=pages.DAMAGED,
            facts=facts,
        )  # fmt: skip
    else:
        text = f"of updates {listed}: every file has its SHA-256"
        yield Check("checkpoints", OK, text, facts)


def _look_at_lines(run: Run) -> Iterator[Check]:
    counts: dict[str, Any] = {}
    problems = []
    for file in run.line_files:
        name = file.path.stem
        try:
            whole, bad = _count_lines(file)
        except PixelpongError as error:
            problems.append(str(error))
            continue
        counts[name] = {"lines": whole, "damaged": bad}
        if bad:
            problems.append(f"{bad} of {whole + bad} in {file.path.name} that cannot be read")
    if problems:
        advice = "plots and health leave them out; training goes on all the same"
        got = "; ".join(problems)
        yield trouble(
            WARNING,
            "lines",
            "whole lines",
            got,
            advice,
            page=pages.DAMAGED,
            facts={"files": counts},
        )
        return
    listed = ", ".join(f"{each['lines']:,} of {name}" for name, each in counts.items())
    yield Check("lines", OK, listed, {"files": counts})


def _count_lines(file: LineFile) -> tuple[int, int]:
    """Lines that can be read, and others; a last one without an end is one being written."""
    whole = sum(1 for _ in file.read())
    total = 0
    with contextlib.suppress(OSError), open_to_read(file.path) as content:
        while chunk := content.read(1 << 20):
            total += chunk.count(b"\n")
    return whole, max(0, total - whole)


def _look_at_lock(path: Path) -> Check:
    if is_live(path):
        text = "a training is at work in it: what is said here is as of now"
        return Check("lock", OK, text, {"is_live": True})
    return Check("lock", OK, "nobody trains in it now: it can be resumed", {"is_live": False})


def _look_at_machine(run: Run) -> Check:
    here = {**collect_versions(), **describe_machine()}
    there = {**run.versions, **run.machine}
    changed = {name: [there.get(name), now] for name, now in here.items() if there.get(name) != now}
    if not changed:
        text = "the ones it was started with: a resume gives the same bits"
        return Check("run_machine", OK, text, {"changed": changed})
    got = "; ".join(f"{name} {old} → {new}" for name, (old, new) in changed.items())
    wanted = "the machine and versions that it was started with"
    advice = "it goes on, but the same bits are no longer promised"
    return trouble(
        NOTE,
        "run_machine",
        wanted,
        got,
        advice,
        page=pages.OTHER_MACHINE,
        facts={"changed": changed},
    )


def check_health(run: Run, *, can_play: bool) -> Iterator[Check]:
    """How the learning does, in the words of `pixelpong.report.health`.

    Args:
        run: it is only read.
        can_play: play some of an episode again, to look for dead units.
    """
    view = View(run.path)
    view.refresh()
    if can_play:
        # Of a strange run's replay it may be unknown; what else there is to say is said.
        with contextlib.suppress(PixelpongError, ValueError, KeyError):
            view.dead = _count_dead(run)
    for finding in view.tell_light()["health"]:
        level = _LEVELS[finding["level"]]
        text = f"{finding['title']}: {finding['text']} {finding['advice']}".strip()
        page = "" if level == OK else pages.of_finding(finding["title"])
        yield Check("health", level, text, dict(finding), page)


def _count_dead(run: Run) -> health.DeadUnits | None:
    updates = run.checkpoints.updates()
    counts = count_dead_units(run, updates[-1]) if updates else None
    return health.DeadUnits(**counts) if counts else None
