"""Clock, environment, machine: wherever it is started, it works, or says why not in one line."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from pixelpong.config.presets import load_preset
from pixelpong.loop import train
from pixelpong.run import directory
from pixelpong.run.directory import RunDirectory

SMALL = {"max_frames": 300, "hidden": 10, "batch_size": 2, "updates": 2, "workers": 1}
WORDS = ["train", "--preset", "classic", "--run", "run", "--json"]
WORDS += [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
LANDS_ASTRAY = """
import random, time
_years, _random = 3e7, random.Random(5)
_time, _ns = time.time, time.time_ns
time.time = lambda: _time() + _random.choice((-20, 0, 60)) * _years
time.time_ns = lambda: _ns() + int(_random.choice((-20, 0, 60)) * _years * 1e9)

import network_guard  # in the place of its own sitecustomize
network_guard.install()
"""
PLAIN = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def call(folder: Path, *words: str, changes=None, **options) -> subprocess.CompletedProcess[str]:
    """Run our command in a folder, with variables changed, or removed if they are None."""
    environment = {**os.environ, **(changes or {})}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-m", "pixelpong", *words],
        cwd=folder, env=environment, capture_output=True, encoding="utf-8", errors="replace",
        timeout=120, **options,
    )  # fmt: skip


def before_ours(folder: Path) -> str:
    """A path on which a folder comes first, and the guard of the network is still found."""
    return f"{folder}{os.pathsep}{os.environ['PYTHONPATH']}"


def config_of(**changes):
    return load_preset("classic").updated(SMALL | {"engine": "serial"} | changes, "test")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> str:
    """The hash that all must come to."""
    run = RunDirectory.create(tmp_path_factory.mktemp("plain") / "run", config_of())
    return train(run).params_sha256


@pytest.mark.slow
def test_a_clock_that_jumps_changes_nothing(tmp_path, undisturbed):
    """Back and forth by decades, in workers too."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(LANDS_ASTRAY)
    astray = {"PYTHONPATH": before_ours(tmp_path / "clock")}
    probe = "import time; print(max(abs(time.time() - time.time()) for _ in range(50)))"
    jump = subprocess.check_output([sys.executable, "-c", probe], env={**os.environ, **astray})
    assert float(jump) > 1e8, "the clock does not jump"
    report = json.loads(call(tmp_path, *WORDS, changes=astray).stdout)
    assert report["params_sha256"] == undisturbed
    assert 0 < report["training_seconds"] < report["total_seconds"] + 1 < 200
    words = ["resume", "run", "--updates", "3", "--json"]
    assert json.loads(call(tmp_path, *words, changes=astray).stdout)["update"] == 3
    for line in RunDirectory(tmp_path / "run").metrics.read():
        assert 0 < line["timing"]["wall_seconds"] < 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"HOME": None, "USER": None, "TERM": None, "COLUMNS": None, **PLAIN},
        {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": None, "TERM": "dumb", "LINES": "-1"},
        pytest.param({**PLAIN, "PYTHONIOENCODING": "ascii:strict"}, marks=pytest.mark.soak),
        pytest.param({"TMPDIR": "/proc/nowhere", "COLUMNS": "none"}, marks=pytest.mark.soak),
    ],
    ids=["nothing", "odd", "ascii", "no tmp"],
)
def test_in_other_environments_the_result_is_the_same(tmp_path, undisturbed, changes):
    name = "Läufe für Pong/ρ = 1, 漢字"
    done = call(tmp_path, *WORDS, "--run", name, changes=changes, umask=0o077)
    assert (done.returncode, "warning" in done.stderr, "Error" in done.stderr) == (0, False, False)
    run = RunDirectory(tmp_path / name)
    assert run.checkpoints.load_latest().card["about"]["params_sha256"] == undisturbed
    for path in [run.path, *run.path.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    done = call(tmp_path, "runs", name + "?", changes=changes)
    assert (done.returncode in (1, 2), done.stderr.count("\n")) == (True, 1)
    assert done.stderr.startswith("pixelpong: error: expected ")


@pytest.mark.slow
def test_without_standard_streams_no_word_ends_up_in_a_file(tmp_path, undisturbed):
    words = [sys.executable, "-m", "pixelpong", *WORDS]
    script = 'exec "$@" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", *words], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0
    run = RunDirectory(tmp_path / "run")
    assert run.checkpoints.load_latest().card["about"]["params_sha256"] == undisturbed
    assert re.fullmatch(rb"\d+\n", (tmp_path / "run" / "run.lock").read_bytes())
    for file in run.line_files:
        assert all(json.loads(line) for line in file.path.read_bytes().splitlines())


KERNEL = """
from pixelpong.compiling import compiled

@compiled()
def double(x):
    return 2 * x
"""


def load_kernel(folder: Path):
    """The kernel in a file, as a new process would have it."""
    spec = importlib.util.spec_from_file_location("kernel", folder / "kernel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_cache_of_kernels_is_made_anew(tmp_path, monkeypatch, kind):
    """Numba unpickles its index and its code, so damage of any kind can raise anything."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert load_kernel(tmp_path)(21) == 42
    (file,) = (tmp_path / "cache").rglob(f"*.{kind}")
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], b"\xbe" + whole[1:]):
        (file,) = (tmp_path / "cache").rglob(f"*.{kind}")
        file.write_bytes(damaged)
        assert load_kernel(tmp_path)(21) == 42
        (kept,) = (tmp_path / "cache").rglob(f"*.{kind}")
        assert len(kept.read_bytes()) > len(whole) - 100
        before = kept.stat().st_mtime_ns
        assert load_kernel(tmp_path)(21) == 42
        assert kept.stat().st_mtime_ns == before, "it was compiled again"


@pytest.mark.parametrize("room", [0, 4096, 8192, None], ids=str)
def test_a_cache_of_kernels_that_cannot_be_written_costs_time_alone(
    tmp_path, monkeypatch, small_disk, room
):
    """On a full disk, one with room for the index or some of the code; None: a read-only one."""
    disk = small_disk("64k")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(disk / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL)
    if room is None:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    else:
        (disk / "others").write_bytes(bytes(65536 - room))
    for _ in range(2):
        double = load_kernel(tmp_path)
        assert (double(21), double(4)) == (42, 8)
    assert not list(disk.rglob("*.nbc"))


@pytest.mark.slow
def test_on_another_machine_a_run_continues_with_a_warning(tmp_path, undisturbed, monkeypatch):
    machine = directory.describe_machine() | {"processor": "MOS 6502"}
    versions = directory.collect_versions() | {"numpy": "1.0"}
    monkeypatch.setattr(directory, "describe_machine", lambda: machine)
    monkeypatch.setattr(directory, "collect_versions", lambda: versions)
    train(RunDirectory.create(tmp_path / "run", config_of(updates=1)))
    done = call(tmp_path, "resume", "run", "--updates", "2", "--json")
    assert json.loads(done.stdout)["params_sha256"] == undisturbed
    (line,) = [line for line in done.stderr.splitlines() if "warning" in line]
    for words in ("processor MOS 6502 → ", "numpy 1.0 → ", "are no longer promised"):
        assert words in line
