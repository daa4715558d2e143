"""The disk may fill: whatever has no room, the training ends in one line or goes on without it.

Real file systems of a few kilobytes or megabytes, and the system's limit on the size of a file.
What is written whole, each file by itself: `test_writers`.
"""

from __future__ import annotations

import contextlib
import functools
import re

import pytest
from disks import file_size_limit, remount
from promises import promise
from toys import FEW, disk_toy, result_of

from pixelpong.errors import RunError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the training comes to where there is room, by preset."""

    @functools.cache
    def train_once(preset: str) -> tuple:
        run = RunDirectory.create(tmp_path_factory.mktemp(preset) / "run", disk_toy(preset))
        train(run)
        return result_of(run)

    return train_once


def train_until_full(run: RunDirectory) -> str:
    """The one line that it ended with, or "" where it came to its end."""
    try:
        train(run)
    except RunError as error:
        assert re.fullmatch(r"cannot write .*(No space left|File too large).*", str(error))
        return str(error)
    return ""


def require_sound(run: RunDirectory) -> None:
    """The last checkpoint can be loaded, none is damaged, and each line is whole."""
    again = RunDirectory(run.path)
    if again.checkpoints.updates():
        assert again.checkpoints.load_latest().update == again.checkpoints.updates()[-1]
    else:
        assert not again.has_begun
    for file in again.line_files:
        if file.path.exists():
            content = file.path.read_bytes()
            assert content == b"" or content.endswith(b"\n"), file.path
            assert len(list(file.read())) == content.count(b"\n"), file.path


@pytest.mark.slow
def test_without_a_place_for_agents_the_training_goes_on(tmp_path, undisturbed, capsys):
    run = RunDirectory.create(tmp_path / "run", disk_toy("fast"))
    run.agents.folder.touch()  # no folder can be made there
    assert train_until_full(run) == ""
    said = capsys.readouterr().err.splitlines()
    assert sum("agents" in line for line in said) > 3
    for line in said:
        assert ("agents" in line) == line.endswith("; the training continues without it")
    assert result_of(run) == undisturbed("fast")


def check_little_room(folder, preset: str, whole: tuple, little_room) -> str:
    """Train with little room, again, and then with enough; the line that the first ended with."""
    path = folder / "run"
    with little_room:
        try:
            error = train_until_full(RunDirectory.create(path, disk_toy(preset)))
        except RunError as refused:  # there is no room for the configuration
            assert not path.exists(), "the name is free once there is room"
            error = str(refused)
        else:
            require_sound(RunDirectory(path))
            assert not train_until_full(RunDirectory(path)) or error
            require_sound(RunDirectory(path))
    run = RunDirectory(path) if path.exists() else RunDirectory.create(path, disk_toy(preset))
    train(run)
    assert result_of(run) == whole
    return error


@contextlib.contextmanager
def disk_of(disk, size: str):
    """A disk of this size, which is a large one afterwards."""
    remount(disk, f"size={size}")
    yield
    remount(disk, "size=32m")


@promise("the disk may fill")
@pytest.mark.slow
def test_with_little_room_nothing_is_lost(small_disk, tmp_path, undisturbed):
    """On a disk of any size, and with files of any size."""
    whole = undisturbed("classic")
    for size in ("4k", "64k", "200k", "8m"):
        disk = small_disk("32m")
        error = check_little_room(disk, "classic", whole, disk_of(disk, size))
        assert ("No space left" in error) == (size != "8m")
    for limit in (300, 3000, 30_000, 2_000_000):
        folder = tmp_path / str(limit)
        error = check_little_room(folder, "classic", whole, file_size_limit(limit))
        assert (error == "") == (limit == 2_000_000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("preset", FEW)
def test_on_disks_of_every_size_nothing_is_lost(small_disk, undisturbed, preset):
    """In steps of 4 kB at first, and then of a hundredth of what is enough."""
    ended, enough = [], 1_000 if preset == "classic" else 6_000
    for kilobytes in [*range(4, 100, 4), *range(100, enough, enough // 100)]:
        disk, whole = small_disk("32m"), undisturbed(preset)
        ended.append(check_little_room(disk, preset, whole, disk_of(disk, f"{kilobytes}k")))
        for path in (disk / "run").rglob("*.safetensors"):
            path.unlink()  # so many disks take as much memory
    print(f"{preset}: {len(ended)} disks, {ended.count('')} with room enough")
    assert 0 < ended.count("") < len(ended)


@promise("lines first")
def test_a_line_of_which_the_disk_takes_a_part_is_taken_back(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    file.append({"update": 1})
    before = file.path.read_bytes()
    with file_size_limit(len(before) + 7):
        with pytest.raises(RunError, match=r"cannot write to .*lines\.jsonl: "):
            file.append({"update": 2})
    assert file.path.read_bytes() == before
