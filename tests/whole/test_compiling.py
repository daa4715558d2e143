"""The cache of compiled kernels: what it is made from, and where it may be."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from pixelpong import compiling

KERNEL = """
from constants import FACTOR
from pixelpong.compiling import compiled

@compiled()
def scale(x):
    return FACTOR * x
"""


@pytest.fixture
def scale_by(tmp_path, monkeypatch):
    """What a new process gets from a kernel whose constant, in another file, is this."""
    package, cache = tmp_path / "package", tmp_path / "cache"
    (package / "learn").mkdir(parents=True)
    kernel = tmp_path / "kernel.py"
    kernel.write_text(KERNEL)
    monkeypatch.syspath_prepend(package / "learn")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(cache))
    monkeypatch.setattr(compiling, "_PACKAGE", package)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # whose time stamps have whole seconds

    def load(factor: float) -> float:
        (package / "learn/constants.py").write_text(f"FACTOR = {factor}\n")
        sys.modules.pop("constants", None)
        compiling._hash_of_sources.cache_clear()
        found = runpy.run_path(str(kernel))["scale"](10.0)
        sys.modules.pop("constants", None)
        return found

    yield load
    compiling._hash_of_sources.cache_clear()


def test_a_constant_that_was_edited_in_another_file_reaches_the_kernels(scale_by, tmp_path):
    assert scale_by(2.0) == 20.0
    (code,) = (tmp_path / "cache").rglob("*.nbc")
    written = code.stat().st_mtime_ns
    assert scale_by(2.0) == 20.0
    assert code.stat().st_mtime_ns == written, "it was read, not compiled again"
    assert scale_by(3.0) == 30.0


def test_what_kernels_import_is_among_the_sources():
    """Or an edit of it would not be noticed."""
    package = Path(compiling.__file__).parent
    for path in (package / "kernels").glob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("from pixelpong.") and "TYPE_CHECKING" not in line:
                room = line.split()[1].removeprefix("pixelpong.").split(".")[0]
                known = [name.removesuffix(".py") for name in compiling._SOURCES]
                assert room in [*known, "compiling", "errors"], line


WORDS = ["train", "--preset", "classic", "--updates", "1", "--max-frames", "300", "--hidden", "8"]


def run_in(folder: Path, **changes: str) -> subprocess.CompletedProcess:
    """Train in a folder, with variables changed."""
    words = [sys.executable, "-m", "pixelpong", *WORDS, "--batch-size", "2"]
    environment = {**os.environ, **changes}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def test_without_numbas_compiler_one_line_says_so_and_no_run_is_made(tmp_path):
    done = run_in(tmp_path, NUMBA_DISABLE_JIT="1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("pixelpong: error: NUMBA_DISABLE_JIT is set")
    assert not list(tmp_path.iterdir())


def test_without_a_home_no_folder_of_that_sign_appears(tmp_path, monkeypatch):
    """Where numba cannot write beside the package, it would make ``~/.cache`` right here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    (tmp_path / "kernel.py").write_text(
        KERNEL.replace("from constants import FACTOR", "FACTOR = 2")
    )
    assert runpy.run_path("kernel.py")["scale"](10.0) == 20.0
    assert not [path for path in tmp_path.rglob("*") if "~" in path.name or path.suffix == ".nbc"]
