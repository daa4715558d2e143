"""``pixelpong plot RUN…``: a picture of one or several runs, in a file.

curve    return over the steps, with band and evaluations
health   entropy, gradient, losses, speed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pixelpong.errors import ConfigError, expected
from pixelpong.faces.extras import require
from pixelpong.faces.plots.curves import Subject, draw_curve, draw_health, name_subjects
from pixelpong.faces.plots.drawing import FORMATS, Figure, house_style, render
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import require_place, write_whole

KINDS: Mapping[str, Callable[[Sequence[Subject]], Figure]] = {
    "curve": draw_curve,
    "health": draw_health,
}


def draw_plot(runs: Sequence[RunDirectory], kind: str, format: str) -> bytes:
    """A picture of one or more runs, as the bytes of a file in one of `FORMATS`."""
    for what, name, names in (("kind of picture", kind, KINDS), ("format", format, FORMATS)):
        if name not in names:
            raise ConfigError(expected(f"a {what}", repr(name), f"use {', '.join(names)}"))
    require("Pictures need", "matplotlib", extra="plot")
    with house_style():
        return render(KINDS[kind](name_subjects(runs)), format)


def plot(runs: Sequence[RunDirectory], kind: str, path: Path | None) -> Path:
    """Draw runs to a file, by default in the first run; its ending chooses the format."""
    file = path or runs[0].path / "plots" / f"{kind}.png"
    if path is not None:
        require_place(path)
    content = draw_plot(runs, kind, file.suffix.lower().removeprefix("."))
    write_whole(file, content, make_folder=path is None)
    return file
