"""A file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pixelpong.errors import RunError, expected
from pixelpong.store import write_file


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or replace the one that is there.

    Raises:
        RunError: it cannot be written; what was there before is untouched.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)  # of a kill, long ago
        write_file(temporary, content)
        temporary.replace(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        got = getattr(error, "strerror", None) or str(error)
        advice = "make room there, or choose another file"
        raise RunError(expected(f"to write {path}", got, advice)) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink()
