"""Systems compared by their lines, and ways to install; `tests/platforms` runs them, at night."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PLATFORMS = Path(__file__).parents[1] / "platforms"
CHECK = PLATFORMS / "check.py"
PAGE = PLATFORMS.parents[1] / "docs" / "platforms.md"


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


def test_the_page_has_a_row_for_each_way_to_install():
    (rows,) = re.findall(r'^all="([^"]*)"', (PLATFORMS / "install.sh").read_text("utf-8"), re.M)
    shown = re.findall(
        r"^\| `([^`]*)` .*`tests/platforms/install.sh FOLDER ([^`]*)` \|",
        PAGE.read_text("utf-8"),
        re.M,
    )
    assert shown == [(row, row) for row in rows.split()]


FAKE_PYTHON = """#!/bin/sh
case $2 in
    hatchling) mkdir -p "$5" && touch "$5/it.whl" "$5/it.tar.gz" ;;
    venv) mkdir -p "$4/bin" ;;
    pip) program=${4%/*}/pixelpong && cp "$INSTALLED" "$program" && chmod +x "$program" ;;
    pixelpong) echo ' "params_sha256": "a1",' ;;
esac
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("rows", "installed", "code", "said"),
    [
        ("sdist", """echo ' "params_sha256": "a1",'""", 0, "sdist: ok"),
        ("sdist", """echo ' "params_sha256": "a2",'""", 1, "a2 instead of a1"),
        ("sdist", """echo ' "params_sha256": "a1",'; exit 1""", 1, "exit code 1"),
        ("sdist", "true", 1, "none instead of a1"),
        ("wheel-3.14", "true", 3, "there is no Python 3.14"),
        ("wheel-3.14 sdist wheel-3.14", "true", 1, "none instead of a1"),
        ("wheels", "true", 1, "no such row"),
    ],
)
def test_an_installation_that_differs_fails(rows, installed, code, said, tmp_path):
    (tmp_path / "installed").write_text(f"#!/bin/sh\n{installed}\n")
    (tmp_path / "python").write_text(FAKE_PYTHON)
    (tmp_path / "python").chmod(0o755)
    changes = {name: str(tmp_path / name.lower()) for name in ("PYTHON", "INSTALLED")}
    done = subprocess.run(
        ["sh", PLATFORMS / "install.sh", tmp_path / "a folder", *rows.split()],
        env=os.environ | changes | {"PYTHONS": "none"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr
