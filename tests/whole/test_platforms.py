"""The comparison of two systems by their lines; `tests/platforms` measures them, at night."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[1] / "platforms" / "check.py"


@pytest.mark.parametrize(
    ("here", "there", "is_same"),
    [
        ("# Linux\na: 1\n? b: 2\n", "# Windows\na: 1\n? b: 3\n", True),  # ale-py's may differ
        ("a: 1\n", "a: 2\n", False),
        ("a: 1\n", "a: 1\nc: 3\n", False),
        ("a: 1\nc: 3\n", "a: 1\n", False),
        ("# Linux\n? b: 2\n", "# Linux\n? b: 2\n", False),  # nothing was measured
    ],
)
def test_systems_are_the_same_if_all_lines_that_must_be_are(here, there, is_same, tmp_path):
    for name, text in (("here", here), ("there", there)):
        (tmp_path / name).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-S", CHECK, "--compare", "here", "there"],  # needs no package
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (not is_same, "")
    shown = {line[2:] for line in done.stdout.splitlines() if line[0] in "<>"}
    kept = [{line for line in text.splitlines() if line[0] != "#"} for text in (here, there)]
    assert shown == kept[0] ^ kept[1]
