"""A run directory from somebody else: pipes, devices, links, sizes, escapes, files of other runs.

It is read as it says, or refused in one line; nothing outside it changes, and nothing waits.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from hashlib import sha256
from pathlib import Path

import pytest
from disks import contents
from hostile import within_limits
from promises import promise
from toys import result_of, same_training, with_updates

from pixelpong.agent.choice import Agents
from pixelpong.errors import CheckpointError, PixelpongError, RunError
from pixelpong.faces.page.library import Library
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.record import Record, records
from pixelpong.schema import encode

pytestmark = promise("runs of strangers")


@pytest.fixture
def folder(tmp_path, toy_runs) -> Path:
    """A folder with the run `odd`, to be made strange, and the run `sound`."""
    for name in ("odd", "sound"):
        shutil.copytree(toy_runs["classic"], tmp_path / "runs" / name)
    return tmp_path / "runs"


LINES = "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl"
NUMBERED = "checkpoints/000012.safetensors", "agents/000010.safetensors"


# --- what is no file --------------------------------------------------------------------------


def put_socket(path: Path) -> None:
    """A socket in a file's place; its whole path may be too long for an address."""
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


STRANGE = {
    "a pipe": os.mkfifo,
    "a link to a pipe": lambda path: (os.mkfifo(f"{path}~"), path.symlink_to(f"{path}~")),
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": put_socket,
    "a folder": Path.mkdir,
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}


def tell_all(folder: Path) -> None:
    """Read all that a run shows, as the faces do; an error is one of ours, of one line."""
    library = Library(folder)
    looks = [
        library.list_runs, lambda: library.describe("odd"), lambda: library.compare("odd,sound"),
        Record.read(folder / "odd").returns, lambda: RunDirectory(folder / "odd"),
        lambda: Agents.of_run(RunDirectory(folder / "odd")).load("latest"),
        lambda: Agents.of_run(RunDirectory(folder / "odd")).load("10"),
    ]  # fmt: skip
    for look in looks:
        try:
            look()
        except PixelpongError as error:
            assert str(error).isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("how", STRANGE)
@pytest.mark.parametrize("name", [*LINES, "failure.json", "run.lock", "config.json", *NUMBERED])
def test_what_is_no_file_is_not_waited_for_and_hides_no_other_run(folder, name, how, capsys):
    path = folder / "odd" / name
    path.unlink(missing_ok=True)
    STRANGE[how](path)
    with within_limits(f"{how} as {name}", 10.0):  # many readings, of which none may wait
        found = {record.name: record.state for record in records(folder)}
        tell_all(folder)
    assert found["sound"] == "stopped"
    assert name in ("config.json", *LINES) or found["odd"] == "stopped"
    try:
        train(with_updates(RunDirectory(folder / "odd"), 13))
    except PixelpongError as error:
        assert str(error).isprintable()
        assert name in (*LINES, "failure.json", "run.lock", "config.json", *NUMBERED)
    else:
        assert name in NUMBERED
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


def test_a_file_larger_than_it_can_be_is_refused_unread_and_the_one_before_is_used(folder, capsys):
    run = RunDirectory(folder / "odd")
    os.truncate(run.checkpoints.path(12), 40 << 30)
    with within_limits("a checkpoint of 40 GB"):
        assert run.checkpoints.load_latest().update == 10
    assert "has more than" in capsys.readouterr().err
    for name in (*LINES, "config.json"):
        before = (run.path / name).read_bytes()
        os.truncate(run.path / name, 40 << 30)
        with within_limits(name), pytest.raises(RunError, match="it has more than"):
            list(RunDirectory(run.path).metrics.read())
            list(run.episodes.read())
            list(run.evaluations.read())
        (run.path / name).write_bytes(before)


# --- links ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*LINES, "failure.json", "run.lock", "config.json"])
def test_nothing_is_written_through_a_link(folder, tmp_path, name):
    path, outside = folder / "odd" / name, tmp_path / "thesis"
    outside.write_bytes(path.read_bytes() if path.exists() else b"my thesis")
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    before = contents(tmp_path)
    with pytest.raises(RunError, match=f"cannot write to .*{name}: it is a link; replace it"):
        train(with_updates(RunDirectory(folder / "odd"), 13))
    assert contents(tmp_path) == before
    assert path.is_symlink()


def test_a_link_in_the_place_of_a_file_that_is_being_written_is_not_followed(folder, tmp_path):
    run = RunDirectory(folder / "odd")
    outside = tmp_path / "thesis"
    outside.write_text("my thesis")
    temporary = run.path / f".config.json-{os.getpid()}"
    temporary.symlink_to(outside)
    with_updates(run, 99).write_config(12)
    assert (outside.read_text(), temporary.is_symlink()) == ("my thesis", False)
    assert RunDirectory(run.path).config.updates == 99


@pytest.mark.parametrize("linked", [("checkpoints",), ("agents",), ("checkpoints", "agents"), ()])
def test_a_run_whose_folders_or_which_itself_lie_on_another_disk_goes_on(
    tmp_path, make_run, linked
):
    plain, run = make_run("plain", updates=4), make_run("run", updates=2)
    for each in (plain, run):
        train(each)
    for name in linked:
        moved = shutil.move(run.path / name, tmp_path / f"other disk {name}")
        (run.path / name).symlink_to(moved)
    if not linked:
        moved = shutil.move(run.path, tmp_path / "other disk")
        run.path.symlink_to(moved)
    train(with_updates(RunDirectory(run.path), 4))
    assert same_training(RunDirectory(run.path), plain) == []
    assert all((run.path / name).is_symlink() for name in linked)


@pytest.mark.parametrize("name", ["checkpoints", "agents"])
def test_the_files_of_another_run_are_never_removed_through_a_link(make_run, tmp_path, name):
    run, other = make_run("run", updates=1), make_run("other", updates=3, seed=1)
    for each in (run, other):
        train(each)
    shutil.rmtree(run.path / name)
    (run.path / name).symlink_to(other.path / name)
    before = contents(tmp_path)
    with pytest.raises(CheckpointError, match="is a link to files of another run"):
        train(with_updates(RunDirectory(run.path), 4))
    assert contents(tmp_path) == before


# --- what a file says -------------------------------------------------------------------------

ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x1b[31mEVIL\n\nroot# \u202e\x9b" + "x" * 9999


def rewrite_config(run: Path, **changes: object) -> None:
    """Change the configuration, with the hash that fits it, as a stranger can."""
    content = json.loads((run / "config.json").read_text())
    del content["sha256"]
    content |= changes
    content["sha256"] = sha256(encode(content)).hexdigest()
    (run / "config.json").write_bytes(encode(content))


def test_what_a_run_says_of_its_versions_is_printed_on_one_line_without_escapes(folder, capsys):
    path = folder / "odd"
    rewrite_config(path, versions={"numpy": ESCAPES, "python": "9"}, machine={"processor": ESCAPES})
    RunDirectory(path).warn_of_other_versions()
    (line,) = capsys.readouterr().err.splitlines()
    assert "started with other versions (python 9 → 3." in line
    assert (line.isprintable(), len(line) < 1000) == (True, True)


def test_an_error_never_has_what_a_terminal_obeys():
    for kind in (PixelpongError, RunError, CheckpointError):
        assert str(kind(f"a{ESCAPES}")).isprintable()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"versions": []}, "versions is array, not object"),
        ({"versions": None}, "versions is null, not object"),
        ({"versions": {"numpy": 3}}, "versions[...] is int, not str"),
        ({"machine": "x"}, "machine is str, not object"),
        ({"config": []}, "it is array, not object"),
        ({"config": {"new_option": 3}}, "another version wrote it, with the option new_option"),
        ({"changes": {}}, "changes is object, not array"),
        ({"changes": [{}]}, "'update' is missing"),
        ({"changes": [{"update": -1}]}, "it is not int >= 0"),
        ({"mark": 3}, "mark is int, not str"),
    ],
    ids=str,
)
def test_a_configuration_that_cannot_be_is_one_line_and_a_row_of_the_list(folder, changes, says):
    rewrite_config(folder / "odd", **changes)
    with pytest.raises(RunError) as caught:
        RunDirectory(folder / "odd")
    assert says in str(caught.value)
    assert str(caught.value).isprintable()
    found = {record.name: record.problem for record in records(folder)}
    assert (says in found["odd"], found["sound"]) == (True, "")


# --- files of other runs ----------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"seed": 1}, {"learning_rate": 0.01}, {"gamma": 0.5}])
def test_a_checkpoint_of_another_run_is_refused_for_that_and_the_one_before_is_used(
    make_run, capsys, other
):
    """It is put aside: it may be the only one."""
    plain, run, another = (
        make_run(name, updates=4, **changes)
        for name, changes in {"plain": {}, "run": {}, "another": other}.items()
    )
    train(plain)
    train(another)
    train(with_updates(run, 2))
    content = another.checkpoints.path(4).read_bytes()
    run.checkpoints.path(4).write_bytes(content)
    train(with_updates(RunDirectory(run.path), 4))
    first, second = capsys.readouterr().err.splitlines()
    assert "it belongs to another run, with another seed or other options; trying another" in first
    assert "belongs to another run; it was renamed to 000004.safetensors.of" in second
    assert same_training(run, plain) == []
    assert (run.checkpoints.folder / "000004.safetensors.of-another-run").read_bytes() == content


def test_a_run_may_be_copied_renamed_and_changed_and_its_own_checkpoints_stay_its_own(
    make_run, tmp_path, capsys
):
    run = make_run(updates=2)
    for updates, rate in ((2, 3e-3), (4, 0.1), (4, 0.2), (6, 0.2)):
        changed = run.config.updated({"updates": updates, "learning_rate": rate}, "test")
        train(RunDirectory(run.path).with_config(changed))
        run = RunDirectory(run.path.rename(tmp_path / f"renamed {updates} {rate}"))
        assert all(run.checkpoints.is_sound(update) for update in run.checkpoints.updates())
    told = [(it["update"], it["learning_rate"]) for it in content_of(run)["changes"]]
    assert told == [(2, [3e-3, 0.1]), (4, [0.1, 0.2])]
    assert capsys.readouterr().err == ""
    # Another run that began alike and was changed otherwise.
    other = make_run("other", updates=2)
    train(other)
    changed = other.config.updated({"updates": 6, "learning_rate": 0.3}, "test")
    train(other.with_config(changed))
    shutil.copy(other.checkpoints.path(6), run.checkpoints.path(6))
    assert (run.checkpoints.is_sound(6), run.checkpoints.is_sound(5)) == (False, True)


def test_a_change_after_the_last_sound_checkpoint_is_recorded_anew(make_run):
    run = make_run(updates=3)
    train(run)
    for updates, rate in ((4, 0.1), (5, 0.2)):
        changed = run.config.updated({"updates": updates, "learning_rate": rate}, "test")
        train(RunDirectory(run.path).with_config(changed))
    for update in (4, 5):
        run.checkpoints.path(update).write_bytes(b"damaged")
    train(RunDirectory(run.path))
    assert content_of(run)["changes"] == [{"update": 0, "learning_rate": [3e-3, 0.2]}]
    run = RunDirectory(run.path)
    assert run.checkpoints.load_latest().update == 5
    fresh = make_run("fresh", updates=5, learning_rate=0.2)
    train(fresh)
    assert result_of(run)["arrays"] == result_of(fresh)["arrays"]


def content_of(run: RunDirectory) -> dict:
    return json.loads((run.path / "config.json").read_text())


def test_a_run_that_another_process_has_changed_since_it_was_opened_is_known_again(
    make_run, capsys
):
    run = make_run(updates=2)
    train(run)
    opened = RunDirectory(run.path)
    changed = run.config.updated({"updates": 4, "learning_rate": 0.1}, "test")
    train(run.with_config(changed))
    assert train(opened.with_config(changed)).progress.update == 4
    assert capsys.readouterr().err == ""


def test_a_change_of_which_nothing_is_left_is_forgotten(make_run):
    run = make_run(updates=3)
    train(run)
    changed = run.config.updated({"updates": 4, "learning_rate": 0.1}, "test")
    train(run.with_config(changed))
    run.checkpoints.path(4).write_bytes(b"damaged")
    run.checkpoints.path(3).write_bytes(b"damaged")
    train(RunDirectory(run.path).with_config(run.config))
    assert content_of(run)["changes"] == []
    assert RunDirectory(run.path).checkpoints.load_latest().update == 3


def test_a_checkpoint_of_a_copy_that_was_not_changed_is_of_another_run(make_run, tmp_path):
    run = make_run(updates=2)
    train(run)
    copy = RunDirectory(shutil.copytree(run.path, tmp_path / "copy"))
    train(with_updates(copy, 4))
    assert copy.checkpoints.is_sound(4)
    changed = run.config.updated({"updates": 4, "learning_rate": 0.1}, "test")
    train(run.with_config(changed))
    shutil.copy(copy.checkpoints.path(4), run.checkpoints.path(4))
    assert not RunDirectory(run.path).checkpoints.is_sound(4)
