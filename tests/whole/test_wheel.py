"""The wheel: the same bits wherever and whenever it is made, and all that it takes to work.

It is made by the pinned hatchling without the network. `make soak` and a release install it in an
environment of its own, as a user does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import network_guard
import pytest
from promises import promise

pytestmark = promise("the wheel")

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
    return run_hatchling(folder, "wheel", **changes)


def run_hatchling(folder: Path, target: str, **changes: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "dist"]
    subprocess.run(command, cwd=folder, env=environment(**changes), check=True, capture_output=True)
    (built,) = (folder / "dist").iterdir()
    return built


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
        assert {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()} == {0o644}
        contents = {name: archive.read(name) for name in archive.namelist()}
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    wanted = {path.relative_to(ROOT / "src").as_posix(): path.read_bytes() for path in files}
    wanted = {name: content for name, content in wanted.items() if "__pycache__" not in name}
    assert {name: contents.pop(name, None) for name in wanted} == wanted
    assert wanted.keys() >= {"pixelpong/py.typed", "pixelpong/agent/shipped/champion.safetensors"}
    assert {Path(name).suffix for name in wanted} <= SUFFIXES
    rest = {name.partition(".dist-info/")[2] for name in contents}
    assert rest == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


@pytest.mark.slow
def test_the_sdist_of_a_worktree_has_no_path_of_the_machine(tmp_path):
    """Git keeps the path of the repository in a file there; in a clone, `.git` is a folder."""
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src" / "pixelpong").mkdir(parents=True)
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "src" / "pixelpong")
    (tmp_path / ".git").write_text(f"gitdir: {tmp_path}/pixelpong/.git/worktrees/one\n")
    with tarfile.open(run_hatchling(tmp_path, "sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"pyproject.toml", "src/pixelpong/__init__.py"}
    assert ".git" not in names


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_wheel_works_in_a_clean_environment(wheel, tmp_path):
    """As a user installs it: pip asks the index for what it needs."""
    programs = tmp_path / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", programs.parent], check=True)
    words = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    ours = {network_guard.LOG, "PYTHONPATH"}
    unwatched = {name: each for name, each in os.environ.items() if name not in ours}
    words += ["-c", "constraints.txt", f"{wheel}[play]"]
    subprocess.run(words, check=True, cwd=ROOT, env=unwatched)

    def call(*words: str | Path) -> str:
        return subprocess.check_output(words, cwd=tmp_path, env=environment(), text=True)

    imported = "import pixelpong, pixelpong.faces.page.server; print(pixelpong.__file__)"
    where = call(programs / "python", "-c", imported)
    assert Path(where.strip()).is_relative_to(programs.parent)
    training = ["train", "--max-frames", "300", "--updates", "1", "--json"]
    report = json.loads(call(programs / "pixelpong", *training))
    assert re.fullmatch("[0-9a-f]{64}", report["params_sha256"])
