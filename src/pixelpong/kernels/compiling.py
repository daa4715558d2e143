"""Compiling kernels once, and caching them for the next process if possible.

The folder's name contains a hash of all sources that kernels are compiled from. So kernels may call
parts and use constants of other files: an edit of any of them compiles all kernels again. Numba
itself notices only changes to a kernel's own file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from pixelpong.atari.cache import cache_folder
from pixelpong.errors import ConfigError

_PACKAGE = Path(__file__).parents[1]
# Kernels call functions of these files or use their constants.
_SOURCES = ("kernels", "learn", "env", "atari", "items.py")


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with `numba.njit`, without Python's lock and with numba's cache.

    If no folder is writable, as in some containers or on a full disk, each process compiles the
    kernels again. Numba unpickles its cache unchecked, so a damaged cache can raise any error; the
    kernel is then compiled again.

    Raises:
        ConfigError: numba's compiler is switched off.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # by debuggers, for coverage
        raise ConfigError("NUMBA_DISABLE_JIT is set, but pixelpong needs the compiler. Unset it.")

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        with _caching_in(folder := _find_folder()):
            kernel = numba.njit(function, cache=folder is not None, nogil=True, **options)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            try:
                return kernel(*args)
            except Exception as error:
                is_compiled = tuple(map(numba.typeof, args)) in kernel.signatures
                if is_compiled and not isinstance(error, OSError):
                    raise  # the kernel was loaded, so the cache is not the cause
            with contextlib.suppress(OSError):  # from writing the cache, after compiling
                if not is_compiled:
                    _empty(kernel)
                return kernel(*args)
            return kernel(*args)

        return call

    return compile_it


def _find_folder() -> Path | None:
    """A writable folder for the compiled code of these sources; None if there is none.

    It is inside the folder that the user gave to numba, or else in our cache folder or next to
    the package.
    """
    given = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    parents = [Path(given)] if given else [cache_folder(), _PACKAGE / "__pycache__"]
    for parent in parents:
        if parent is None:
            continue
        folder = parent / f"kernels-{_hash_of_sources()}"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return None


@contextlib.contextmanager
def _caching_in(folder: Path | None) -> Iterator[None]:
    """Context manager that has numba cache the functions decorated inside it in a folder."""
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = str(folder or "")  # type: ignore[attr-defined]
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]


def _empty(kernel: Any) -> None:
    """Delete the cached code of a kernel and of the other kernels in its file."""
    for path in Path(str(kernel.stats.cache_path)).glob("*.nb[ci]"):
        path.unlink(missing_ok=True)


@functools.cache
def _hash_of_sources() -> str:
    digest = hashlib.sha256()
    for name in _SOURCES:
        source = _PACKAGE / name
        for path in [source] if source.is_file() else sorted(source.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
