"""The disk may fill: whatever has no room, the training ends in one line or goes on without it.

Real file systems of a few kilobytes or megabytes, and the system's limit on the size of a file.
"""

from __future__ import annotations

import contextlib
import functools
import re
import resource
import signal
import subprocess

import pytest
from toys import result_of

from pixelpong.config.presets import load_preset
from pixelpong.errors import RunError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile

TOY = {
    "max_frames": 300, "engine": "serial", "hidden": 20, "updates": 8, "save_every": 2,
    "evaluate_every": 3, "evaluate_episodes": 2, "save_agent_every": 1,
}  # fmt: skip
FEW = {"classic": {"batch_size": 3}, "fast": {"num_envs": 3, "num_steps": 60, "hidden": 4}}


def toy(preset: str):
    return load_preset(preset).updated(TOY | FEW[preset], "test")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the training comes to where there is room, by preset."""

    @functools.cache
    def train_once(preset: str) -> tuple:
        run = RunDirectory.create(tmp_path_factory.mktemp(preset) / "run", toy(preset))
        train(run)
        return result_of(run)

    return train_once


def train_until_full(run: RunDirectory) -> str | None:
    """The one line that it ended with, or None where it came to its end."""
    try:
        train(run)
    except RunError as error:
        line = r"expected to .*(No space left|File too large).*"
        assert re.fullmatch(line, str(error))
        return str(error)
    return None


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


def resize(disk, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


# --- one file has no room ---------------------------------------------------------------------


@pytest.fixture
def narrow(small_disk):
    """Let a file or folder of a run lie on a disk of its own."""
    with contextlib.ExitStack() as mounts:

        def mount(path, size: str, *, is_folder: bool = False):
            disk = small_disk(size)
            for each in (disk / path.name, path):
                each.mkdir() if is_folder else each.touch()
            subprocess.run(["mount", "--bind", str(disk / path.name), str(path)], check=True)
            mounts.callback(subprocess.run, ["umount", str(path)], check=True)
            return disk

        yield mount


@pytest.mark.slow
def test_without_room_for_a_line_the_training_stops_and_resumes_to_the_same_bits(
    tmp_path, narrow, undisturbed
):
    run = RunDirectory.create(tmp_path / "run", toy("fast"))
    disk = narrow(run.metrics.path, "4k")
    error = train_until_full(run)
    assert f"to write to {run.metrics.path}, got No space left on device" in error
    require_sound(run)
    resize(disk, "1m")
    train(RunDirectory(run.path))
    assert result_of(run) == undisturbed("fast")


@pytest.mark.slow
def test_without_room_for_agents_the_training_goes_on(tmp_path, narrow, undisturbed, capsys):
    run = RunDirectory.create(tmp_path / "run", toy("fast"))
    narrow(run.agents.folder, "4k", is_folder=True)
    assert train_until_full(run) is None
    of_it = [line for line in capsys.readouterr().err.splitlines() if "agents" in line]
    assert of_it
    assert all("got No space left on device; make room" in line for line in of_it)
    assert all(line.endswith("; the training continues without it") for line in of_it)
    require_sound(run)
    assert result_of(run) == undisturbed("fast")


# --- the whole disk ---------------------------------------------------------------------------


def check_disk(disk, size: str, preset: str, whole: tuple) -> str | None:
    """Train on a disk of this size; after making room, go on."""
    resize(disk, size)
    try:
        run = RunDirectory.create(disk / "run", toy(preset))
    except RunError as error:
        assert "No space left" in str(error)
        assert not (disk / "run").exists()
        return str(error)
    error = train_until_full(run)
    require_sound(run)
    again = train_until_full(RunDirectory(run.path))  # as long as there is no room
    assert again is None or error is not None
    require_sound(run)
    resize(disk, "32m")
    train(RunDirectory(run.path))
    assert result_of(run) == whole
    return error


def test_on_a_disk_of_any_size_nothing_is_lost(small_disk, undisturbed):
    for size in ("4k", "64k", "200k", "8m"):
        error = check_disk(small_disk("16m"), size, "classic", undisturbed("classic"))
        assert (error is None) == (size == "8m")


@pytest.mark.soak
@pytest.mark.parametrize("preset", FEW)
def test_on_disks_of_every_size_nothing_is_lost(small_disk, undisturbed, preset):
    """In steps of 4 kB at first, and then of a hundredth of what is enough."""
    ended, enough = [], 1_000 if preset == "classic" else 6_000
    for kilobytes in [*range(4, 100, 4), *range(100, enough, enough // 100)]:
        disk = small_disk("32m")
        ended.append(check_disk(disk, f"{kilobytes}k", preset, undisturbed(preset)))
        subprocess.run(["rm", "-r", str(disk / "run")], check=False)
    print(f"{preset}: {len(ended)} disks, {ended.count(None)} with room enough")
    assert 0 < ended.count(None) < len(ended)


# --- files of limited size --------------------------------------------------------------------


@contextlib.contextmanager
def file_size_limit(size: int):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_line_of_which_the_disk_takes_a_part_is_taken_back(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    file.append({"update": 1})
    before = file.path.read_bytes()
    with file_size_limit(len(before) + 7):
        with pytest.raises(RunError, match=r"to write to .*lines\.jsonl, got "):
            file.append({"update": 2})
    assert file.path.read_bytes() == before


@pytest.mark.parametrize("size", [300, 3000, 30_000, 2_000_000])
def test_with_files_of_limited_size_nothing_is_lost(tmp_path, undisturbed, size):
    with file_size_limit(size):
        try:
            run = RunDirectory.create(tmp_path / "run", toy("classic"))
        except RunError as error:
            assert size == 300
            assert "File too large" in str(error)
            assert not (tmp_path / "run").exists()
            return
        error = train_until_full(run)
    assert (error is None) == (size == 2_000_000)
    require_sound(run)
    train(RunDirectory(run.path))
    assert result_of(run) == undisturbed("classic")
