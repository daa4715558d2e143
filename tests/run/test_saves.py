"""A save is all or nothing: with a fault at each of its system calls in turn."""

from __future__ import annotations

import json
import subprocess
import sys

import needs
import pytest
import save_under_strace
from promises import promise
from save_under_strace import SCENARIOS


@promise("kill")
@pytest.mark.slow
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_at_a_system_call_of_a_save_leaves_the_old_or_the_new(tmp_path, scenario, every):
    words = [save_under_strace.__file__, tmp_path, scenario, every]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True)
    if "strace cannot be had" in done.stderr:
        needs.lacks("STRACE", done.stderr.strip())
    assert done.returncode == 0, done.stderr
    endings = json.loads(done.stdout)
    print(scenario, endings)
    fewest = {"killed": 30, "refused": 40, "saved": 50 * (scenario != "first")}
    for ending, number in fewest.items():
        assert endings.get(ending, 0) >= number / every
