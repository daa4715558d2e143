"""The command line. Imports what a command needs only when that command runs.

    pixelpong train | resume | evaluate | inspect | doctor | verify | bench
    pixelpong record | plot | dashboard | watch | play | export | track

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with the checkpoint saved.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from pixelpong.errors import EmulatorWarning, Interrupted, PixelpongError, expected


def _nothing() -> None:
    """Nothing is to be done."""


def main(argv: list[str] | None = None, begin: Callable[[], None] = _nothing) -> int:
    """Run one command and return its exit code.

    Args:
        argv: the words after ``pixelpong``; by default those of this process.
        begin: is called when they have been read and the command is about to begin.
    """
    words = sys.argv[1:] if argv is None else argv
    _open_missing_streams()
    codecs.register_error("pixelpong", _spell_plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="pixelpong")
    try:
        from pixelpong.faces.cli.parser import parse

        command, options = parse(words)
        begin()
        return command(options)
    except PixelpongError as error:
        return _fail(error, str(error), error.exit_code, words)
    except (Interrupted, KeyboardInterrupt):
        print("pixelpong: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does: no reason for a word.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - kept until the process ends
        return 1
    except OSError as error:
        got = error.strerror or str(error)
        message = expected("the system to read or write", got, "fix that, then try again or resume")
        return _fail(error, message, 1, words)
    except MemoryError as error:
        message = expected("enough memory", "too little", "ask for less, or close other programs")
        return _fail(error, message, 1, words)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        message = f"expected no such error, got {got}; this is a bug: run again with --debug"
        return _fail(error, message, 1, words)


def show_warnings_plainly() -> None:
    """From here on a warning of ours is one line on stderr, and each is shown once.

    For the process of a command: in a notebook, Python's own form says which cell it is from.
    """
    show_others: Callable[..., None] = warnings.showwarning
    shown: set[str] = set()

    def show(message: Any, category: type[Warning], *about: Any, **more: Any) -> None:
        if not issubclass(category, EmulatorWarning):
            show_others(message, category, *about, **more)
        elif str(message) not in shown:
            shown.add(str(message))
            print(f"warning: {message}", file=sys.stderr)

    warnings.showwarning = show


def _open_missing_streams() -> None:
    """Who starts us without some of them must not find our words, or C code's, in our files.

    The first file that a process opens gets the first number that is free.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # for the workers as well
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115


def _spell_plainly(error: UnicodeError) -> tuple[str, int]:
    """For streams that know ASCII alone: a minus sign must not become a question mark."""
    assert isinstance(error, UnicodeEncodeError)
    plain = {"−": "-", "–": "-", "→": "->", "×": "x"}
    letters = error.object[error.start : error.end]
    return "".join(plain.get(letter, "?") for letter in letters), error.end


def _fail(error: Exception, message: str, exit_code: int, words: list[str]) -> int:
    if "--debug" in words:
        traceback.print_exception(error)
        details = getattr(error, "details", "")
        if details:
            print(f"\nIn the worker:\n{details}", file=sys.stderr)
    print("pixelpong: error: " + " ".join(message.split()), file=sys.stderr)
    return exit_code
