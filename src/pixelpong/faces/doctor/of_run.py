"""A run: whether it is sound, whether it can continue, and how it learns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pixelpong.agent import health
from pixelpong.errors import CheckpointError
from pixelpong.faces.doctor import FAILURE, NOTE, OK, WARNING, Check, problem
from pixelpong.faces.doctor.machine import check_folder
from pixelpong.faces.page.view import View
from pixelpong.machine import collect_versions, describe_machine
from pixelpong.run.alive import is_live
from pixelpong.run.directory import RunDirectory
from pixelpong.run.names import find_run

_LEVELS = {health.GOOD: OK, health.NOTE: NOTE, health.WARNING: WARNING}


def check_run(word: str | Path) -> Iterator[Check]:
    """All checks of a run.

    Args:
        word: names it, see `find_run`.

    Raises:
        RunError: it can't be opened.
    """
    path = find_run(word)
    run = RunDirectory.open(path, lambda _: None)  # checks report its warnings
    config, is_written = run.config, is_live(path)
    state = f"{'a' if is_written else 'no'} training is writing to it now"
    text = f"preset {config.preset}, seed {config.seed}, {config.environment.environment}; {state}"
    yield Check("run", OK, text, {"run": str(path), "is_live": is_written})
    yield _check_checkpoints(run)
    yield _check_lines(run)
    yield check_folder("run_disk", path)
    yield _check_machine(run)
    view = View(run.path)
    view.refresh()
    for finding in view.tell_light()["health"]:
        text = f"{finding['title']}: {finding['text']} {finding['advice']}".strip()
        yield Check("health", _LEVELS[finding["level"]], text, dict(finding))


def _check_checkpoints(run: RunDirectory) -> Check:
    """Every checkpoint, every byte of it against its hash."""
    sound, damaged = [], {}
    for update in run.checkpoints.updates():
        try:
            run.checkpoints.load(update)
            sound.append(update)
        except CheckpointError as error:
            damaged[str(update)] = str(error)
    facts = {"sound": sound, "damaged": damaged}
    got = f"damaged ones of updates {', '.join(damaged)}" if damaged else "none"
    if damaged and sound:
        advice = f"a resume continues from update {sound[-1]}, to the same bits"
        return problem("checkpoints", WARNING, "only sound checkpoints", got, advice, **facts)
    if not sound and run.has_begun:
        wanted, advice = f"a sound checkpoint in {run.path}", "restore one from a copy"
        return problem("checkpoints", FAILURE, wanted, got, advice, **facts)
    if not sound:
        return Check("checkpoints", NOTE, "none yet: this training has not begun", facts)
    listed = ", ".join(map(str, sound))
    return Check("checkpoints", OK, f"of updates {listed}: every file has its SHA-256", facts)


def _check_lines(run: RunDirectory) -> Check:
    """Whether lines can be read; the last one may be incomplete while a training writes it."""
    readable, damaged = {}, {}
    for file in run.line_files:
        count = sum(1 for _ in file.read())
        readable[file.path.stem] = count
        total = file.path.read_bytes().count(b"\n") if file.path.exists() else 0
        if total > count:
            damaged[file.path.stem] = total - count
    facts = {"readable": readable, "damaged": damaged}
    if damaged:
        got = ", ".join(f"{count} damaged in {name}.jsonl" for name, count in damaged.items())
        advice = "plots leave them out; the training is not affected"
        return problem("lines", WARNING, "whole lines", got, advice, **facts)
    listed = ", ".join(f"{count:,} of {name}" for name, count in readable.items())
    return Check("lines", OK, listed, facts)


def _check_machine(run: RunDirectory) -> Check:
    here = {**collect_versions(), **describe_machine()}
    there = {**run.versions, **run.machine}
    changed = {name: [there.get(name), now] for name, now in here.items() if there.get(name) != now}
    if not changed:
        text = "the same as at its start: a resume leads to the same bits"
        return Check("run_machine", OK, text, {"changed": changed})
    got = "; ".join(f"{name} {old} → {new}" for name, (old, new) in changed.items())
    wanted = "the machine and versions it was started with"
    advice = "it continues, but the same bits are no longer promised"
    return problem("run_machine", NOTE, wanted, got, advice, changed=changed)
