"""The wheel: the same bits wherever and whenever it is made, and all that it takes to work.

It is made by the pinned hatchling without the network. Into the clean environment here come the
dependencies of the one that runs the tests; `make soak` installs them anew, as a user does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import network_guard
import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = ["pyproject.toml", "README.md", "LICENSE", ".gitignore"]
SUFFIXES = {".py", ".typed", ".toml", ".safetensors", ".json", ".html", ".js", ".css"}
NEEDED = {
    "py.typed", "config/presets/fast.toml", "config/presets/classic.toml",
    "agent/shipped/beginner.safetensors", "agent/shipped/champion.safetensors",
    "faces/page/static/index.html", "faces/page/static/app.js",
    "faces/recorded_left.json",
    "faces/recorded_steps.json",
}  # fmt: skip
TOY = ["--max-frames", "300", "--updates", "2", "--workers", "2"]
GUARD = str(Path(network_guard.__file__).parent)


def environment(**changes: str) -> dict[str, str]:
    """What a child inherits: nothing of this checkout, and nothing that a build reads."""
    ours = {"PYTHONPATH", "SOURCE_DATE_EPOCH"}
    return {name: value for name, value in os.environ.items() if name not in ours} | changes


def copy_sources(folder: Path) -> Path:
    """What the wheel is made from, and nothing that a checkout gathers."""
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in SOURCES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(folder: Path, **changes: str) -> Path:
    """The wheel that the sources in `folder` give."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    changes["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = subprocess.run(
        command, cwd=folder, env=environment(**changes), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (folder / "dist").iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(copy_sources(tmp_path_factory.mktemp("wheel") / "sources"))


@pytest.mark.slow
def test_the_same_sources_give_the_same_wheel_wherever_and_whenever(wheel, tmp_path):
    """Here in a folder of another name, years earlier, with other rights, used before."""
    folder = copy_sources(tmp_path / "another place" / "Ünder")
    (folder / "src" / "pixelpong" / "__pycache__").mkdir()
    (folder / "src" / "pixelpong" / "__pycache__" / "cli.cpython-311.pyc").write_bytes(b"x")
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
            os.utime(path, (1e9, 1e9))
    other = build(folder, TZ="Pacific/Kiritimati", LC_ALL="C", PYTHONHASHSEED="7")
    assert other.name == wheel.name
    digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (wheel, other)]
    print(wheel.name, digests[0])
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_the_wheel_holds_what_it_needs_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modes = {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    package = {name.removeprefix("pixelpong/") for name in names if name.startswith("pixelpong/")}
    rest = {name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name}
    present = {
        path.relative_to(ROOT / "src" / "pixelpong").as_posix()
        for path in (ROOT / "src" / "pixelpong").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package == present
    assert package >= NEEDED
    assert {Path(name).suffix or name for name in package} <= SUFFIXES | {"py.typed"}
    assert rest == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert len(names) == len(package) + len(rest)
    assert modes == {0o644}


def make_venv(folder: Path, *packages: str) -> Path:
    """The folder of programs of a new environment with these packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *packages],
        check=True,
        cwd=ROOT,
        env=environment(),
    )
    return folder / "bin"


@contextlib.contextmanager
def watched(programs: Path, folder: Path) -> Iterator[str]:
    """The address of the page, served from the environment."""
    command = [programs / "pixelpong", "watch", "--no-open", "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(PYTHONPATH=GUARD), stderr=subprocess.PIPE, text=True
    ) as server:
        port = re.search(r":(\d+)/", server.stderr.readline())[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


def smoke(programs: Path, folder: Path, wheel: Path, presets: tuple[str, ...]) -> None:
    """A toy training each, the package's agent, and the page; all of it from the environment."""

    def call(*words: str) -> str:
        done = subprocess.run(
            [programs / "pixelpong", *words],
            cwd=folder, env=environment(PYTHONPATH=GUARD), capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    where = "import pixelpong; print(pixelpong.__file__)"
    found = subprocess.check_output(
        [programs / "python", "-c", where], cwd=folder, env=environment(PYTHONPATH=GUARD), text=True
    )
    assert Path(found.strip()).is_relative_to(programs.parent)
    assert "train" in call("--help")
    for preset in presets:
        report = call(
            "train", "--preset", preset, *TOY, "--workers", "2", "--run", preset, "--json"
        )
        assert re.fullmatch("[0-9a-f]{64}", json.loads(report)["params_sha256"])
    assert json.loads(call("inspect", "fast", "--json"))
    with watched(programs, folder) as address, zipfile.ZipFile(wheel) as archive:
        static = "pixelpong/faces/page/static/"
        for name in archive.namelist():
            if name.startswith(static):
                path = "/" if name.endswith("index.html") else "/static/" + Path(name).name
                served = urllib.request.urlopen(address + path, timeout=20).read()
                assert served == archive.read(name), name
        reel = urllib.request.urlopen(address + "/api/runs/package/reels/agent/0", timeout=60)
        assert reel.status == 200


@pytest.mark.slow
def test_the_wheel_works_from_a_clean_environment(wheel, tmp_path):
    programs = make_venv(tmp_path / "venv", "--no-index", "--no-deps", str(wheel))
    (site,) = (programs.parent / "lib").glob("python*/site-packages")
    dependencies = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    smoke(programs, tmp_path, wheel, ("fast",))


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_wheel_works_with_dependencies_installed_anew(wheel, tmp_path):
    """From the network, which is what whoever calls `make soak` asks for; the core alone first."""
    programs = make_venv(tmp_path / "venv", "-c", "constraints.txt", str(wheel))
    words = [programs / "pixelpong", "watch", "--no-open", "--port", "0"]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(PYTHONPATH=GUARD), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.strip().endswith("got none; pip install 'pixelpong[play]'")
    shutil.rmtree(programs.parent)
    programs = make_venv(tmp_path / "venv", "-c", "constraints.txt", f"{wheel}[web]")
    smoke(programs, tmp_path, wheel, ("fast", "classic"))
