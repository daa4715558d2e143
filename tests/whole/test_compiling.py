"""The cache of compiled kernels: what it is made from, and where it may be."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from waiting import PATIENCE, pause

import pixelpong
from pixelpong.atari.machine import cache
from pixelpong.atari.steps import compiling
from pixelpong.pong.observations import FIELD

KERNEL = """
from package.constants import FACTOR
from pixelpong.atari.steps.compiling import compiled

@compiled()
def scale(x):
    return FACTOR * x
"""


def forget() -> None:
    """Forget what a process remembers about caches, as a new process would."""
    for function in (compiling._follow_imports, compiling._list_imports, compiling._read_source):
        function.cache_clear()
    compiling._list_modules.cache_clear()
    compiling._drop_damaged.cache_clear()
    cache._warn_once.cache_clear()


@pytest.fixture
def scale_by(tmp_path, monkeypatch):
    """What a new process gets from a kernel whose constant, in another file, is this."""
    package, cache = tmp_path / "package", tmp_path / "cache"
    package.mkdir()
    kernel = tmp_path / "kernel.py"
    kernel.write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(cache))
    monkeypatch.setattr(compiling, "_PACKAGE", package)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # whose time stamps have whole seconds

    def load(factor: float) -> float:
        (package / "constants.py").write_text(f"FACTOR = {factor}\n")
        sys.modules.pop("package.constants", None)
        forget()
        found = runpy.run_path(str(kernel))["scale"](10.0)
        sys.modules.pop("package.constants", None)
        return found

    yield load
    forget()


def test_a_constant_that_was_edited_in_another_file_reaches_the_kernels(scale_by, tmp_path):
    assert scale_by(2.0) == 20.0
    (code,) = (tmp_path / "cache").rglob("*.nbc")
    written = code.stat().st_mtime_ns
    assert scale_by(2.0) == 20.0
    assert code.stat().st_mtime_ns == written, "it was read, not compiled again"
    assert scale_by(3.0) == 30.0


@pytest.mark.parametrize(
    "classes",
    [
        *("InTreeCacheLocator", "UserWideCacheLocator", "IPythonCacheLocator"),
        *("UserProvidedCacheLocator,InTreeCacheLocator", "NoSuchLocator", "no.such.Locator", ","),
    ],
)
def test_whatever_locators_numba_has_an_edit_is_noticed(scale_by, tmp_path, monkeypatch, classes):
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", classes)
    assert [scale_by(2.0), scale_by(2.0), scale_by(3.0)] == [20.0, 20.0, 30.0]
    assert len([*tmp_path.rglob("*.nbc")]) == len([*(tmp_path / "cache").rglob("*.nbc")]) == 2
    assert classes == numba.config.CACHE_LOCATOR_CLASSES


def test_a_kernels_sources_are_all_that_it_imports_at_any_depth():
    """Found here by importing them: what a process has then loaded of the package."""
    script = (
        "import sys, inspect\n"
        "from pixelpong.atari.steps import compiling\n"
        "from pixelpong.pong.observations import FIELD\n"
        "known = compiling._follow_imports(frozenset({compiling.Path(sys.argv[1])}))\n"
        "names = [name for name in sys.modules if name.startswith('pixelpong.')]\n"
        "loaded = [sys.modules[name].__file__ for name in names]\n"
        "print(*sorted({*loaded} - {str(path) for path in known}))\n"
        "print(len(known))\n"
    )
    source = Path(pixelpong.__file__).parent / "pong/observations.py"
    out = subprocess.check_output([sys.executable, "-c", script, source], text=True)
    missing, number = out.splitlines()
    folders = [it for it in missing.split() if it.endswith("__init__.py")]
    assert missing.split() == folders, "these have no code"
    assert int(number) > 30


def test_a_step_is_compiled_from_the_module_of_its_observation_too(monkeypatch):
    hashed = []
    monkeypatch.setattr(
        compiling, "_follow_imports", lambda files: hashed.append({it.name for it in files}) or []
    )
    compiling._hash_sources(FIELD.step.__wrapped__)
    assert hashed == [{"stepping.py", "observations.py"}]


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


def test_a_file_that_switches_numbas_compiler_off_is_named(tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / ".numba_config.yaml").write_text("disable_jit: 1\n")
    done = run_in(tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "disable_jit" in done.stderr
    assert ".numba_config.yaml" in done.stderr
    assert "NUMBA_DISABLE_JIT" not in done.stderr


def test_without_a_home_kernels_are_kept_beside_the_package_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    monkeypatch.setattr(compiling, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(compiling, "_hash_sources", lambda function: "0123")
    compiling._drop_damaged.cache_clear()
    kernel = KERNEL.replace("from package.constants import FACTOR", "FACTOR = 2")
    Path("kernel.py").write_text(kernel)
    assert runpy.run_path("kernel.py")["scale"](10.0) == 20.0
    (code,) = tmp_path.rglob("*.nbc")
    assert tmp_path / "package/__pycache__/kernels-0123" in code.parents
    Path("package").rename("elsewhere")
    Path("package").touch()  # nothing can be written in it
    assert runpy.run_path("kernel.py")["scale"](10.0) == 20.0
    assert [*tmp_path.rglob("*.nbc")] == [*Path("elsewhere").absolute().rglob("*.nbc")]


def test_there_is_one_cache_folder(tmp_path, monkeypatch):
    """For the machine's code and that of kernels, unless numba has got one of its own."""
    monkeypatch.setenv("PIXELPONG_CACHE_DIR", str(tmp_path / "ours"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert compiling._find_folder("0123").parent == tmp_path / "ours"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    assert compiling._find_folder("0123").parent == tmp_path / "numba"


def test_a_terminal_is_told_once_that_kernels_are_compiled(scale_by, monkeypatch, capsys):
    """And nothing is printed if stderr is a file, or if the code comes from the cache."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    compiling._announce.cache_clear()
    runs = []
    for factor in (2.0, 2.0, 3.0):
        scale_by(factor)
        runs.append(capsys.readouterr())
    compiling._announce.cache_clear()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    scale_by(4.0)
    runs.append(capsys.readouterr())
    assert [run.out for run in runs] == [""] * 4
    assert [run.err for run in runs] == [f"{LINE}\n", "", "", ""]


LINE = "Compiling the kernels for this processor, once …"


def test_threads_that_call_a_kernel_first_at_once_make_one(monkeypatch):
    made, meet, decorate = [], threading.Barrier(4), compiling._decorate

    def counted(*given):
        made.append(given)
        return decorate(*given)

    def find_folder(sources):
        pause(0.05)  # the others come meanwhile

    monkeypatch.setattr(compiling, "_decorate", counted)
    monkeypatch.setattr(compiling, "_find_folder", find_folder)
    double = compiling.compiled()(lambda x: x + x)

    def play(number):
        entry = compiling.Entry(double)
        meet.wait(PATIENCE)
        return [entry(np.full(2, number)).tolist() for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(play, range(4))) == [[[2 * k] * 2] * 3 for k in range(4)]
    assert len(made) == 1


def test_games_find_the_types_of_their_arrays_once():
    """Each part of them: nothing depends on the types of another cartridge's arrays."""
    games = ["pong", "breakout", "air_raid"]
    envs = pixelpong.make_vec(games=games, full_action_space=True, num_threads=2)
    envs.reset(seed=0)
    entries = [entry for share in envs._games._steps for entry in share]
    assert len({*map(id, entries)}) == 3
    for entry in entries:
        entry._kernel = None  # which would find them again
    assert envs.step(np.zeros(3, int))[0].shape == (3, 4, 84, 84)
