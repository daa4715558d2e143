"""Compiling kernels once, and caching them for the next process if possible."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with `numba.njit`, without Python's lock and with numba's cache.

    The cache is next to the file, or in the user's cache directory. If neither can be written, as
    in some containers or on a full disk, each process compiles again. Numba unpickles its cache
    unchecked, so a damaged one can raise any error; the folder's kernels are then compiled again.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            kernel = numba.njit(function, cache=True, nogil=True, **options)
        except RuntimeError:  # numba: no locator available
            return numba.njit(function, nogil=True, **options)

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
                    for path in Path(str(kernel.stats.cache_path)).glob("*.nb[ci]"):
                        path.unlink(missing_ok=True)
                return kernel(*args)
            return kernel(*args)

        return call

    return compile_it
