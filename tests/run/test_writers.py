"""Every file that is written whole: whatever the disk does, it is the old one or the new one."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_files import make_checkpoint
from disks import contents, file_size_limit, remount
from promises import promise
from toys import toy_config

from pixelpong.errors import PixelpongError
from pixelpong.faces import api, looking, plots
from pixelpong.faces.look.media import Media
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.directory import RunDirectory
from pixelpong.sweeps.sweep import create_sweep, sum_up


def write_config(run: Path, folder: Path, number: int) -> None:
    config = toy_config("fast")
    if not (folder / "run").exists():
        RunDirectory.create(folder / "run", config)
    config = config.updated({"updates": 4 + number}, "test")
    RunDirectory(folder / "run").with_config(config).write_config(3)


def write_table(run: Path, folder: Path, number: int) -> None:
    sweep = folder / "sweep"
    if not sweep.exists():
        create_sweep(sweep, [toy_config("fast", seed=seed) for seed in range(2)])
    if number:
        sum_up(sweep)


def write_checkpoint(run: Path, folder: Path, number: int) -> None:
    CheckpointStore(folder).save(make_checkpoint(1, score=float(number)))


def write_film(run: Path, folder: Path, number: int) -> None:
    pytest.importorskip("av", reason="films need the extra [video]")
    looking.record(run, episode=number, seconds=0.3, scale=1, out=folder / "film.mp4")


def write_picture(run: Path, folder: Path, number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:  # drawing takes seconds
        patch.setattr(plots, "draw_plot", lambda *_: b"%d" % number * 9999)
        looking.plot(run, out=folder / "picture.png")


def write_tournament(run: Path, folder: Path, number: int) -> None:
    out = folder / "it.json"
    api.tournament("perfect", "person", games=1, points=1, seed=number, workers=1, out=out)


PAGE = 4096  # of memory, in which such a disk is kept
WRITERS: dict[str, Callable[[Path, Path, int], object]] = {
    "a configuration": write_config,
    "a sweep's table": write_table,
    "a checkpoint": write_checkpoint,
    "an agent's file": lambda run, folder, n: looking.export(
        run, checkpoint=str(10 + 2 * n), out=folder / "agent.safetensors"
    ),
    "a film": write_film,
    "a picture": write_picture,
    "a tournament's report": write_tournament,
    "what a notebook shows": lambda _, folder, n: Media(b"%d" % n * 9999, "").save(
        folder / "it.png"
    ),
}
"""Each writes one of two contents, in files whose names are always the same."""


@contextlib.contextmanager
def trouble(how: str, disk: Path, size: int):
    """A disk, or files, with room for half of `size`; or a disk that takes nothing."""
    if how == "files of limited size":
        with file_size_limit(size // 2):
            yield
    elif how == "a full disk":
        room, filler = size // 2 // PAGE * PAGE, disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(disk).free - room))
        yield
        filler.unlink()
    else:
        remount(disk, "ro")
        yield
        remount(disk, "rw")


@promise("whole files")
@pytest.mark.slow
@pytest.mark.parametrize("how", ["a full disk", "a read-only disk", "files of limited size"])
@pytest.mark.parametrize("what", WRITERS)
def test_a_file_that_cannot_be_written_is_one_line_and_the_old_one_stays(
    toy_runs, tmp_path, small_disk, what, how
):
    write, disk = WRITERS[what], small_disk("4m")
    folder = disk / "folder"
    folder.mkdir()
    write(toy_runs["fast"], folder, 0)
    old = contents(folder)
    write(toy_runs["fast"], folder, 1)
    new = contents(folder)
    (changed,) = (path for path in new if new[path] != old[path])
    changed.write_bytes(old[changed])
    with trouble(how, disk, len(new[changed])):
        with pytest.raises(PixelpongError, match=r"\Acannot write [^\n]*\Z") as caught:
            write(toy_runs["fast"], folder, 1)
    assert str(changed) in str(caught.value)
    assert contents(folder) == new | {changed: old[changed]}, "and nothing else is left"
    write(toy_runs["fast"], folder, 1)
    assert contents(folder) == new
