"""Compiling kernels once, and caching them for the next process if possible."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from pixelpong.errors import ConfigError

_PACKAGE = Path(__file__).parent
# What is compiled into kernels: they call functions of these files, or have their constants.
_SOURCES = ("kernels", "learn", "env", "atari", "items.py")
_MARK = "sources.sha256"  # in a folder of numba's: what its kernels were compiled from


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with `numba.njit`, without Python's lock and with numba's cache.

    The cache is next to the file, or in the user's cache directory. If neither can be written, as
    in some containers or on a full disk, each process compiles again. Numba unpickles its cache
    unchecked, so a damaged one can raise any error; the folder's kernels are then compiled again.
    They are also compiled again after a change in any file that they are compiled from: numba
    itself notices only changes to a kernel's own file.

    Raises:
        ConfigError: numba's compiler is switched off.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # by debuggers, for coverage
        raise ConfigError("NUMBA_DISABLE_JIT is set, and nothing can be played without: unset it.")

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            kernel = numba.njit(function, cache=_can_cache(function), nogil=True, **options)
        except RuntimeError:  # numba: no locator available
            return numba.njit(function, nogil=True, **options)
        with contextlib.suppress(OSError):  # without a cache, or it cannot be written
            _drop_stale(kernel)

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


def _can_cache(function: Callable[..., Any]) -> bool:
    """Whether numba has a place for its cache; without a home it would make a folder named ~."""
    has_home = os.path.isabs(os.path.expanduser("~"))
    folder = Path(function.__code__.co_filename).parent
    places = [folder / "__pycache__", folder]
    beside = next((place for place in places if place.is_dir()), folder)
    has_own = bool(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    return has_home or has_own or os.access(beside, os.W_OK)


def _drop_stale(kernel: Any) -> None:
    """Empty the kernel's folder if its kernels were compiled from other sources."""
    if (folder := kernel.stats.cache_path) is None:
        return
    mark, now = Path(str(folder)) / _MARK, _hash_of_sources()
    if not mark.exists() or mark.read_bytes() != now:
        _empty(kernel)
        mark.write_bytes(now)


def _empty(kernel: Any) -> None:
    for path in Path(str(kernel.stats.cache_path)).glob("*.nb[ci]"):
        path.unlink(missing_ok=True)


@functools.cache
def _hash_of_sources() -> bytes:
    found = hashlib.sha256()
    for name in _SOURCES:
        place = _PACKAGE / name
        for path in [place] if place.is_file() else sorted(place.glob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest().encode()
