"""How kernels are compiled: kept for the next process where there is a place to keep them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit` without the lock, in numba's cache.

    That is beside the file, or in the user's cache directory. Where neither can be written to, as
    in a container of which only some folders can, each process compiles anew. What is damaged there
    is compiled and written anew.

    Args:
        options: more of `numba.njit`'s.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel: Callable[..., Any]
        try:
            kernel = njit(function, cache=True, nogil=True, **options)
            _survive_damage(kernel)
        except RuntimeError:  # numba: no locator available
            kernel = njit(function, nogil=True, **options)
        return kernel

    return compile_it


def _survive_damage(kernel: Any) -> None:
    """Numba unpickles its cache unchecked, and whatever that raises would end every training."""
    cache = kernel._cache
    load = cache.load_overload

    def load_if_sound(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    cache.load_overload = load_if_sound
