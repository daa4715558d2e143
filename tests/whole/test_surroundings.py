"""Clock, environment, machine: wherever it is started, it works, or says why not in one line."""

from __future__ import annotations

import json
import os
import re
import runpy
import stat
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from disks import remount
from promises import promise

from pixelpong.atari.steps import compiling
from pixelpong.config.presets import load_preset
from pixelpong.loop import train
from pixelpong.run import directory
from pixelpong.run.directory import RunDirectory

pytestmark = promise("any surroundings")

SMALL = {"max_frames": 300, "hidden": 10, "batch_size": 2, "updates": 2, "workers": 1}
WORDS = ["train", "--preset", "classic"]
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


def call(folder: Path, *words: str, before=(), changes=None, **options):
    """Run our command in a folder, with variables changed, or removed if they are None."""
    environment = {**os.environ, **(changes or {})}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [*before, sys.executable, "-m", "pixelpong", *words], cwd=folder, env=environment,
        capture_output=True, encoding="utf-8", errors="replace", **options,
    )  # fmt: skip


def config_of(**changes):
    return load_preset("classic").updated(SMALL | {"engine": "serial"} | changes, "test")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> str:
    """The hash that all must come to."""
    run = RunDirectory.create(tmp_path_factory.mktemp("plain") / "run", config_of())
    return train(run).params_sha256


ODD = {
    "nothing": {
        "HOME": None, "USER": None, "TERM": None, "COLUMNS": None, "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict",
    },
    "nonsense": {
        "HOME": "/proc/nowhere", "TMPDIR": "/proc/nowhere", "XDG_CACHE_HOME": None,
        "TERM": "dumb", "LINES": "-1", "COLUMNS": "none",
    },
    "no streams": {},
    "a clock that jumps": {},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", ODD)
def test_in_odd_surroundings_a_run_comes_to_the_same_bits(tmp_path, undisturbed, what):
    """And writes its own files alone, readable for its owner alone."""
    folder, changes, before = "Läufe für Pong/ρ = 1, 漢字", ODD[what], []
    commands = [[*WORDS, "--run", folder]]
    if what == "no streams":
        before = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    if what == "a clock that jumps":
        (tmp_path / "sitecustomize.py").write_text(LANDS_ASTRAY)
        changes = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}"}
        probe = "import time; print(max(abs(time.time() - time.time()) for _ in range(50)))"
        jump = subprocess.check_output([sys.executable, "-c", probe], env={**os.environ, **changes})
        assert float(jump) > 1e8, "the clock does not jump"
        commands = [[*commands[0], "--updates=1"], ["resume", folder, "--updates=2"]]
    for words in commands:
        done = call(tmp_path, *words, before=before, changes=changes, umask=0o077)
        assert (done.returncode, "warning" in done.stderr, "Error" in done.stderr) == (0, 0, 0)
    run = RunDirectory(tmp_path / folder)
    assert run.checkpoints.load_latest().card["about"]["params_sha256"] == undisturbed
    for path in [run.path, *run.path.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert re.fullmatch(rb"\d+\n", (run.path / "run.lock").read_bytes())
    for file in run.line_files:
        assert all(json.loads(line) for line in file.path.read_bytes().splitlines())
    assert all(0 < line["timing"]["wall_seconds"] < 1e6 for line in run.metrics.read())
    if what == "nothing":
        done = call(tmp_path, "runs", folder + "?", changes=changes)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)


KERNEL = """
from pixelpong.atari.steps.compiling import compiled

@compiled()
def double(x):
    return 2 * x
"""


@pytest.fixture
def load_kernel(tmp_path, monkeypatch):
    """Load the kernel in a file, as a new process with this cache would."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)

    def load(cache: Path):
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(cache))
        compiling._drop_damaged.cache_clear()
        return runpy.run_path(str(file))["double"]

    return load


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_cache_of_kernels_is_made_anew(tmp_path, load_kernel, kind):
    """Numba unpickles its index and its code, so damage of any kind can raise anything."""
    cache = tmp_path / "cache"
    assert load_kernel(cache)(21) == 42
    (file,) = cache.rglob(f"*.{kind}")
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], b"\xbe" + whole[1:]):
        (file,) = cache.rglob(f"*.{kind}")
        file.write_bytes(damaged)
        written = []
        for _ in range(2):  # the second time it is read
            assert load_kernel(cache)(21) == 42
            (file,) = cache.rglob(f"*.{kind}")
            written.append(file.stat().st_mtime_ns)
        assert (file.read_bytes() == damaged, written[0] == written[1]) == (False, True)


@pytest.mark.parametrize("room", [0, 4096, 8192, None], ids=str)
def test_a_cache_of_kernels_that_cannot_be_written_costs_time_alone(load_kernel, small_disk, room):
    """On a full disk, one with room for the index or some of the code; None: a read-only one."""
    disk = small_disk("64k")
    if room is None:
        remount(disk, "ro")
    else:
        (disk / "others").write_bytes(bytes(65536 - room))
    for _ in range(2):
        double = load_kernel(disk / "cache")
        assert (double(21), double(4)) == (42, 8)
    assert not list(disk.rglob("*.nbc"))


@pytest.mark.slow
def test_with_other_versions_a_run_continues_with_a_warning_and_no_word_of_another_machine(
    tmp_path, undisturbed, monkeypatch
):
    machine = directory.describe_machine() | {"processor": "MOS 6502"}
    versions = directory.collect_versions() | {"numpy": "1.0"}
    monkeypatch.setattr(directory, "describe_machine", lambda: machine)
    monkeypatch.setattr(directory, "collect_versions", lambda: versions)
    train(RunDirectory.create(tmp_path / "run", config_of(updates=1)))
    done = call(tmp_path, "resume", "run", "--updates", "2", "--json")
    assert json.loads(done.stdout)["params_sha256"] == undisturbed
    (line,) = [line for line in done.stderr.splitlines() if "warning" in line]
    for words in ("numpy 1.0 → ", "may no longer match"):
        assert words in line
    assert "6502" not in done.stderr
