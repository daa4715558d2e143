"""Clock, environment, machine: wherever it is started, it works, or says why not in one line."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import pixelpong
from pixelpong.config.presets import load_preset
from pixelpong.loop import train
from pixelpong.run.arrays import fingerprint
from pixelpong.run.directory import RunDirectory

TOY = [
    "--preset", "classic", "--max-frames", "300", "--hidden", "10", "--batch-size", "2",
    "--updates", "2", "--workers", "1",
]  # fmt: skip
SAME = {
    "max_frames": 300, "hidden": 10, "batch_size": 2, "updates": 2, "engine": "serial",
}  # fmt: skip
LANDS_ASTRAY = """
import random, time
_years, _random = 3e7, random.Random(5)
_time, _ns = time.time, time.time_ns
time.time = lambda: _time() + _random.choice((-20, 0, 60)) * _years
time.time_ns = lambda: _ns() + int(_random.choice((-20, 0, 60)) * _years * 1e9)
"""
PLAIN = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
ODD_NAME = "Läufe für Pong/ρ = 1, 漢字"


def call(folder: Path, *words: str, changes=None, **options) -> subprocess.CompletedProcess[str]:
    """Run our command in a folder, with variables changed, or removed where they are None."""
    environment = {**os.environ, **(changes or {})}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-m", "pixelpong", *words],
        cwd=folder, env=environment, capture_output=True, encoding="utf-8", errors="replace",
        timeout=120, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> str:
    """The hash that all must come to."""
    config = load_preset("classic").updated(SAME, "test")
    return train(
        RunDirectory.create(tmp_path_factory.mktemp("plain") / "run", config)
    ).params_sha256


@pytest.fixture
def astray(tmp_path) -> dict[str, str]:
    """Variables with which the clock jumps back and forth by decades, in workers too."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(LANDS_ASTRAY)
    paths = [str(tmp_path / "clock"), str(Path(pixelpong.__file__).parents[1])]
    return {"PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.slow
def test_a_clock_that_jumps_changes_nothing(tmp_path, undisturbed, astray):
    probe = "import time; print(max(abs(time.time() - time.time()) for _ in range(50)))"
    done = subprocess.run(
        [sys.executable, "-c", probe], env={**os.environ, **astray}, capture_output=True, text=True
    )
    assert float(done.stdout) > 1e8, "the clock does not jump"
    done = call(tmp_path, "train", *TOY, "--run", "run", "--json", changes=astray)
    report = json.loads(done.stdout)
    assert report["params_sha256"] == undisturbed
    assert 0 < report["training_seconds"] < report["wall_seconds"] + 1 < 200
    words = ["resume", "run", "--updates", "3", "--json"]
    assert json.loads(call(tmp_path, *words, changes=astray).stdout)["update"] == 3
    for line in RunDirectory.open(tmp_path / "run").metrics.read():
        assert 0 < line["timing"]["wall_seconds"] < 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"HOME": None, "USER": None, "TERM": None, "COLUMNS": None, **PLAIN},
        {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": None, "TERM": "dumb", "COLUMNS": "80"},
        pytest.param({"COLUMNS": "nonsense", "LINES": "-1"}, marks=pytest.mark.soak),
        pytest.param({**PLAIN, "PYTHONIOENCODING": "ascii:strict"}, marks=pytest.mark.soak),
        pytest.param({"TMPDIR": "/proc/nowhere"}, marks=pytest.mark.soak),
    ],
    ids=lambda changes: " ".join(f"{name}={value}" for name, value in changes.items()),
)
def test_in_other_environments_the_result_is_the_same(tmp_path, undisturbed, changes):
    done = call(tmp_path, "train", *TOY, "--run", ODD_NAME, changes=changes)
    assert (done.returncode, done.stderr) == (0, "")
    run = RunDirectory.open(tmp_path / ODD_NAME)
    assert fingerprint(run.checkpoints.load_latest().params) == undisturbed
    done = call(tmp_path, "inspect", ODD_NAME + "?", changes=changes)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("pixelpong: error: expected a run directory")


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", pytest.param(">&-", marks=pytest.mark.soak)])
def test_without_standard_streams_no_word_ends_up_in_a_file(tmp_path, undisturbed, closed):
    words = [sys.executable, "-m", "pixelpong", "train", *TOY, "--run", "run"]
    script = f'exec "$@" {closed}'
    done = subprocess.run(["sh", "-c", script, "sh", *words], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0
    run = RunDirectory.open(tmp_path / "run")
    assert fingerprint(run.checkpoints.load_latest().params) == undisturbed
    assert re.fullmatch(rb"\d+\n", (tmp_path / "run" / "run.lock").read_bytes())
    for file in run.line_files:
        assert all(json.loads(line) for line in file.path.read_bytes().splitlines())


@pytest.mark.slow
def test_under_a_strict_umask_files_are_the_owners_alone(tmp_path, undisturbed):
    words = ["train", *TOY, "--run", "run", "--json", "--engine", "serial"]
    done = call(tmp_path, *words, umask=0o077)
    assert json.loads(done.stdout)["params_sha256"] == undisturbed
    for path in [tmp_path / "run", *(tmp_path / "run").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, pytest.param(3, marks=pytest.mark.soak)])
def test_the_display_keeps_to_the_terminals_columns(tmp_path, undisturbed, columns):
    """On a real terminal, where it lives; with no room at all it still works."""
    pty = pytest.importorskip("pty")
    fcntl, struct, termios = (pytest.importorskip(n) for n in ("fcntl", "struct", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    name = f"run-{columns}"
    process = subprocess.Popen(
        [sys.executable, "-m", "pixelpong", "train", *TOY, "--run", name],
        cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert process.wait(60) == 0
    run = RunDirectory.open(tmp_path / name)
    assert fingerprint(run.checkpoints.load_latest().params) == undisturbed
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    live = [line for line in re.split(r"[\r\n]+", text) if "steps a second" in line]
    assert columns == 3 or 0 < max(map(len, live)) <= 80, max(live, key=len)


@pytest.mark.slow
def test_a_package_that_cannot_be_written_to_works_without_a_home(tmp_path, undisturbed):
    """Numba finds no place for what it compiles: each process compiles for itself."""
    package = tmp_path / "site" / "pixelpong"
    shutil.copytree(
        Path(pixelpong.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    mount = ["mount", "--bind", "-o", "ro", str(package), str(package)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"only root can mount a folder: {done.stderr.strip()}")
    try:
        with pytest.raises(OSError):
            (package / "file").touch()
        changes = {
            "PYTHONPATH": str(package.parent), "HOME": "/proc/nowhere", "XDG_CACHE_HOME": None,
            "NUMBA_CACHE_DIR": None,
        }  # fmt: skip
        words = ["train", *TOY, "--run", "run", "--json", "--engine", "serial"]
        done = call(tmp_path, *words, changes=changes)
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
        assert json.loads(done.stdout)["params_sha256"] == undisturbed
        assert not list(package.rglob("*.nbi"))
    finally:
        subprocess.run(["umount", str(package)], check=True)


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
@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:100], lambda content: b"\xbe" + content[1:]],
)
def test_a_damaged_cache_of_kernels_is_made_anew(tmp_path, monkeypatch, kind, damage):
    """Numba unpickles its index and its code, so damage of any kind can raise anything."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert load_kernel(tmp_path)(21) == 42
    (file,) = (tmp_path / "cache").rglob(f"*.{kind}")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
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


@pytest.mark.soak
def test_a_damaged_cache_of_all_kernels_is_made_anew(tmp_path, undisturbed):
    changes = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    words = ["train", *TOY, "--json", "--engine", "serial"]
    assert call(tmp_path, *words, "--run", "cold", changes=changes).returncode == 0
    files = sorted((tmp_path / "cache").rglob("*.nb[ic]"))
    assert len(files) > 4
    for number, file in enumerate(files):
        content = file.read_bytes()
        file.write_bytes([b"", content[:100], b"\xbe" + content[1:]][number % 3])
    for name in ("mended", "warm"):
        done = call(tmp_path, *words, "--run", name, changes=changes)
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
        assert json.loads(done.stdout)["params_sha256"] == undisturbed


# --- other machines ---------------------------------------------------------------------------


@pytest.mark.slow
def test_on_another_machine_a_run_goes_on_with_a_word(tmp_path, undisturbed):
    config = load_preset("classic").updated(SAME | {"updates": 1}, "test")
    train(RunDirectory.create(tmp_path / "run", config))
    file = tmp_path / "run" / "config.json"
    content = json.loads(file.read_text())
    content["machine"]["processor"] = "MOS 6502"
    content["versions"]["numpy"] = "1.0"
    del content["sha256"]  # as it would be if it had been written there
    file.write_text(json.dumps(content))
    done = call(tmp_path, "resume", "run", "--updates", "2", "--json")
    assert json.loads(done.stdout)["params_sha256"] == undisturbed
    assert done.stderr.startswith("warning: this run was started elsewhere (")
    (line,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert "processor MOS 6502 → " in line
    assert "numpy 1.0 → " in line
    assert "the same bits as without a break are no longer promised" in line
    assert call(tmp_path, "inspect", "run").stderr == ""  # who only looks is promised nothing
