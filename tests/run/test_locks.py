"""The lock of a run: on disks without locks, in forked children, and when the run is deleted."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import threading

import pytest
from disks import contents
from promises import promise
from toys import same_training
from waiting import join, wait_until

from pixelpong.errors import RunError
from pixelpong.loop import Updated, train, training
from pixelpong.run.directory import RunDirectory, is_live, lock_folder
from pixelpong.run.record import Record

# --- disks without locks ----------------------------------------------------------------------


@promise("one writer")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_on_a_disk_without_locks_a_training_goes_on_with_a_true_warning(
    make_run, monkeypatch, capsys, number
):
    """And no run is said to be training for ever."""
    run, plain = make_run(), make_run("plain")
    train(plain)

    def flock(file, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    train(run)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: the disk of {run.path} does not support locks, so nothing")
    assert Record.read(run.path).state == "stopped"
    assert same_training(run, plain) == []


def test_a_lock_that_fails_for_another_reason_is_not_blamed_on_another_process(
    make_run, monkeypatch
):
    run = make_run()
    before = contents(run.path)

    def flock(file, how):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(RunError, match="cannot lock .*run: Input/output error"):
        train(run)
    assert Record.read(run.path).state == "interrupted"
    assert contents(run.path).keys() - before.keys() <= {run.path / "run.lock"}


# --- forked children --------------------------------------------------------------------------


@promise("one writer")
@pytest.mark.parametrize("ends_early", [False, True])
def test_a_child_that_was_forked_neither_keeps_the_lock_nor_frees_it(make_run, ends_early):
    """Whether it outlives the training or ends, and with it its copy of the training."""
    run = make_run(updates=3)
    ours, theirs = os.pipe()
    events, child = training(run), 0
    for event in events:
        if isinstance(event, Updated) and child == 0:
            child = os.fork()
            if child == 0:
                os.close(theirs)
                if ends_early:
                    with pytest.raises(RunError, match="a fork of it cannot"):
                        events.close()
                else:
                    os.read(ours, 1)  # until the parent ends, or closes its end
                os._exit(0)
            if ends_early:
                assert os.waitpid(child, 0)[1] == 0
                assert is_live(run.path)
    assert not is_live(run.path)
    with lock_folder(run.path):
        pass
    if not ends_early:
        os.close(theirs)
        assert os.waitpid(child, 0)[1] == 0
    assert run.checkpoints.load_latest().update == 3


def test_the_lock_is_taken_as_soon_as_it_is_free(tmp_path):
    taken, freed = threading.Event(), threading.Event()

    def hold():
        with lock_folder(tmp_path):
            taken.set()
            wait_until(freed.is_set)

    thread = threading.Thread(target=hold)
    thread.start()
    wait_until(taken.is_set)
    with pytest.raises(RunError, match=f"Process {os.getpid()} is training in"):
        with lock_folder(tmp_path):
            pass
    freed.set()
    join(thread)
    with lock_folder(tmp_path) as lock:
        lock.require_held()
    assert not list(tmp_path.iterdir()), "nothing was kept"


# --- runs that are deleted --------------------------------------------------------------------


def empty(run: RunDirectory) -> None:
    for path in run.path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty_by_half(run: RunDirectory) -> None:
    """As an `rm -rf` does that has lost a race."""
    (run.path / "config.json").unlink()
    shutil.rmtree(run.checkpoints.folder)


def replace(run: RunDirectory) -> None:
    """Delete it, and begin another one of the same name."""
    shutil.rmtree(run.path)
    RunDirectory.create(run.path, run.config)


GONE = {
    "the run": lambda run: shutil.rmtree(run.path),
    "its content": empty,
    "a half of it": empty_by_half,
    "its lock": lambda run: (run.path / "run.lock").unlink(),
    "its metrics": lambda run: run.metrics.path.unlink(),
    "its episodes": lambda run: run.episodes.path.unlink(),
    "its checkpoints": lambda run: shutil.rmtree(run.checkpoints.folder),
    "the run, for another": replace,
}


@promise("a deleted run")
@pytest.mark.parametrize("what", GONE)
def test_a_training_whose_run_is_deleted_ends_and_makes_nothing_anew(make_run, what):
    run, before = make_run(updates=9), {}
    with pytest.raises(RunError, match="no longer exists; if the run was deleted") as caught:
        for event in training(run):
            if isinstance(event, Updated):
                assert event.progress.update == 1, "not one update more"
                GONE[what](run)
                before = contents(run.path)
    assert "\n" not in str(caught.value)
    left = contents(run.path)
    if what in ("its metrics", "its episodes", "its checkpoints"):  # it is still a run
        assert left.keys() - before.keys() == {run.path / "failure.json"}
    else:
        assert left == before


@promise("a deleted run")
def test_without_its_folder_of_agents_a_training_goes_on_and_does_not_make_it_anew(
    make_run, capsys
):
    run = make_run(updates=3, save_agent_every=1)
    for event in training(run):
        if isinstance(event, Updated) and event.progress.update == 1:
            shutil.rmtree(run.agents.folder)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("agents no longer exists" in it and "continues without it" in it for it in lines)
    assert (run.agents.folder.exists(), run.checkpoints.load_latest().update) == (False, 3)
