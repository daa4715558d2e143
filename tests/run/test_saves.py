"""A save is all or nothing: with a fault at each of its system calls in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
import save_under_strace
from promises import promise
from save_under_strace import SCENARIOS


def check_fault(it: dict, scenario: str) -> str:
    """Assert what holds after any fault; return how the save ended."""
    assert it["found"] in (it["old"], it["new"]), it
    assert it["found_after_sweep"] == it["found"], it
    assert it["left"] == [], it
    assert it["saved_again"] == it["new"], it
    damaged = [line for line in it["warnings"] if "trying another checkpoint" in line]
    assert len(damaged) == 0 or scenario == "mended", it
    kinds = [kind for kind, _ in it["told"] if kind != "warning"]
    assert it["killed"] == (kinds == []) == (", kill," in it["fault"]), it
    assert kinds in ([], ["saved"], ["refused"]), it
    if kinds == ["saved"]:
        assert it["found"] == it["new"], it
    for _, text in it["told"]:
        assert text == "" or (text.startswith("cannot ") and "\n" not in text), it
    return "killed" if it["killed"] else kinds[0]


@promise("kill")
@pytest.mark.slow
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_at_a_system_call_of_a_save_leaves_the_old_or_the_new(tmp_path, scenario, every):
    words = [save_under_strace.__file__, tmp_path, scenario, every]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True)
    if "strace cannot be had" in done.stderr and "PIXELPONG_NEEDS_STRACE" not in os.environ:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    endings = Counter(check_fault(outcome, scenario) for outcome in outcomes)
    print(f"{scenario}: {outcomes[-1]['fault']} at last, {dict(endings)}")
    fewest = {"killed": 30, "refused": 40, "saved": 50 * (scenario != "first")}
    for ending, number in fewest.items():
        assert endings[ending] >= number / every
