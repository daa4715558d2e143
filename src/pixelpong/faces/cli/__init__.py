"""The command line. Imports what a command needs only when that command runs.

    pixelpong train | resume | evaluate | sweep | tournament | runs | verify
    pixelpong record | plot | dashboard | watch | play | export

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted with the checkpoint saved.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import traceback
from collections.abc import Callable

from pixelpong.errors import Interrupted, PixelpongError, expected


def main(argv: list[str] | None = None, begin: Callable[[], None] = lambda: None) -> int:
    """Run one command and return its exit code; `begin` is called once the words are parsed."""
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
    except (Interrupted, KeyboardInterrupt):
        print("pixelpong: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone, as with `| head`: print no error.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - kept until the process ends
        return 1
    except Exception as error:
        if "--debug" in words:
            traceback.print_exception(error)
            if details := getattr(error, "details", ""):
                print(f"\nIn the worker:\n{details}", file=sys.stderr)
        print(f"pixelpong: error: {' '.join(_describe(error).split())}", file=sys.stderr)
        return error.exit_code if isinstance(error, PixelpongError) else 1


def _describe(error: Exception) -> str:
    match error:
        case PixelpongError():
            return str(error)
        case OSError():
            got, advice = error.strerror or str(error), "fix that, then try again or resume"
            return expected("the system to read or write", got, advice)
        case MemoryError():
            return expected("enough memory", "too little", "ask for less, or close other programs")
    return f"internal error ({type(error).__name__}: {error}); please report it with --debug"


def _open_missing_streams() -> None:
    """Open the standard streams that this process was started without.

    The first file that a process opens gets the first free number. Without this, our output, or
    that of C code, could go into one of our files.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # for the workers too
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115


def _spell_plainly(error: UnicodeError) -> tuple[str, int]:
    """For streams with only ASCII: a minus sign must not become a question mark."""
    assert isinstance(error, UnicodeEncodeError)
    plain = {"−": "-", "–": "-", "→": "->", "×": "x"}
    letters = error.object[error.start : error.end]
    return "".join(plain.get(letter, "?") for letter in letters), error.end
