"""New runs and sweeps appear whole or not at all, whatever happens while they are made."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from disks import contents
from promises import promise
from toys import toy_config

import pixelpong
from pixelpong.errors import RunError
from pixelpong.learners import Learner
from pixelpong.locking import scratch_folder
from pixelpong.loop import Began, training
from pixelpong.run.directory import RunDirectory
from pixelpong.run.folders import CONFIG_FILE
from pixelpong.run.names import is_run, list_runs, require_new_name
from pixelpong.run.record import list_sweeps
from pixelpong.sweeps.plan import PLAN_FILE, read_plan, write_plan
from pixelpong.sweeps.sweep import create_sweep, find_left, read_sweep, restore_lost

RUNS = Path("runs")
SEEDS = range(3)


def configs():
    return [toy_config("classic", seed=seed) for seed in SEEDS]


def restore_sweep() -> None:
    """Restore two lost runs of a sweep: a folder, and a configuration."""
    restore_lost(RUNS / "sweep")


def make_named_run() -> None:
    RunDirectory.create(RUNS / "named", configs()[0])


def make_numbered_run() -> None:
    RunDirectory.create(None, configs()[0])


def make_sweep() -> None:
    create_sweep(RUNS / "sweep", configs())


MAKERS = [make_named_run, make_numbered_run, make_sweep, restore_sweep]


@pytest.fixture
def places(tmp_path, monkeypatch) -> Iterator[Path]:
    """New current folders, one after the other."""

    def go() -> Iterator[Path]:
        for number in itertools.count():
            folder = tmp_path / str(number)
            folder.mkdir()
            monkeypatch.chdir(folder)
            yield folder

    return go()


def prepare(make: Callable[[], None]) -> None:
    if make is restore_sweep:
        make_sweep()
        lose_runs()


def lose_runs() -> None:
    """Of one run the folder, of another the configuration."""
    shutil.rmtree(RUNS / "sweep" / "seed-1")
    (RUNS / "sweep" / "seed-2" / CONFIG_FILE).unlink()


def disturbed(make: Callable[[], None], number: int, happens: Callable[[], None]) -> int:
    """Call `make` in a child in which something happens before one of its writing operations.

    Python tells of every file and folder that it opens, makes, renames or removes. Returns the
    child's status: 0 if there were fewer operations, 1 for a refusal.
    """
    child = os.fork()
    if child == 0:
        counter, fsync = itertools.count(), os.fsync

        def count() -> None:
            if next(counter) == number:
                happens()

        def hook(event: str, args: tuple) -> None:
            changes = event in ("os.mkdir", "os.rename", "os.rmdir", "os.remove")
            changes |= event == "open" and bool(args[2] & (os.O_WRONLY | os.O_RDWR))
            if changes and str(args[0]).startswith((str(RUNS), str(Path.cwd()))):
                count()

        def watched_fsync(file: int) -> None:
            count()
            fsync(file)

        status = 2
        try:
            sys.addaudithook(hook)
            os.fsync = watched_fsync
            make()
            status = 3 if next(counter) > number else 0
        except RunError as error:
            status = 1 if "\n" not in str(error) and ".new" not in str(error) else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def check_whole() -> None:
    """Everything that a list shows is complete."""
    for run in list_runs(RUNS):
        assert RunDirectory(run).line_files
    for sweep in list_sweeps(RUNS):
        assert sorted(read_plan(sweep)) == [f"seed-{seed}" for seed in SEEDS]


def check_continued(make: Callable[[], None]) -> None:
    """The same command works, or the one that its refusal names; nothing hidden is left."""
    if make in (make_sweep, restore_sweep):
        if not (RUNS / "sweep").exists():
            make_sweep()
        else:
            with pytest.raises(RunError, match="continue it with `pixelpong sweep runs/sweep`"):
                make_sweep()
        restore_lost(RUNS / "sweep")
        assert [path.name for path in find_left(RUNS / "sweep")] == ["seed-0", "seed-1", "seed-2"]
        assert all(map(is_run, find_left(RUNS / "sweep")))
    elif (RUNS / "named").exists():
        with pytest.raises(RunError, match="continue it with `pixelpong resume runs/named`"):
            make()
    else:
        make()
    RunDirectory.create(RUNS / "last", configs()[0])
    check_whole()
    assert not list(RUNS.glob(".*")), "leftovers are swept"
    assert not list(RUNS.glob("*/.new*"))


@promise("kill")
@promise("sweeps")
@pytest.mark.parametrize("make", MAKERS)
def test_a_kill_at_any_moment_leaves_a_whole_run_or_none(places, make):
    for number in itertools.count():
        next(places)
        prepare(make)
        status = disturbed(make, number, lambda: os.kill(os.getpid(), signal.SIGKILL))
        check_whole()
        check_continued(make)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    assert number > 5


@promise("refusals")
@pytest.mark.parametrize("make", MAKERS[:3])
def test_a_full_disk_at_any_moment_leaves_nothing(places, make):
    def fill() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    refused = 0
    for number in itertools.count():
        folder = next(places)
        status = disturbed(make, number, fill)
        if status == 0:
            break
        # An error while a leftover is removed changes nothing.
        assert os.WEXITSTATUS(status) in (1, 3)
        if os.WEXITSTATUS(status) == 1:
            refused += 1
            assert contents(folder) == {}
        check_continued(make)
    assert refused > 5


@promise("refusals")
def test_on_a_full_disk_a_sweep_is_one_line_and_leaves_nothing(small_disk, monkeypatch):
    disk = small_disk("64k")
    monkeypatch.chdir(disk)
    with pytest.raises(RunError, match=r"\Acannot write runs/sweep-001: No space left"):
        create_sweep(None, [toy_config("classic", seed=seed) for seed in range(40)])
    assert contents(disk) == {}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors have no names here")
@pytest.mark.parametrize("make", MAKERS)
def test_what_is_made_has_its_name_on_the_disk(places, monkeypatch, make):
    """A loss of power afterwards costs none: the folder that holds the name is flushed at once."""
    next(places)
    prepare(make)
    tape, sync = [], os.fsync

    def noted_sync(descriptor):
        tape.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def noted(rename):
        def go(path, target):
            tape.append(("renamed", Path(target).absolute()))
            return rename(path, target)

        return go

    monkeypatch.setattr(os, "fsync", noted_sync)
    for name in ("rename", "replace"):
        monkeypatch.setattr(Path, name, noted(getattr(Path, name)))
    make()
    names = [number for number, event in enumerate(tape) if isinstance(event, tuple)]
    assert names
    for number in names:
        assert tape[number + 1] == tape[number][1].parent


def test_what_is_being_made_is_no_run(tmp_path, monkeypatch, call):
    """It may stay hidden for ever, for example on a disk that cannot be written to."""
    monkeypatch.chdir(tmp_path)
    for make in (make_named_run, make_sweep):
        make()
    (RUNS / "named").rename(RUNS / ".new-1-a")
    (RUNS / "sweep").rename(RUNS / ".new-1-b")
    assert (list_runs(RUNS), list_sweeps(RUNS)) == ([], [])
    assert "no runs in runs" in call("runs")[1]
    assert "is not a run" in call("runs", ".new-1-a")[2]
    with pytest.raises(Exception, match="A run cannot be called"):
        require_new_name(".new-1-a")


def test_a_run_that_is_there_is_continued_and_anything_else_is_only_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (RUNS / "named").mkdir(parents=True)
    with pytest.raises(RunError, match="runs/named already exists; choose another name.$"):
        make_named_run()


# --- a sweep's plan ---------------------------------------------------------------------------


@promise("sweeps")
def test_a_run_of_a_sweep_that_is_lost_is_named_and_made_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_sweep()
    whole = contents(RUNS)
    lose_runs()
    sweep = RUNS / "sweep"
    assert [(it.name, it.state) for it in read_sweep(sweep)][1:] == [
        ("sweep/seed-1", "damaged"), ("sweep/seed-2", "damaged"),
    ]  # fmt: skip
    assert "won 0 of 3" in str(pixelpong.runs()), "those that are lost count"
    restore_lost(sweep)
    assert contents(RUNS) == whole
    warnings = capsys.readouterr().err.splitlines()
    for name, warning in zip(("seed-1", "seed-2"), warnings[-2:], strict=True):
        assert warning.startswith(f"warning: runs/sweep/{name} was lost; recreating it")


def test_a_sweep_of_an_earlier_version_has_no_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_sweep()
    (RUNS / "sweep" / PLAN_FILE).unlink()
    restore_lost(RUNS / "sweep")
    assert len(find_left(RUNS / "sweep")) == 3


@promise("runs of strangers")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ((b'"seed-1"', b'"../../x"'), "SHA-256 is wrong"),
        ((b'"format": 1', b'"format": 9'), "another version wrote it"),
        ((b'"gamma"', b'"gamme"'), "another version wrote it"),
        ((b"{", b""), "it is str, not object"),
    ],
)
def test_a_damaged_plan_is_one_line_and_writes_nothing(tmp_path, monkeypatch, change, says):
    monkeypatch.chdir(tmp_path)
    make_sweep()
    file = RUNS / "sweep" / PLAN_FILE
    file.write_bytes(file.read_bytes().replace(*change, 1))
    before = contents(tmp_path)
    with pytest.raises(RunError, match=f"(?s)cannot read the plan .*{says}.*remove it"):
        restore_lost(RUNS / "sweep")
    assert contents(tmp_path) == before


@promise("runs of strangers")
@pytest.mark.parametrize("name", ["../x", "/tmp/x", "..", ".", "", "a/b", "-x", ".new-1"])
def test_a_plan_names_no_folder_elsewhere(tmp_path, name):
    write_plan(tmp_path, {name: configs()[0]})
    before = contents(tmp_path)
    with pytest.raises(RunError, match="a run cannot be called"):
        restore_lost(tmp_path)
    assert contents(tmp_path) == before


# --- temporary folders ------------------------------------------------------------------------


def hold_until_killed(parent: Path) -> tuple[int, Path]:
    """A child that holds a temporary folder; its process number, and the folder."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with scratch_folder(parent, "it") as folder:
            os.write(theirs, os.fsencode(folder))
            signal.pause()
    os.close(theirs)
    with open(ours, "rb") as pipe:
        return child, Path(os.fsdecode(pipe.read1(4096)))


def test_a_temporary_folder_lasts_as_long_as_its_process_whatever_its_number(tmp_path):
    child, folder = hold_until_killed(tmp_path)
    renamed = tmp_path / "it-1-x"  # process 1 of a container, or a number that was given anew
    folder.rename(renamed)
    with scratch_folder(tmp_path, "it") as ours:
        assert renamed.exists()
        assert ours.exists()
    assert not ours.exists()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with scratch_folder(tmp_path, "it") as ours:
        assert list(tmp_path.iterdir()) == [ours]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_on_a_disk_without_locks_no_temporary_folder_is_taken_for_a_leftover(
    tmp_path, monkeypatch, number
):
    def flock(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    with scratch_folder(tmp_path, "it") as first, scratch_folder(tmp_path, "it"):
        assert first.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_second_ray_of_our_own_leaves_the_folder_of_the_first():
    pytest.importorskip("ray")
    from pixelpong.engines.ray.connection import local_folder

    with local_folder() as first:
        (first / "session").touch()
        with local_folder():
            assert (first / "session").exists()
    assert not first.exists()


def test_a_run_says_that_it_begins_before_its_game_is_looked_at_which_takes_long(
    make_run, monkeypatch
):
    """Who leaves the loop there has the start all the same, and a resume goes on from it."""
    run, looked = make_run(updates=1), []
    get_state = Learner.get_state
    monkeypatch.setattr(Learner, "get_state", lambda self: looked.append(1) or get_state(self))
    events = training(run)
    assert type(next(events)) is Began
    assert (looked, run.list_agents()) == ([], [])
    events.close()
    assert run.list_agents() == [0]
    *_, last = training(RunDirectory(run.path))
    assert last.progress.update == 1
