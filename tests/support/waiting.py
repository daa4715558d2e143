"""Waiting for what happens, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object]) -> bool:
    """Wait until `condition` comes true, and return True; the test's own timeout ends the wait."""
    while not condition():
        time.sleep(0.01)
    return True
