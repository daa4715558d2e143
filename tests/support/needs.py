"""What a machine may lack: there the tests that need it are skipped; in CI they fail.

``.ci/run`` sets ``PIXELPONG_NEEDS_BROWSER``, ``…_STRACE`` and ``…_MOUNT`` on a machine that has all
of it. Where any of them is set, a promise none of whose tests has run fails the run, too.
"""

from __future__ import annotations

import os
from typing import Literal, NoReturn

import pytest

PREFIX = "PIXELPONG_NEEDS_"


def is_needed(what: Literal["BROWSER", "STRACE", "MOUNT"]) -> bool:
    """Whether this machine must have it."""
    return PREFIX + what in os.environ


def is_anything_needed() -> bool:
    """Whether this is a machine on which every promise must be tested."""
    return any(name.startswith(PREFIX) for name in os.environ)


def lacks(what: Literal["BROWSER", "STRACE", "MOUNT"], reason: str) -> NoReturn:
    """End this test, because the machine lacks what it needs."""
    if is_needed(what):
        pytest.fail(reason)
    pytest.skip(reason)
