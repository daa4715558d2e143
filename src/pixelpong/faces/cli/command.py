"""What a command is: its function, its options, its examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.config.options import Option

REQUIRED = ...  # the default of a required option


class Place(Option):
    """A positional argument: a word, or several if its type is a tuple."""

    @property
    def flag(self) -> str:
        """Its name, since it has no flag."""
        return self.metavar


@dataclass(frozen=True)
class Command:
    """A command; `run` gets its options by name, those of a training in ``given``."""

    run: Callable[[Any], int]
    help: str
    options: tuple[Option, ...]
    training: tuple[str, ...]  # options of a training that it takes
    examples: tuple[str, ...]


def command(
    run: Callable[[Any], int],
    help: str,
    *options: Option,
    examples: tuple[str, ...],
    training: tuple[str, ...] = (),
) -> Command:
    """A command with the options that every command has."""
    json = switch("json", "Print one JSON object on stdout.")
    debug = switch("debug", "Show the traceback of an error.")
    return Command(run, help, (*options, json, debug), training, examples)


def switch(name: str, help: str, short: str = "") -> Option:
    """An option without a value."""
    return Option(name, bool, False, help, short=short)


def file(name: str, help: str, metavar: str = "FILE", short: str = "") -> Option:
    """An option that names a file or a folder."""
    return Option(name, Path | None, None, help, metavar=metavar, short=short)
