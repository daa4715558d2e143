"""What a command is: its function, its options, its examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pixelpong.config.options import Option

REQUIRED = ...
"""The default of a required option."""


class Place(Option):
    """A positional argument: a word, or several if its type is a tuple."""

    @property
    def flag(self) -> str:
        """What it is called, for it has no flag."""
        return self.metavar


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: carries it out, with the values of its options by name, and returns the exit code.
            The values include ``given``: the options of a training that were given, by name.
        help: one line.
        options: its own.
        training: names of the options of a training that it takes.
        shown: how ``--help`` describes their default; if empty, it shows the preset's.
        examples: command lines that ``--help`` shows.
    """

    run: Callable[[Any], int]
    help: str
    options: tuple[Option, ...]
    training: tuple[str, ...]
    shown: str
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Commands under one name, which may itself be one.

    Attributes:
        help: one line.
        commands: by name.
        welcome: is printed if no command is given; if empty, that is an error.
        default: the command that runs if none is named; if empty, that is an error.
        own: the command of this name alone.
    """

    help: str
    commands: dict[str, Command | Group]
    welcome: str = ""
    default: str = ""
    own: Command | None = None


def command(
    run: Callable[[Any], int],
    help: str,
    *options: Option,
    examples: tuple[str, ...],
    training: tuple[str, ...] = (),
    shown: str = "",
) -> Command:
    """A command with the options that every command has; see `Command`."""
    common = (
        switch("json", "Print one JSON object on stdout."),
        switch("debug", "Show the traceback of an error."),
    )
    return Command(run, help, (*options, *common), training, shown, examples)


def switch(name: str, help: str, short: str = "") -> Option:
    """An option without a value."""
    return Option(name, bool, False, help, short=short)


def file(name: str, help: str, metavar: str = "FILE", short: str = "") -> Option:
    """An option that names a file or a folder."""
    return Option(name, Path | None, None, help, metavar=metavar, short=short)


def number(name: str, help: str) -> Option:
    """An option with a whole number, or none."""
    return Option(name, int | None, None, help)
