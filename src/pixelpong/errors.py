"""The errors that users can meet: one root and a few classes, each with an exit code.

A message is one line that says what is wrong and what to do; `must_be` and `unknown` word it for
bad values and unknown words. Errors that only a bug can cause are an ``assert`` instead.
"""

from __future__ import annotations

import contextlib
import difflib
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class PixelpongError(Exception):
    """Root of all declared errors. `exit_code` is what the command line returns.

    The message may quote a file. So it is one line without control characters, because a terminal
    would obey them.
    """

    exit_code = 1
    result: Any = None  # the result so far, for a command to report

    def __init__(self, message: object = "", *, options: Iterable[str] = ()) -> None:
        """Take a message; the command line shows the `options` that it names as flags."""
        super().__init__(on_one_line(str(message)))
        self.options = tuple(options)

    def _render_traceback_(self) -> list[str]:
        """Show only the one line in a notebook."""
        return [f"{type(self).__name__}: {self}"]


class ConfigError(PixelpongError):
    """An option, a file key or a value cannot be used."""

    exit_code = 2


class RunError(PixelpongError):
    """A run directory already exists, is missing, is in use or cannot be written."""


class CheckpointError(PixelpongError):
    """A checkpoint is damaged, missing or from another version."""


class EmulatorError(PixelpongError):
    """The game is not installed, cannot be compiled here, or did something unsupported."""


class WorkerError(PixelpongError):
    """A worker raised an error, or died or hung too often; `details` is its traceback, if any."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class NumericsError(PixelpongError):
    """A gradient, loss or parameter is not finite."""


class Interrupted(Exception):  # noqa: N818 - a request, not an error
    """A stop was requested; the current update is dropped."""


MAX_GOT = 500  # characters of a value or a reason that a message quotes


def must_be(name: str, allowed: str, got: object, advice: str = "") -> str:
    """Return the error message for a bad value: one short line without control characters.

    The value may come from an untrusted file, and a terminal obeys control characters.

    >>> must_be("--seed", "a whole number of at least 0", -1)
    '--seed must be a whole number of at least 0, not -1'
    """
    return _with_advice(f"{name} must be {allowed}, not {_cut(got)}", advice)


def unknown(what: str, word: str, advice: str) -> str:
    """Return the error message for a word that names nothing; see `must_be`.

    >>> unknown("option", "--sed", "did you mean --seed?")
    "unknown option '--sed'; did you mean --seed?"
    """
    return _with_advice(f"unknown {what} {_cut(word)!r}", advice)


def _cut(got: object) -> str:
    text = str(got)
    return text if len(text) <= MAX_GOT else f"{text[:MAX_GOT]}… ({len(text)} characters)"


def _with_advice(text: str, advice: str) -> str:
    return on_one_line(f"{text}; {advice}" if advice else text)


def as_argument(word: object, system: str = sys.platform) -> str:
    r"""Quote a word, where needed, for a command line that a message shows.

    >>> as_argument("my run", "linux"), as_argument(r"my runs\1", "win32")
    ("'my run'", '"my runs\\1"')
    """
    text = str(word)
    if system != "win32":
        return shlex.quote(text)
    return f'"{text}"' if set(text) & set(" &()^|<>;,'") else text  # no single quotes in cmd.exe


@contextlib.contextmanager
def refusing(failure: str, error_type: type[PixelpongError], advice: str = "") -> Iterator[None]:
    """Context manager that converts file errors into errors of another type."""
    try:
        yield
    except (OSError, ValueError, KeyError, RecursionError) as error:
        text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        reason = (getattr(error, "strerror", None) or text)[:MAX_GOT]
        raise error_type(_with_advice(f"{failure}: {reason}", advice)) from error


def warn(message: str) -> None:
    """Print a warning on one line without control characters; ignore errors while printing."""
    with contextlib.suppress(OSError, ValueError):
        print(f"warning: {on_one_line(message)}", file=sys.stderr, flush=True)


def did_you_mean(word: object, known: Iterable[str], otherwise: str) -> str:
    """Return advice for a word that may be misspelled.

    >>> did_you_mean("trian", ["train", "plot"], "see --help")
    'did you mean train?'
    """
    near = difflib.get_close_matches(str(word)[:100], known, n=1, cutoff=0.65)
    return f"did you mean {near[0]}?" if near else otherwise


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural.

    >>> number_of(1, "worker"), number_of(12000, "step")
    ('1 worker', '12,000 steps')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def list_words(words: Sequence[str], conjunction: str) -> str:
    """Join words into a list for a sentence.

    >>> list_words(["serial", "threads", "ray"], "or")
    'serial, threads or ray'
    """
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def on_one_line(text: str) -> str:
    """Put text on one line with only printable characters.

    >>> on_one_line("3.11" + chr(10) + "or" + chr(27) + "[2J newer")
    '3.11 or?[2J newer'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
