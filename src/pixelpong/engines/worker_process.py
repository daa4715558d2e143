"""What every process of a worker is set to, whichever engine has started it."""

from __future__ import annotations

import contextlib
import ctypes

from threadpoolctl import threadpool_limits

_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

_OWN_PAGES_BYTES = 1 << 20
"""An array as large as this has pages of its own, which the system gets back with it."""


def settle() -> None:
    """One BLAS thread, and a heap that does not grow; to be called once NumPy is loaded.

    Workers fighting over cores through BLAS threads is the classic way to be slower in parallel;
    environment variables come too late once NumPy is imported.

    glibc learns from the first large array that is freed to take such arrays from its heap; as
    episodes differ in length, the holes there differ too, and the heap grows by some pages a
    minute for hours. Where a threshold is set, it learns nothing. Other C libraries have none.
    """
    threadpool_limits(limits=1)
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_BYTES)
