"""The disk may fill: whatever has no room, the training ends in one line or goes on without it.

Real file systems of a few kilobytes or megabytes, and the system's limit on the size of a file.
What is written whole, each file by itself: `test_writers`.
"""

from __future__ import annotations

import contextlib
import re

import pytest
from disks import file_size_limit, remount
from promises import promise
from toys import result_of

from pixelpong.errors import RunError, warn
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile


@pytest.fixture
def whole(make_run, mode) -> RunDirectory:
    """A training where there is room, which writes every kind of file."""
    often = {"save_every": 2, "save_agent_every": 1, "evaluate_every": 3, "evaluate_episodes": 2}
    run = make_run("whole", updates=8, hidden=20 if mode == "classic" else 4, **often)
    train(run)
    return run


def train_until_full(run: RunDirectory) -> str:
    """The one line that it ended with, or "" where it came to its end; what is left is sound."""
    error = ""
    try:
        train(run)
    except RunError as refused:
        error = str(refused)
    found = RunDirectory(run.path)
    updates = found.checkpoints.updates()
    if updates:
        assert found.checkpoints.load_latest().update == updates[-1]
    else:
        assert not found.has_begun
    for file in found.line_files:
        content = file.path.read_bytes() if file.path.exists() else b""
        assert content == b"" or content.endswith(b"\n"), file.path
        assert len(list(file.read())) == content.count(b"\n"), file.path
    return error


def check_little_room(folder, whole: RunDirectory, little_room) -> str:
    """Train with little room, again, and then with enough; the line that the first ended with."""
    path = folder / "run"
    with little_room:
        try:
            run = RunDirectory.create(path, whole.config)
        except RunError as refused:  # there is no room for the configuration
            assert not path.exists(), "the name is free once there is room"
            error = str(refused)
        else:
            error = train_until_full(run)
            assert not train_until_full(RunDirectory(path)) or error
    run = RunDirectory(path) if path.exists() else RunDirectory.create(path, whole.config)
    train(run)
    assert result_of(run) == result_of(whole)
    assert re.fullmatch(r"(cannot write .*(No space left|File too large).*)?", error)
    return error


@contextlib.contextmanager
def disk_of(disk, size: int):
    """A disk of so many kilobytes, which is a large one afterwards."""
    remount(disk, f"size={size}k")
    yield
    remount(disk, "size=32m")


EVERY = {"classic": range(100, 1_000, 10), "fast": range(100, 6_000, 60)}
"""Kilobytes, in steps of a hundredth of what is enough."""


@promise("the disk may fill")
@pytest.mark.slow
@pytest.mark.parametrize(
    "is_long", [False, pytest.param(True, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]
)
def test_with_little_room_nothing_is_lost(small_disk, tmp_path, whole, is_long):
    """On a disk of any size, and with files of any size."""
    for limit in (300, 3000, 2_000_000):
        error = check_little_room(tmp_path / str(limit), whole, file_size_limit(limit))
        assert (error == "") == (limit == 2_000_000)
    sizes = [*range(4, 100, 4), *EVERY[whole.config.preset]] if is_long else [4, 64, 200]
    for size in (*sizes, 8_000):
        disk = small_disk("32m")
        error = check_little_room(disk, whole, disk_of(disk, size))
        assert "No space left" in error or size > 200
        for path in (disk / "run").rglob("*.safetensors"):
            path.unlink()  # so many disks take as much memory
    assert error == ""


@pytest.mark.slow
@pytest.mark.parametrize("word", ["agents", "too large"])
def test_without_a_place_for_agents_the_training_goes_on(
    tmp_path, whole, capsys, monkeypatch, word
):
    """And if they are too large for a file."""
    run = RunDirectory.create(tmp_path / "run", whole.config)
    if word == "agents":
        run.agents.folder.touch()  # no folder can be made there
    else:
        monkeypatch.setattr("pixelpong.agent.file.MAX_WEIGHTS", 1)
    train(run)
    said = capsys.readouterr().err.splitlines()
    assert sum(word in line for line in said) > 3
    for line in said:
        assert (word in line) == line.endswith("; training continues without it")
    assert result_of(run) == result_of(whole)


@promise("lines first")
def test_a_line_of_which_the_disk_takes_a_part_is_taken_back(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    file.cut_back(0)
    file.append({"update": 1})
    before = file.path.read_bytes()
    with file_size_limit(len(before) + 7):
        with pytest.raises(RunError, match=r"cannot write to .*lines\.jsonl: "):
            file.append({"update": 2})
    assert file.path.read_bytes() == before


def test_a_warning_that_nobody_can_read_ends_nothing(monkeypatch):
    full = open("/dev/full", "w")  # noqa: SIM115 - closing it raises
    monkeypatch.setattr("sys.stderr", full)
    warn("the disk behind 2> is full")
    with pytest.raises(OSError):
        full.close()
