"""A save is all or nothing: with a fault at each of its system calls in turn."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import save_under_strace
from promises import promise
from save_under_strace import SCENARIOS

HELPER = Path(save_under_strace.__file__)


class Saver:
    """The helper program, asked fault by fault."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HELPER), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, scenario: str, index: int | None, what: str = "", is_lasting: bool = False):
        """What came of a fault."""
        fault = {"scenario": scenario, "index": index, "what": what, "is_lasting": is_lasting}
        self._process.stdin.write(json.dumps(fault) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            error = self._process.stderr.read().strip()
            if "strace cannot be had" in error and "PIXELPONG_NEEDS_STRACE" not in os.environ:
                pytest.skip(error)
            raise AssertionError(error)
        return json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()


@pytest.fixture
def saver(tmp_path):
    if not shutil.which("strace") and "PIXELPONG_NEEDS_STRACE" not in os.environ:
        pytest.skip("strace is not installed: no faults at system calls")
    saver = Saver(tmp_path)
    yield saver
    saver.close()


FAULTS = [
    ("kill", False), ("ENOSPC", False), ("ENOSPC", True), ("EIO", False), ("EIO", True)
]  # fmt: skip


def check_fault(saver: Saver, scenario: str, index: int, what: str, is_lasting: bool) -> str:
    """Assert what holds after any fault; return how the save ended."""
    it = saver.ask(scenario, index, what, is_lasting)
    where = f"{scenario}, call {index}, {what}{' from there on' if is_lasting else ''}: {it}"
    assert it["found"] in (it["old"], it["new"]), where
    assert it["found_after_sweep"] == it["found"], where
    assert it["left"] == [], where
    assert it["saved_again"] == it["new"], where
    damaged = [line for line in it["warnings"] if "trying another checkpoint" in line]
    assert len(damaged) == 0 or scenario == "mended", where
    kinds = [kind for kind, _ in it["told"] if kind != "warning"]
    assert it["killed"] == (kinds == []) == (what == "kill"), where
    assert kinds in ([], ["saved"], ["refused"]), where
    if kinds == ["saved"]:
        assert it["found"] == it["new"], where
    for _, text in it["told"]:
        assert text == "" or (text.startswith("cannot ") and "\n" not in text), where
    return "killed" if it["killed"] else kinds[0]


def check_all(saver: Saver, scenario: str, every: int) -> dict[str, int]:
    """Every so manyth call, and every one that gives a name, with every kind of fault.

    Returns:
        How many saves ended how.
    """
    calls = saver.ask(scenario, None)
    endings: dict[str, int] = {}
    for index, name in enumerate(calls["calls"]):
        for number, (what, is_lasting) in enumerate(FAULTS):
            is_chosen = (index + number) % every == 0 or name.startswith("rename")
            if not is_chosen or not (what == "kill" or calls["on_disk"][index]):
                continue
            ended = check_fault(saver, scenario, index, what, is_lasting)
            endings[ended] = endings.get(ended, 0) + 1
    print(f"{scenario}: {len(calls['calls'])} calls, {endings}")
    return endings


@promise("kill")
@pytest.mark.slow
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_at_a_system_call_of_a_save_leaves_the_old_or_the_new(saver, scenario, every):
    endings = check_all(saver, scenario, every)
    fewest = {"killed": 30, "refused": 40, "saved": 50 * (scenario != "first")}
    for ending, number in fewest.items():
        assert endings.get(ending, 0) >= number / every
