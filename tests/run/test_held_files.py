"""Files that another program has open: Windows lets nobody replace, rename or remove them.

Here no system does that, so the calls fail as they do there.
"""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest
from toys import same_training

from pixelpong.config import Config
from pixelpong.errors import RunError
from pixelpong.faces.cli import _let_print_all
from pixelpong.loop import train
from pixelpong.run import files
from pixelpong.run.files import HeldError, remove_file, write_whole
from pixelpong.run.folders import SWEEP_FILE, make_folder
from pixelpong.sweeps.sweep import create_sweep, sum_up

CALLS = ("replace", "rename", "unlink")


def held(number: int) -> PermissionError:
    """What Windows answers; only there an error has a `winerror`."""
    error = PermissionError(errno.EACCES, "Access is denied")
    error.winerror = number
    return error


@pytest.fixture
def hold(monkeypatch):
    """Lets each first `times` calls for a file fail, or all calls for a file with some name."""

    def hold(times: int = 0, name: str = "", error: int = 32) -> None:
        for call in CALLS:
            monkeypatch.setattr(Path, call, _failing(getattr(Path, call), times, name, error))

    return hold


def _failing(real, times, name, error):
    left = {}

    def call(path, *args, **kwargs):
        left.setdefault(path, times)
        left[path] -= 1
        is_named = name and (path.name == name or (args and Path(args[0]).name == name))
        if (os.path.lexists(path) and left[path] >= 0) or is_named:
            raise held(error)
        return real(path, *args, **kwargs)

    return call


@pytest.mark.parametrize("error", [5, 32])
def test_a_file_that_is_held_for_a_moment_is_waited_for(tmp_path, hold, error):
    path = tmp_path / "a.txt"
    path.write_bytes(b"before")
    hold(times=3, error=error)
    write_whole(path, b"after")
    assert path.read_bytes() == b"after"
    remove_file(path)
    made = make_folder(tmp_path / "new", "", lambda folder: (folder / "b").touch())
    assert [it.name for it in made.iterdir()] == ["b"]
    assert [it.name for it in tmp_path.iterdir()] == ["new"]


@pytest.mark.slow
def test_a_training_goes_on_while_its_files_are_held_for_moments(make_run, hold):
    run, plain = make_run(), make_run("plain")
    train(plain)
    hold(times=3)
    train(run)
    assert same_training(run, plain) == []


def test_a_file_that_stays_held_is_named_with_what_to_do(tmp_path, hold, monkeypatch):
    monkeypatch.setattr(files, "HELD_TRIES", 2)
    path = tmp_path / "a.txt"
    path.write_bytes(b"before")
    hold(name="a.txt")
    for act in (lambda: write_whole(path, b"after"), lambda: remove_file(path)):
        with pytest.raises(HeldError, match=r"a\.txt: another program has it open, .*; close it"):
            act()
    assert path.read_bytes() == b"before"
    assert [it.name for it in tmp_path.iterdir()] == ["a.txt"], "and nothing is left beside it"


@pytest.mark.slow
def test_a_sweep_goes_on_while_its_table_is_open_in_excel(tmp_path, hold, monkeypatch, capsys):
    sweep = create_sweep(tmp_path / "s", [Config(seed=seed, updates=1) for seed in (0, 1)])
    sum_up(sweep)
    before = (sweep / SWEEP_FILE).read_bytes()
    monkeypatch.setattr(files, "HELD_TRIES", 2)
    hold(name=SWEEP_FILE)
    assert len(sum_up(sweep)["runs"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: cannot replace or remove {sweep / SWEEP_FILE}: another prog")
    assert (sweep / SWEEP_FILE).read_bytes() == before


def test_where_files_are_not_held_a_refusal_is_final(tmp_path, monkeypatch):
    calls = []

    def refuse(*_):
        calls.append(1)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(RunError, match="Permission denied; check the free space"):
        write_whole(tmp_path / "a.txt", b"")
    assert calls == [1]


@pytest.mark.parametrize(
    ("system", "variable", "encoding"),
    [("win32", None, "utf-8"), ("win32", "cp850", "cp1252"), ("linux", None, "cp1252")],
)
def test_pipes_and_files_get_all_characters_on_windows(monkeypatch, system, variable, encoding):
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if variable:
        monkeypatch.setenv("PYTHONIOENCODING", variable)
    stream = io.TextIOWrapper(io.BytesIO(), "cp1252")
    _let_print_all(stream, system)
    stream.write("−20.85 µ")
    stream.flush()
    expected = "−20.85 µ".encode(encoding, "backslashreplace")
    assert stream.buffer.getvalue() == expected
