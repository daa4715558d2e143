"""The tests' own waiting: it ends, and then says for what it waited."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import waiting
from waiting import exit_code, join, wait_until

ENDLESS = re.compile(
    r"(?<!def )\bsleep\((?!0\))|\.(join|communicate)\(\)"
    r"|(?<!driver)(?<!training)\.wait\(\)|\btimeout=None"
)
"""A `Driver` waits no longer than these."""


def test_a_wait_ends_with_what_came_true():
    found = iter([0, "", None, "there", "later"])
    assert wait_until(lambda: next(found)) == "there"


def test_a_wait_in_vain_shows_its_condition_and_what_that_looks_at():
    seen = [3, 4]
    with pytest.raises(AssertionError) as failure:
        wait_until(lambda: len(seen) == 1, seconds=0.01)
    first, source, value = str(failure.value).splitlines()
    assert first == "after 0.01 s this was still not so:"
    assert source == "wait_until(lambda: len(seen) == 1, seconds=0.01)"
    assert value == "seen = [3, 4]"


def test_a_wait_in_vain_for_a_file_names_it(tmp_path):
    with pytest.raises(AssertionError, match=re.escape(str(tmp_path / "never"))):
        wait_until((tmp_path / "never").exists, seconds=0.01)


@pytest.mark.parametrize(("load", "shares"), [(0.0, 1), (3.0, 1), (8.0, 2), (1000.0, 4)])
def test_where_cores_are_shared_a_wait_may_be_longer(monkeypatch, load, shares):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    clock = iter(range(10_000))
    monkeypatch.setattr(waiting, "monotonic", lambda: next(clock))
    asked = []
    with pytest.raises(AssertionError, match="after 120 s"):
        wait_until(lambda: asked.append(1), meanwhile=lambda: None)
    assert len(asked) == 120 * shares + 1


def test_processes_and_threads_that_do_not_end_are_not_waited_for_either(monkeypatch):
    goes_on = threading.Event()
    thread = threading.Thread(target=goes_on.wait, daemon=True)
    thread.start()
    endless = [sys.executable, "-c", "input()"]
    with subprocess.Popen(endless, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        with pytest.raises(AssertionError, match="process = <Popen: .* '-c'"):
            exit_code(process, seconds=0.01)
        process.stdin.close()
        assert exit_code(process) == 1
    monkeypatch.setattr(waiting, "wait_until", lambda condition: wait_until(condition, 0.01))
    with pytest.raises(AssertionError, match=r"workers = \(<Thread"):
        join(thread)
    goes_on.set()
    monkeypatch.undo()
    join(thread)


def test_no_test_sleeps_or_waits_without_an_end():
    """`pause` and the waits of `waiting` say why, and end."""
    tests = Path(__file__).parents[1]
    files = {*tests.rglob("*.py")} - {Path(waiting.__file__), Path(__file__)}
    assert len(files) > 100
    endless = [
        f"{path.relative_to(tests)}:{number}: {line.strip()}"
        for path in sorted(files)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if ENDLESS.search(line)
    ]
    assert not endless, "use `wait_until`, `exit_code`, `join` or `pause` of tests/support/waiting"
