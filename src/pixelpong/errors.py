"""The errors a user can meet: one root, a few kinds, each one line and an exit code.

Every message says what was expected, what was got and what to do.
What only a bug can cause is an ``assert`` instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class PixelpongError(Exception):
    """Root of all declared errors. `exit_code` is what the command line returns."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the one line."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(PixelpongError):
    """An option, a file key or a value that cannot be used."""

    exit_code = 2


class RunError(PixelpongError):
    """A run directory that exists, is missing, is in use or cannot be written."""


class CheckpointError(PixelpongError):
    """A checkpoint that is damaged, missing or of another version."""


class VersionError(CheckpointError):
    """A checkpoint that another version of the format wrote: sound, but not ours to pass over."""


class EmulatorError(PixelpongError):
    """The emulator, its game or a snapshot of it cannot be used."""


class EmulatorWarning(UserWarning):
    """ALE plays because the native emulator can't: slower, to the same bits."""


class WorkerError(PixelpongError):
    """A worker raised, died or hung too often.

    Attributes:
        details: the worker's own traceback, empty if there is none.
    """

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class NumericsError(PixelpongError):
    """A gradient, loss or parameter that is not finite."""


class Interrupted(Exception):  # noqa: N818 - a request, not an error
    """A stop was requested; the work of the current update is dropped."""


MAX_GOT = 500
"""Characters of what was got that a message repeats."""


def expected(what: str, got: object, advice: str) -> str:
    """The one shape of every error message: a line, not without end, of letters alone.

    What was got may come from a stranger's file, and a terminal obeys what is no letter.

    >>> expected("a seed of at least 0", -1, "give --seed 0 or more")
    'expected a seed of at least 0, got -1; give --seed 0 or more'
    """
    text = str(got)
    if len(text) > MAX_GOT:
        text = f"{text[:MAX_GOT]}… ({len(text)} characters)"
    return on_one_line(f"expected {what}, got {text}; {advice}")


@contextlib.contextmanager
def refusing(what: str, advice: str, kind: type[PixelpongError]) -> Iterator[None]:
    """While inside, what the system or a file's content refuses is a declared error.

    Args:
        what: was expected.
        advice: what to do.
        kind: of the error that an `OSError` or a `ValueError` becomes.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        got = getattr(error, "strerror", None) or str(error)
        raise kind(expected(what, got, advice)) from error


def on_one_line(text: str) -> str:
    """The text on one line, of what can be printed.

    >>> on_one_line("3.11" + chr(10) + "or" + chr(27) + "[2J newer")
    '3.11 or?[2J newer'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
