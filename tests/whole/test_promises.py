"""Each promise of `docs/reliability.md` has a test, which has run where the machine allows it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import promises
import pytest

import pixelpong

SKIPPED = """
import pytest
from promises import promise

@promise("rot")
@pytest.mark.parametrize("place", range(2))
def test_that_is_skipped(place):
    if place == 0 or {all}:
        pytest.skip("there is no disk")
"""

ALL_THAT_A_MACHINE_MAY_LACK = """
from promises import promise
from test_network import traced
from test_saves import test_a_fault_at_a_system_call_of_a_save_leaves_the_old_or_the_new

@promise("the disk may fill")
def test_a_disk(small_disk):
    assert small_disk("1m").is_dir()

@promise("the page asks nobody")
def test_a_page(open_page):
    assert open_page

@promise("nothing leaves")
def test_a_trace(tmp_path):
    assert traced(["true"], tmp_path)

def test_that_this_machine_can_run():
    assert True
"""


def test_each_promise_has_a_test_and_the_page_names_it():
    page = promises.PAGE.read_text("utf-8")
    assert promises.written_page() == page, "run: python tests/support/promises.py"
    rows = re.findall(r"^\| (?!name)[^|]+\| [^|]+\| ([^|]*)\|$", page, flags=re.M)
    assert len(rows) == len(promises.find_marks()) >= 20
    assert all(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("all", "workers"), [(True, 0), (True, 2), (False, 0)])
def test_a_promise_whose_tests_were_all_skipped_fails_the_run_in_ci(run_tests, all, workers):
    words = SKIPPED.format(all=all), "-n", str(workers)
    code, said = run_tests(*words, PIXELPONG_NEEDS_STRACE="1")
    assert code == (1 if all else 0), said
    line = "test of these promises has run: 'rot'\nbecause: there is no disk\n"
    assert (f"FAILED: no {line}" in said) == all
    code, said = run_tests(*words)
    assert code == 0, said
    assert (f"No {line}" in said) == all


@pytest.mark.slow
def test_a_machine_without_browser_strace_mounts_and_root_passes(run_tests, tmp_path):
    """With nothing on the PATH but Python, and no right that root has and others have not."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("env", "uname"):
        (commands / name).symlink_to(shutil.which(name))
    drop = shutil.which("setpriv") if os.geteuid() == 0 else None
    if os.geteuid() == 0 and drop is None:
        pytest.skip("no setpriv on this machine, with which root gives up its rights")
    within = [drop, "--bounding-set=-all", "--inh-caps=-all"] if drop else []
    tests = Path(__file__).parents[1]
    paths = [tests, tests / "support", tests / "whole", tests / "run"]
    code, said = run_tests(
        ALL_THAT_A_MACHINE_MAY_LACK, within=within, PATH=str(commands),
        PYTHONPATH=os.pathsep.join([*map(str, paths), os.environ["PYTHONPATH"]]),
    )  # fmt: skip
    assert code == 0, said
    assert re.search(r"\b1 passed, \d+ skipped", said), said
    for lack in ("no Chromium", "no strace", "no file system can be mounted"):
        assert lack in said.split("because: ")[1], said


def test_what_is_tested_is_this_checkout(tmp_path):
    """Here and in the processes that tests start: an installed copy passes whatever is edited."""
    script = "import pixelpong; print(pixelpong.__file__)"
    said = subprocess.check_output([sys.executable, "-c", script], cwd=tmp_path, text=True)
    for file in (pixelpong.__file__, said.strip()):
        source = Path(__file__).parents[2] / "src"
        assert Path(file).is_relative_to(source), "run: pip install -c constraints.txt -e '.[dev]'"
