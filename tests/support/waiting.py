"""Waiting for what happens, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(condition: Callable[[], object]) -> bool:
    """Wait until `condition` comes true, and return True; the test's own timeout ends the wait."""
    while not condition():
        time.sleep(0.01)
    return True


def wait_for_checkpoint(run: Path) -> None:
    """Wait for any from the second on: on a fast machine, each is there for milliseconds only."""
    found = (run / "checkpoints").glob
    wait_until(lambda: any(each.name > "000001" for each in found("0*")))
