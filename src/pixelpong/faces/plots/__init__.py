"""``pixelpong plot RUN…``: plots of runs, in files.

    curve    return over the steps, with band and evaluations; several runs in one
    points   share of points won, and how long a point takes; several runs in one
    health   entropy, gradient, losses, speed; several runs in one
    weights  the first layer, one picture per unit
    frames   a frame, preprocessed, as the network sees it, and what moved the decision
    episode  probabilities, value and advantage along the newest replay

Covered: choosing pictures and runs, and the files. Not covered: drawing each picture.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pixelpong.errors import ConfigError, PixelpongError, expected
from pixelpong.faces.plots import curves as plots_curves
from pixelpong.faces.plots import episode as plots_episode
from pixelpong.faces.plots import weights as plots_weights
from pixelpong.faces.plots.drawing import (
    FORMATS,
    Figure,
    house_style,
    render,
    require_matplotlib,
    write_files,
)
from pixelpong.faces.plots.subjects import Subject, name_subjects
from pixelpong.run.directory import RunDirectory

OVERLAID: Mapping[str, Callable[[Sequence[Subject]], Figure]] = {
    "curve": plots_curves.draw_curve,
    "points": plots_curves.draw_points,
    "health": plots_curves.draw_health,
}
"""All runs in one picture."""

SINGLE: Mapping[str, Callable[[Subject], Figure]] = {
    "weights": plots_weights.draw_weights,
    "frames": plots_episode.draw_frames,
    "episode": plots_episode.draw_episode,
}
"""One picture per run."""

KINDS = (*OVERLAID, *SINGLE)

ALL = "all"


def draw_plots(
    runs: Sequence[RunDirectory], folder: Path, kinds: Sequence[str], formats: Sequence[str]
) -> list[Path]:
    """Draw pictures of runs and write them to files, all of them or none.

    Args:
        runs: at least one.
        folder: of the files; made if it is missing.
        kinds: of `KINDS`, or ``"all"`` for every possible one; for the others,
            `RunDirectory.warn` is called.
        formats: of `FORMATS`.

    Returns:
        The files, named by kind, and by run if each of several has its own.

    Raises:
        ConfigError: a kind or format is unknown, or matplotlib is not installed.
        RunError: a run has no metrics yet, or the files cannot be written.
        CheckpointError: there is no agent, or it is damaged.
        EmulatorError: the emulator or its game is not installed.
    """
    kinds = [_known("kind of picture", kind, (*KINDS, ALL)) for kind in kinds]
    formats = [_known("format", each, FORMATS) for each in formats]
    require_matplotlib()
    subjects = name_subjects(runs)
    files: dict[str, bytes] = {}
    with house_style():
        for name, figure in _draw_all(subjects, kinds):
            files |= {f"{name}.{each}": render(figure, each) for each in formats}
    return write_files(folder, files)


def describe_plots(report: Mapping[str, Any]) -> str:
    """The files, one line each."""
    return "\n".join(report["files"])


def draw_one(subjects: Sequence[Subject], kind: str, format: str) -> bytes:
    """One picture as the bytes of a file.

    Raises the errors of `draw_plots`, and a `ConfigError` for several runs in a picture of one run.
    """
    kind = _known("kind of picture", kind, KINDS)
    format = _known("format", format, FORMATS)
    require_matplotlib()
    if kind in SINGLE and len(subjects) > 1:
        advice = f"leave the others out, or draw one of {', '.join(OVERLAID)}"
        raise ConfigError(expected(f"one run for {kind}", len(subjects), advice))
    ((_, draw),) = _jobs(subjects, kind)
    with house_style():
        return render(draw(), format)


def _draw_all(subjects: Sequence[Subject], kinds: Sequence[str]) -> list[tuple[str, Figure]]:
    """The pictures and their names."""
    is_lenient = ALL in kinds
    drawn: list[tuple[str, Figure]] = []
    refusals: list[PixelpongError] = []
    for kind in KINDS if is_lenient else dict.fromkeys(kinds):
        for name, draw in _jobs(subjects, kind):
            try:
                drawn.append((name, draw()))
            except PixelpongError as error:
                if not is_lenient:
                    raise
                refusals.append(error)
                subjects[0].run.warn(f"no picture {name}: {error}")
    if not drawn:
        raise refusals[0]
    return drawn


def _jobs(subjects: Sequence[Subject], kind: str) -> list[tuple[str, Callable[[], Figure]]]:
    """The pictures of a kind: their names, and functions that draw them."""
    if kind in OVERLAID:
        return [(kind, functools.partial(OVERLAID[kind], subjects))]
    ends = [f"-{subject.file_name}" for subject in subjects] if len(subjects) > 1 else [""]
    return [
        (f"{kind}{end}", functools.partial(SINGLE[kind], subject))
        for end, subject in zip(ends, subjects, strict=True)
    ]


def _known(what: str, name: str, names: Sequence[str]) -> str:
    name = name.strip()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"use {', '.join(names)}"
        raise ConfigError(expected(f"a {what}", repr(name), advice))
    return name
