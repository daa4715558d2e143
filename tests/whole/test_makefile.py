"""The Makefile on machines other than ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def write_python(path: Path, script: str) -> Path:
    """A program in Python's place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def make(*words: object) -> tuple[int, str]:
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", ROOT, *map(str, words)],
        capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (
            'case "$2" in *ensurepip*) exit 1;; esac',
            "{} cannot make virtual environments; on Debian and Ubuntu: apt-get install "
            "python3-venv",
        ),
        (
            'case "$2" in *version_info*) exit 1;; esac\necho Python 3.9.2',
            "pixelpong needs Python 3.11 or newer, and this is Python 3.9.2; try: "
            "make PYTHON=python3.12",
        ),
    ],
    ids=["no venv", "an old Python"],
)
def test_a_python_that_cannot_do_it_is_refused_in_one_line(tmp_path, script, line):
    python = write_python(tmp_path / "python", script)
    code, said = make(f"PYTHON={python}", f"VENV={tmp_path / 'venv'}", tmp_path / "venv/made")
    assert code == 2
    assert said.splitlines()[0] == line.format(python)
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    "here",
    [
        "sys.platform, platform.machine = 'darwin', lambda: 'x86_64'",
        "sysconfig.get_config_var = lambda name: 'cpython-312-x86_64-linux-musl'",
    ],
    ids=["Intel Mac", "Alpine"],
)
def test_where_a_package_is_missing_one_line_says_it_before_pip_compiles(tmp_path, here):
    (tmp_path / "here.py").write_text(f"import platform, sys, sysconfig\n{here}\n")
    begin = f"PYTHONPATH={tmp_path} {sys.executable}"
    python = write_python(tmp_path / "python", f'{begin} -c "import here; $2"')
    code, said = make(f"PYTHON={python}", f"VENV={tmp_path / 'venv'}", tmp_path / "venv/made")
    assert code == 2
    assert said.startswith("pixelpong cannot be installed here: Intel Macs and Alpine Linux have")
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("is_copy", [True, False])
def test_an_installed_copy_is_replaced_by_the_checkout(tmp_path, is_copy):
    write_python(tmp_path / "bin/python", f"echo {is_copy}")
    for stamp in ("made", "core", "dev", "docs"):
        (tmp_path / stamp).touch()
    code, said = make("-n", f"VENV={tmp_path}", "quick")
    assert code == 0
    assert ('-e ".[dev]"' in said) == is_copy
