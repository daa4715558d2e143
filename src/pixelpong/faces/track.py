"""A run's metrics for another program: TensorBoard, or Weights & Biases.

``pixelpong track RUN --to tensorboard`` or ``--to wandb``. All of it comes from the run's own
files, afterwards or while it is being trained, and training knows nothing of it. The folder
remembers what has been written, so that a later call continues there. If a resume has cut the run
back, TensorBoard is told to forget what it has (``purge_step``) and gets everything anew; Weights &
Biases takes no step twice, so it keeps what it was told first.

Nothing is sent anywhere unless the user says so: without WANDB_MODE, wandb writes offline.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.run.alive import is_live as is_being_trained
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole

POLL_SECONDS = 1.0
"""How often a run that is being trained is looked at."""

MIN_FREE_BYTES = 1 << 20
"""With less room on the disk nothing is written: tensorboardX would wait for ever on a full one."""

Row = tuple[int, dict[str, float], float]
"""An update, its figures by name, and its time in seconds since 1970."""

Write = Callable[[list[Row], bool], None]
"""Writes rows, either behind what was written before or anew."""


@dataclass
class State:
    """What a folder remembers, in ``pixelpong.json``.

    Attributes:
        run: whose folder it is.
        count: lines that have been written.
        last: digest of the last of them.
        update: the largest that has been written.
        wandb_id: of the run, as wandb knows it.
    """

    run: str
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    last: str = ""
    update: int = -1
    wandb_id: str = ""


def track(
    run: RunDirectory,
    to: str = "tensorboard",
    out: Path | None = None,
    *,
    is_live: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Write what a run has that has not been written yet.

    Args:
        run: the run; it is only read.
        to: ``"tensorboard"`` or ``"wandb"``.
        out: folder for this run alone; by default one of the sink's name in the run.
        is_live: go on for as long as the run is being trained.
        should_stop: asked every second; what has been written by then stays.

    Returns:
        ``run``, ``sink``, ``folder``, ``lines`` written now, the newest ``update``, and
        ``advice`` for looking at it.

    Raises:
        ConfigError: there is no such sink, its library is not installed, or the folder is another
            run's.
        RunError: the run cannot be read, the folder not written, or wandb fails.
    """
    folder = out or run.path / to
    sinks = {
        "tensorboard": (_to_tensorboard, "tensorboardX", "'pixelpong[track]'"),
        "wandb": (_to_wandb, "wandb", "wandb"),
    }
    if to not in sinks:
        raise ConfigError(expected("a sink", repr(to), f"use one of {', '.join(sinks)}"))
    open_sink, module, package = sinks[to]
    if importlib.util.find_spec(module) is None:
        raise ConfigError(expected(module, "no such package", f"pip install {package}"))
    written = 0
    with _refusals(folder):
        state = _claim(run, folder)
        with open_sink(run, folder, state) as write:
            while True:
                goes_on = is_live and is_being_trained(run.path)  # asked before the last reading
                written += _write_new(run, write, folder, state)
                if not goes_on or should_stop():
                    break
                time.sleep(POLL_SECONDS)
    is_local = to == "tensorboard"
    looking = f"--logdir {folder}" if is_local else f"sync {folder}/wandb/offline-run-*, to send it"
    return {
        "run": str(run.path),
        "sink": to,
        "folder": str(folder),
        "lines": written,
        "update": max(state.update, 0),
        "advice": f"{to} {looking}",
    }


def describe_track(report: dict[str, Any]) -> str:
    """What was written, in two lines."""
    return (
        f"{report['folder']}: {report['lines']:,} lines written, "
        f"up to update {report['update']:,}\n"
        f"look at it with: {report['advice']}"
    )


def _write_new(run: RunDirectory, write: Write, folder: Path, state: State) -> int:
    """Write what is new, and say how many lines that is."""
    files = {"training": list(run.metrics.read()), "evaluation": list(run.evaluations.read())}
    if not run.metrics.path.parent.exists():
        raise RunError(expected(f"a run in {run.path}", "none", "is it still there?"))
    lines = [(line, name) for name, each in files.items() for line in each]
    lines.sort(key=lambda each: each[0]["update"])
    is_cut_back = len(lines) < state.count or _digest(lines[: state.count]) != state.last
    begin = 0 if is_cut_back else state.count
    if begin == len(lines):
        return 0
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise OSError(0, "No space left on device")
    write(_make_rows(run, lines)[begin:], begin == 0)
    state.count, state.last = len(lines), _digest(lines)
    state.update = max(state.update, lines[-1][0]["update"])
    write_whole(folder / "pixelpong.json", msgspec.json.encode(state))
    return len(lines) - begin


def _digest(lines: list[Any]) -> str:
    """Of the last line: its times tell it from that of another attempt."""
    return (
        hashlib.sha256(json.dumps(lines[-1], sort_keys=True).encode()).hexdigest() if lines else ""
    )


def _make_rows(run: RunDirectory, lines: list[tuple[dict[str, Any], str]]) -> list[Row]:
    """The figures of all lines, and when each would have been had there been no breaks."""
    rows, seconds = [], 0.0
    for line, name in lines:
        values = _numbers(name, line)
        seconds = values.get("timing/wall_seconds", seconds)
        rows.append((line["update"], values, seconds))
    begun = run.metrics.path.stat().st_mtime - seconds
    return [(update, values, begun + seconds) for update, values, seconds in rows]


def _numbers(group: str, line: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers, under ``group/name``."""
    timing = line.get("timing")
    low_high = line.get("ci95")
    if isinstance(low_high, list) and len(low_high) == 2:
        line = line | {"ci95_low": low_high[0], "ci95_high": low_high[1]}
    found = {
        f"{group}/{name}": value
        for name, value in line.items()
        if type(value) in (int, float) and name != "update"
    }
    return found | (_numbers("timing", timing) if isinstance(timing, dict) else {})


def _claim(run: RunDirectory, folder: Path) -> State:
    """Make the folder, or continue with it; what it remembers."""
    name, path = str(run.path.resolve()), folder / "pixelpong.json"
    folder.mkdir(parents=True, exist_ok=True)
    state = State(name)
    if path.exists():
        state = msgspec.json.decode(path.read_bytes(), type=State)
    is_ours = folder.resolve().is_relative_to(run.path.resolve())  # also if the run was moved
    if not is_ours and state.run != name:
        got = f"{folder} with those of {state.run}"
        raise ConfigError(expected("a folder for this run alone", got, "choose another --out"))
    state.run = name
    return state


@contextlib.contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, RecursionError, msgspec.DecodeError) as error:
        got = getattr(error, "strerror", None) or str(error)
        advice = "make room there, or choose another --out"
        raise RunError(expected(f"to write to {folder}", got, advice)) from error


@contextlib.contextmanager
def _to_tensorboard(run: RunDirectory, folder: Path, state: State) -> Iterator[Write]:
    """Event files: steps are updates, and the times are those of the training."""
    from tensorboardX import SummaryWriter

    writer: Any = None

    def write(rows: list[Row], is_anew: bool) -> None:
        nonlocal writer
        if writer is None or is_anew:
            if writer is not None:
                writer.close()
            # A name of its own, else a second one within a second would replace the first.
            suffix = f".{len(list(folder.glob('*tfevents*')))}"
            purge_step = 0 if is_anew else None
            writer = SummaryWriter(str(folder), purge_step=purge_step, filename_suffix=suffix)
        if is_anew:
            config = run.config.to_flat().items()
            text = "\n".join(f"    {name} = {value}" for name, value in config)
            writer.add_text("configuration", text)
        for update, values, when in rows:
            for name, value in values.items():
                writer.add_scalar(name, value, update, walltime=when)

    yield write
    if writer is not None:
        writer.close()


@contextlib.contextmanager
def _to_wandb(run: RunDirectory, folder: Path, state: State) -> Iterator[Write]:
    """A run of wandb, begun or continued; its steps only go up."""
    mode = os.environ.setdefault("WANDB_MODE", "offline")
    import wandb

    state.wandb_id = state.wandb_id or os.urandom(8).hex()
    with _failures_of_wandb():
        session = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "pixelpong"),
            name=run.path.name,
            id=state.wandb_id,
            dir=str(folder),
            config=run.config.to_flat(),
            resume="allow" if mode == "online" else None,
            settings=wandb.Settings(console="off"),
        )

    def write(rows: list[Row], is_anew: bool) -> None:
        with _failures_of_wandb():
            for update, values, _ in rows:
                if not is_anew or update > state.update:
                    session.log(values, step=update)

    yield write
    with _failures_of_wandb():
        session.finish()


@contextlib.contextmanager
def _failures_of_wandb() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # another program's; whatever it is, a user gets a line
        got = " ".join(str(error).split())[:200] or type(error).__name__
        raise RunError(expected("wandb to take it", got, "see its log in the folder")) from error
