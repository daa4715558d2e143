"""What is shown of an examination: a line a check, folded to the terminal, coloured where it can.

The only other file with rich beside the display of a training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from pixelpong.doctor import Outcome
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Check

STYLES = {OK: "green", NOTE: "cyan", WARNING: "bold yellow", FAILURE: "bold red"}

NARROW = 60
"""Columns below which a check's text stands under its name."""

_LEVEL_WIDTH, _NAME_WIDTH = 7, 13


def show(outcomes: Iterable[Outcome], stream: TextIO) -> Iterator[Outcome]:
    """Print each check as soon as it is made, and pass it on.

    Args:
        outcomes: of `pixelpong.doctor.examine`.
        stream: a terminal, or a file.
    """
    console, section = _console(stream), ""
    for outcome in outcomes:
        if outcome.section != section:
            section = outcome.section
            console.print(Text(section, style="bold"))
        _print(console, outcome.check)
        yield outcome


def show_end(report: dict[str, Any], stream: TextIO) -> None:
    """The last line: how many of what."""
    counts = report["counts"]
    words = {NOTE: "note", WARNING: "warning", FAILURE: "failure"}
    listed = [
        f"{counts[level]} {word}{'s' * (counts[level] != 1)}" for level, word in words.items()
    ]
    verdict = "nothing is broken" if report["is_sound"] else "this needs mending"
    style = STYLES[OK if report["is_sound"] else FAILURE]
    console = _console(stream)
    line = f"{verdict}: {counts[OK]} ok, {', '.join(listed)}, in {report['seconds']:.1f} s"
    shown = Text("\n".join(_fold(line, console.width, 0)))
    shown.stylize(style, 0, len(verdict))
    console.print(shown, soft_wrap=True)


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _print(console: Console, check: Check) -> None:
    text = check.text + (f" (see docs/{check.page})" if check.page else "")
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    name = check.name.replace("_", " ")
    if console.width < NARROW:
        head, indent = f"  {check.level}: {name}", 4
        lines = [head, *_fold(text, console.width - indent, indent)]
    else:
        head = f"  {check.level:{_LEVEL_WIDTH}}  {name:{_NAME_WIDTH}}  "
        indent = len(head)
        lines = _fold(text, console.width - indent, indent)
        lines[0] = head + lines[0].lstrip()
    shown = Text("\n".join(lines))
    shown.stylize(STYLES[check.level], 2, 2 + len(check.level))
    console.print(shown, soft_wrap=True)


def _fold(text: str, width: int, indent: int) -> list[str]:
    """Lines of words; one that is longer than a line has lines of its own."""
    width, lines = max(width, 8), [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return [" " * indent + line for line in lines]
