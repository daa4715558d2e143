"""The run directory and its files of lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pixelpong.agent.choice import PACKAGE
from pixelpong.agent.file import SHIPPED
from pixelpong.errors import ConfigError, RunError
from pixelpong.items import BUILTIN
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile
from pixelpong.run.names import LATEST, find_run, require_new_name
from pixelpong.tournaments.scripts import SCRIPTS


def test_runs_without_a_name_are_numbered_beyond_all_that_are_there(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("classic-007", "classic-009", "classic-x", "classic-0000000010"):
        Path("runs", name).mkdir(parents=True)
    paths = [RunDirectory.create(None, toy).path for _ in range(2)]
    assert [path.as_posix() for path in paths] == ["runs/classic-010", "runs/classic-011"]


RUBBISH = (
    b"{bad\n", b'{"update": "x"}\n', b"[1]\n", b"[" * 5000 + b"\n", b"x" * (3 << 20) + b"\n",
    b"\xff\xfe\n",
)  # fmt: skip
CUTS = [  # updates and raw bytes in a file; where it is cut back to; what is left
    ([], 0, []),
    ([1, 1, 2, 3], 2, [1, 1, 2]),
    ([1, 1, 2, 3], 0, []),
    ([1, *RUBBISH, 2], 2, [1, 2]),
    ([1, *RUBBISH, 2], 1, [1]),
    ([1, 9, 3, 4, 5], 4, [1, 9, 3, 4]),  # the second was a 2, which has rotted
    ([1, b'{"update": 2'], 5, [1]),  # cut off by a crash
    ([1, b'{"update": 2}'], 5, [1]),
]


@pytest.mark.parametrize(("content", "update", "left"), CUTS, ids=range(len(CUTS)))
def test_lines_are_cut_back_to_an_update_and_damage_costs_no_other(tmp_path, content, update, left):
    file = LineFile(tmp_path / "lines.jsonl")
    file.cut_back(0)
    for each in content:
        if isinstance(each, int):
            file.append({"update": each})
        else:
            with file.path.open("ab") as raw:
                raw.write(each)
    whole = [line["update"] for line in file.read()]
    assert whole == [each for each in content if isinstance(each, int)]
    file.cut_back(update)
    assert [line["update"] for line in file.read()] == left
    file.append({"update": 7})
    assert [line["update"] for line in file.read()] == [*left, 7]


def test_latest_is_the_newest_run_with_an_update(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="No run in runs/ has finished an update yet"):
        find_run("latest")
    for number, name in enumerate(("old", "trained", "refused")):
        run = RunDirectory.create(Path("runs", name), toy)
        if name != "refused":
            run.metrics.append({"update": 1})
        for file in run.path.iterdir():
            os.utime(file, (number, number))
    assert find_run("latest").name == "trained"


def test_a_path_takes_precedence_over_a_name(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RunDirectory.create(Path("runs/both"), toy)
    assert find_run("both") == Path("runs/both")
    RunDirectory.create(Path("both"), toy)
    assert find_run("both") == Path("both")


def test_a_name_that_a_command_would_take_for_something_else_is_refused():
    words = (*SHIPPED, *SCRIPTS, BUILTIN, PACKAGE, LATEST)
    odd = ("", ".", "..", "a/b", "-x", "a@3", "a\nb", "a\x1bb", "sweep-009", "a.safetensors")
    for name in (*words, *odd):
        with pytest.raises(ConfigError, match="A run cannot be called") as caught:
            require_new_name(name)
        assert str(caught.value).isprintable(), name
    for name in ("fast-001", "my run", "größe", "sweep-wide", "club-2", "x" * 300, ".a", "a.b"):
        require_new_name(name)
