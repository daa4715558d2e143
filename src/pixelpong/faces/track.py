"""A run's metrics for another program: TensorBoard, or Weights & Biases.

``pixelpong track RUN --to tensorboard`` or ``--to wandb``. The data comes from the run's own files,
during the training or afterwards. The folder records what has been written, so that a later call
continues there. If a resume has cut the run back, TensorBoard is told to forget its data
(``purge_step``) and gets everything again; Weights & Biases accepts no step twice, so it keeps its
first data.

Nothing is sent anywhere unless the user says so: without WANDB_MODE, wandb writes offline.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, PixelpongError, RunError, expected
from pixelpong.run.alive import is_live as is_being_trained
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole
from pixelpong.schema import Count, decode, encode

POLL_SECONDS = 1.0
"""Seconds between two reads of a run that is being trained."""

MIN_FREE_BYTES = 1 << 20
"""With less free disk space, nothing is written: tensorboardX waits for ever on a full disk."""

Row = tuple[int, dict[str, float], float]
"""An update, its figures by name, and its time in seconds since 1970."""

Write = Callable[[list[Row], bool], None]
"""Writes rows, either after those written before or from the start."""


@dataclass
class State:
    """The record in a folder's ``pixelpong.json``.

    Attributes:
        run: the folder's run.
        count: lines written.
        newest: the last metrics line written; its times distinguish it from another attempt's.
        update: the largest one written.
        wandb_id: wandb's id of the run.
    """

    run: str
    count: Count = 0
    newest: dict[str, Any] = field(default_factory=dict)
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
    """Write a run's new data.

    Args:
        run: the run; it is only read.
        to: ``"tensorboard"`` or ``"wandb"``.
        out: folder for this run only; by default one in the run, named after the sink.
        is_live: continue as long as the run is being trained.
        should_stop: called every second; what has been written by then stays.

    Returns:
        ``run``, ``sink``, ``folder``, ``lines`` written now, the newest ``update``, and
        ``advice`` on how to view it.

    Raises:
        ConfigError: there is no such sink, its library is not installed, or the folder belongs to
            another run.
        RunError: the run cannot be read, the folder cannot be written, or wandb fails.
    """
    if to not in _SINKS:
        raise ConfigError(expected("a sink", repr(to), f"use one of {', '.join(_SINKS)}"))
    open_sink, module, package, looking = _SINKS[to]
    if importlib.util.find_spec(module) is None:
        raise ConfigError(expected(module, "no such package", f"pip install {package}"))
    folder, written = out or run.path / to, 0
    with _refusals(f"to write to {folder}", "make room there, or choose another --out"):
        state = _claim(run, folder)
        with open_sink(run, folder, state) as write:
            while True:
                goes_on = is_live and is_being_trained(run.path)  # asked before the last reading
                written += _write_new(run, write, folder, state)
                if not goes_on or should_stop():
                    break
                time.sleep(POLL_SECONDS)
    report = {"run": str(run.path), "sink": to, "folder": str(folder), "lines": written}
    return report | {"update": max(state.update, 0), "advice": looking.format(folder=folder)}


def describe_track(report: dict[str, Any]) -> str:
    """The report of `track` in two lines."""
    return (
        f"{report['folder']}: {report['lines']:,} lines written, "
        f"up to update {report['update']:,}\n"
        f"look at it with: {report['advice']}"
    )


def _claim(run: RunDirectory, folder: Path) -> State:
    """Make the folder, or continue with it; return its record."""
    name, path = str(run.path.resolve()), folder / "pixelpong.json"
    folder.mkdir(parents=True, exist_ok=True)
    state = State(name)
    if path.exists():
        state = decode(path.read_bytes(), State)
    is_ours = folder.resolve().is_relative_to(run.path.resolve())  # also if the run was moved
    if not is_ours and state.run != name:
        got = f"{folder} with those of {state.run}"
        raise ConfigError(expected("a folder for this run alone", got, "choose another --out"))
    state.run = name
    return state


def _write_new(run: RunDirectory, write: Write, folder: Path, state: State) -> int:
    """Write the new lines, and return their number."""
    files = {"training": run.metrics, "evaluation": run.evaluations}
    lines = [(line, group) for group, file in files.items() for line in file.read()]
    lines.sort(key=lambda each: each[0]["update"])
    written = [line for line, group in lines[: state.count] if group == "training"]
    begin = state.count if written[-1:] == [state.newest] else 0
    if not run.path.exists():
        raise RunError(expected(f"a run in {run.path}", "none", "is it still there?"))
    if begin == len(lines):
        return 0
    if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
        raise OSError(0, "No space left on device")
    write(_make_rows(run, lines)[begin:], begin == 0)
    state.count, state.update = len(lines), max(state.update, lines[-1][0]["update"])
    state.newest = next((line for line, group in lines[::-1] if group == "training"), {})
    write_whole(folder / "pixelpong.json", encode(vars(state)))
    return len(lines) - begin


def _make_rows(run: RunDirectory, lines: list[tuple[dict[str, Any], str]]) -> list[Row]:
    """The figures of all lines, each with the time it would have without breaks."""
    rows, seconds = [], 0.0
    for line, group in lines:
        values = _numbers(group, line)
        seconds = values.get("timing/wall_seconds", seconds)
        rows.append((line["update"], values, seconds))
    begun = run.metrics.path.stat().st_mtime - seconds
    return [(update, values, begun + seconds) for update, values, seconds in rows]


def _numbers(group: str, line: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers, under ``group/name``."""
    found = {f"{group}/{name}": value for name, value in line.items() if name != "update"}
    match line:
        case {"ci95": [low, high]}:
            found |= {f"{group}/ci95_low": low, f"{group}/ci95_high": high}
        case {"timing": dict(timing)}:
            found |= _numbers("timing", timing)
    return {name: value for name, value in found.items() if type(value) in (int, float)}


@contextlib.contextmanager
def _to_tensorboard(run: RunDirectory, folder: Path, state: State) -> Iterator[Write]:
    """Event files: steps are updates, and the times are those of the training."""
    from tensorboardX import SummaryWriter

    with contextlib.ExitStack() as opened:
        writer: Any = None

        def write(rows: list[Row], is_anew: bool) -> None:
            nonlocal writer
            if writer is None or is_anew:
                opened.close()
                # A unique name, else a second one within a second would replace the first.
                suffix = f".{len(list(folder.glob('*tfevents*')))}"
                purge_step = 0 if is_anew else None
                writer = SummaryWriter(str(folder), purge_step=purge_step, filename_suffix=suffix)
                opened.callback(writer.close)
            if is_anew:
                config = run.config.to_flat().items()
                text = "\n".join(f"    {name} = {value}" for name, value in config)
                writer.add_text("configuration", text)
            for update, values, when in rows:
                for name, value in values.items():
                    writer.add_scalar(name, value, update, walltime=when)

        yield write


@contextlib.contextmanager
def _to_wandb(run: RunDirectory, folder: Path, state: State) -> Iterator[Write]:
    """A new or continued run of wandb; its steps only go up."""
    mode = os.environ.setdefault("WANDB_MODE", "offline")
    import wandb

    refusals = functools.partial(_refusals, "wandb to take it", "see its log in the folder")
    state.wandb_id = state.wandb_id or os.urandom(8).hex()
    with refusals():
        session = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "pixelpong"),
            name=run.path.name,
            id=state.wandb_id,
            dir=str(folder),
            config=run.config.to_flat(),
            resume="allow" if mode == "online" else None,
            settings=wandb.Settings(console="off"),
        )

    @refusals()
    def write(rows: list[Row], is_anew: bool) -> None:
        for update, values, _ in rows:
            if not is_anew or update > state.update:
                session.log(values, step=update)

    yield write
    with refusals():
        session.finish()


@contextlib.contextmanager
def _refusals(wanted: str, advice: str) -> Iterator[None]:
    """Turn any error of the disk or the other program into one line."""
    try:
        yield
    except PixelpongError:
        raise
    except Exception as error:
        got = " ".join((getattr(error, "strerror", None) or str(error)).split())[:200]
        raise RunError(expected(wanted, got or type(error).__name__, advice)) from error


_SINKS = {
    "tensorboard": (
        _to_tensorboard, "tensorboardX", "'pixelpong[track]'", "tensorboard --logdir {folder}",
    ),
    "wandb": (_to_wandb, "wandb", "wandb", "wandb sync {folder}/wandb/offline-run-*, to send it"),
}  # fmt: skip
"""For each sink: the function that opens it, its module, what to install, how to view it."""
