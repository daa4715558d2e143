"""How kernels are compiled: kept for the next process where there is a place to keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`numba.njit` without the lock, in numba's cache.

    That is beside the file, or in the user's cache directory. Where neither can be written to, as
    in a container of which only some folders can, each process compiles anew.

    Args:
        options: more of `numba.njit`'s.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        kernel: Callable[..., Any]
        try:
            kernel = njit(function, cache=True, nogil=True, **options)
        except RuntimeError:  # numba: no locator available
            kernel = njit(function, nogil=True, **options)
        return kernel

    return compile_it
