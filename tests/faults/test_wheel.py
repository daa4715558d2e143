"""The wheel: the same bits wherever and whenever it is made, and all that it takes to work.

It is made by the pinned hatchling without the network. Into the clean environment here come the
dependencies of the one that runs the tests; `make soak` installs them anew, as a user does.
"""

from __future__ import annotations

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
from pathlib import Path

import network_guard
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pixelpong"
SUFFIXES = {"", ".py", ".toml", ".safetensors", ".json", ".html", ".js", ".css", ".svg", ".typed"}
GUARD = str(Path(network_guard.__file__).parent)


def environment(**changes: str) -> dict[str, str]:
    """What a child inherits: nothing of this checkout, and nothing that a build reads."""
    names = set(os.environ) - {"SOURCE_DATE_EPOCH"}
    return {name: os.environ[name] for name in names} | {"PYTHONPATH": GUARD} | changes


def build(folder: Path, **changes: str) -> Path:
    """The wheel that a copy of the sources gives, without what a checkout gathers."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    if changes:  # as if it had been used, and copied by something else
        (folder / "src" / "pixelpong" / "__pycache__").mkdir()
        (folder / "src" / "pixelpong" / "__pycache__" / "cli.cpython-311.pyc").write_bytes(b"x")
        for path in folder.rglob("*"):
            if path.is_file():
                path.chmod(stat.S_IRUSR | stat.S_IWUSR)
                os.utime(path, (1e9, 1e9))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(command, cwd=folder, env=environment(**changes), check=True, capture_output=True)
    (wheel,) = (folder / "dist").iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel") / "sources")


@pytest.mark.slow
def test_the_same_sources_give_the_same_wheel_wherever_and_whenever(wheel, tmp_path):
    """Here in a folder of another name, years earlier, with other rights, used before."""
    odd = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    other = build(tmp_path / "another place" / "Ünder", **odd)
    digests = [hashlib.sha256(each.read_bytes()).hexdigest() for each in (wheel, other)]
    assert (other.name, digests[0]) == (wheel.name, digests[1])


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()} == {0o644}
    package = {name.removeprefix("pixelpong/") for name in names if name.startswith("pixelpong/")}
    rest = {name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name}
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    present = {path.relative_to(PACKAGE).as_posix() for path in files}
    assert package == {name for name in present if "__pycache__" not in name}
    assert package >= {"py.typed", "agent/shipped/champion.safetensors", "config/presets/fast.toml"}
    assert {Path(name).suffix for name in package} <= SUFFIXES
    assert rest == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert len(names) == len(package) + len(rest)


def make_venv(folder: Path, *packages: str) -> Path:
    """The folder of programs of a new environment; pip may ask the index for these packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    words = ["-m", "pip", "--python", python, "install", "--quiet", *packages]
    ours = {network_guard.LOG, "PYTHONPATH"}
    unwatched = {name: each for name, each in os.environ.items() if name not in ours}
    subprocess.run([sys.executable, *words], check=True, cwd=ROOT, env=unwatched)
    return folder / "bin"


def smoke(programs: Path, folder: Path, wheel: Path) -> None:
    """A short training, the package's agent and the page; all of it from the environment."""

    def call(*words: str | Path) -> str:
        return subprocess.check_output(words, cwd=folder, env=environment(), text=True)

    where = call(programs / "python", "-c", "import pixelpong; print(pixelpong.__file__)")
    assert Path(where.strip()).is_relative_to(programs.parent)
    training = ["train", "--max-frames", "300", "--updates", "1", "--run", "fast", "--json"]
    report = json.loads(call(programs / "pixelpong", *training))
    assert re.fullmatch("[0-9a-f]{64}", report["params_sha256"])
    command = [programs / "pixelpong", "dashboard", "--no-open", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
    )
    with server, zipfile.ZipFile(wheel) as archive:
        port = re.search(r":(\d+)/", server.stderr.readline())[1]
        static = [name for name in archive.namelist() if "/static/" in name]
        assert len(static) >= 3
        for name in static:
            path = "/" if name.endswith("index.html") else f"/static/{Path(name).name}"
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                assert answer.read() == archive.read(name), name
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("where", ["here", "anew"])
def test_the_wheel_works_in_a_clean_environment(wheel, tmp_path, where):
    """With the dependencies that are installed here, and with those that pip brings."""
    if where == "anew":
        programs = make_venv(tmp_path / "venv", "-c", "constraints.txt", f"{wheel}[play]")
    else:
        programs = make_venv(tmp_path / "venv", "--no-index", "--no-deps", str(wheel))
        (site,) = (programs.parent / "lib").glob("python*/site-packages")
        folders = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
        (site / "dependencies.pth").write_text("\n".join(folders))
    smoke(programs, tmp_path, wheel)
