"""Compiles kernels once, and caches them for the next process if possible."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit` without the lock, in numba's cache.

    The cache is next to the file, or in the user's cache directory. If neither can be written, as
    in some containers or on a full disk, each process compiles again. Numba unpickles its cache
    unchecked, so a damaged one can raise any error; the kernel is then compiled and cached again.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel = _make(function, options)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            nonlocal kernel
            try:
                return kernel(*args)
            except Exception as error:
                is_compiled = tuple(map(numba.typeof, args)) in kernel.signatures
                if is_compiled and not isinstance(error, OSError):
                    raise  # it was loaded, so the error is not the cache's
            if not is_compiled:
                _drop_from_cache(kernel)
                kernel = _make(function, options)
            with contextlib.suppress(OSError):  # of writing the cache, after compiling
                return kernel(*args)
            return kernel(*args)

        return call

    return compile_it


def _make(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        return numba.njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # numba: no locator available
        return numba.njit(function, nogil=True, **options)


def _drop_from_cache(kernel: Any) -> None:
    """Remove a kernel from numba's cache, whose files are named after it."""
    function, folder = kernel.py_func, kernel.stats.cache_path
    name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}-"
    name = name.replace("<", "").replace(">", "")  # of a function in a function
    for path in Path(folder).glob(f"{name}*.nb[ci]") if folder else ():
        with contextlib.suppress(OSError):
            path.unlink()
