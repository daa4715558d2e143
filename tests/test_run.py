"""The run directory and its files of lines."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pixelpong.agent.choice import PACKAGE
from pixelpong.agent.file import SHIPPED
from pixelpong.config import Config
from pixelpong.errors import ConfigError, RunError
from pixelpong.items import BUILTIN
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile
from pixelpong.run.names import LATEST, find_run, require_new_name
from pixelpong.schema import encode
from pixelpong.tournament.scripts import SCRIPTS


def test_a_run_is_opened_as_it_was_made(make_run):
    run = make_run(seed=7)
    again = RunDirectory(run.path)
    assert again.config == run.config
    assert again.versions["numpy"]
    assert again.machine["processor"]
    assert not list(run.path.glob(".config*"))


def test_a_directory_that_exists_is_never_written_to(make_run, tmp_path):
    run = make_run()
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="run exists; choose another name"):
        RunDirectory.create(run.path, run.config)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="empty exists; choose another name"):
        RunDirectory.create(tmp_path / "empty", run.config)
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_runs_without_a_name_are_numbered(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [RunDirectory.create(None, toy).path for _ in range(3)]
    assert [path.as_posix() for path in paths] == [f"runs/classic-00{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"format": 1}', '{"format": 1, "config": {"nonsense": 1}}', "\udcff"],
)
def test_what_is_no_run_is_one_line(make_run, content):
    run = make_run()
    (run.path / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match="expected a run's configuration"):
        RunDirectory(run.path)


def test_a_missing_run_is_one_line(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(RunError, match="No such file"):
            RunDirectory(path)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "run", Path("/proc/run")):
        with pytest.raises(RunError, match="expected to make the folder"):
            RunDirectory.create(path, Config())


def test_only_one_training_writes_to_a_run(make_run):
    run = make_run()
    script = (
        "import sys; from pathlib import Path; from pixelpong.run.directory import RunDirectory\n"
        "with RunDirectory(Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, run.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match=rf"Process {other.pid} trains in"):
            run.lock()
        other.kill()
    with run.lock():
        pass


def rewrite(run: RunDirectory, **changes) -> None:
    """Change what ``config.json`` says, with a hash that fits."""
    file = run.path / "config.json"
    rest = {k: v for k, v in json.loads(file.read_text()).items() if k != "sha256"} | changes
    sha256 = hashlib.sha256(encode(rest)).hexdigest()
    file.write_text(json.dumps(rest | {"sha256": sha256}))


def test_another_version_machine_or_library_is_said(make_run, capsys):
    run = make_run()
    run.warn_of_other_machine()
    versions, machine = run.versions | {"numpy": "1.0"}, run.machine | {"processor": "6502"}
    rewrite(run, versions=versions, machine=machine)
    capsys.readouterr()
    RunDirectory(run.path).warn_of_other_machine()
    (line,) = capsys.readouterr().err.splitlines()
    assert "numpy 1.0 → " in line
    assert "processor 6502 → " in line
    assert "no longer promised" in line
    rewrite(run, format=9)
    with pytest.raises(RunError, match="got one of format 9, which another version wrote"):
        RunDirectory(run.path)


def test_lines_are_cut_back_to_an_update(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    file.cut_back(0)
    for update in (1, 1, 2, 3):
        file.append({"update": update})
    file.cut_back(2)
    assert [line["update"] for line in file.read()] == [1, 1, 2]
    file.cut_back(0)
    assert list(file.read()) == []


def test_a_damaged_line_costs_no_other(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    for damaged in (
        b"{bad\n",
        b'{"update": "x"}\n',
        b"[1]\n",
        b"[" * 5000 + b"\n",
        b"x" * (3 << 20) + b"\n",
    ):
        file.append({"update": 1})
        with file.path.open("ab") as raw:
            raw.write(damaged)
    file.append({"update": 2})
    assert [line["update"] for line in file.read()] == [1] * 5 + [2]
    file.cut_back(2)
    assert [line["update"] for line in file.read()] == [1] * 5 + [2]
    file.cut_back(1)
    assert [line["update"] for line in file.read()] == [1] * 5


def test_a_number_that_has_rotted_costs_no_line_behind_it(tmp_path):
    file = LineFile(tmp_path / "lines.jsonl")
    for update in (1, 9, 3, 4, 5):  # the second was a 2
        file.append({"update": update})
    file.cut_back(4)
    assert [line["update"] for line in file.read()] == [1, 9, 3, 4]


def test_a_file_that_cannot_be_used_is_one_line(tmp_path):
    file = LineFile(tmp_path)
    for action in (lambda: list(file.read()), lambda: file.append({"update": 1}), file.sync):
        with pytest.raises(RunError, match="Is a directory"):
            action()
    advice = "make room there; or if the run was deleted, train again"
    for path, why in (
        (tmp_path / "gone" / "lines.jsonl", f"No such file or directory; {advice}"),
        (Path("/dev/full"), f"No space left on device; {advice}"),
    ):
        with pytest.raises(RunError, match=f"expected to write to {path}, got {why}"):
            LineFile(path).append({"update": 1})
    with pytest.raises(RunError, match="not JSON compliant"):
        LineFile(tmp_path / "new").append({"update": 1, "loss": float("nan")})


def test_a_run_that_cannot_be_made_leaves_its_name_free(toy, small_disk):
    disk = small_disk("64k")
    (disk / "fill").write_bytes(b"x" * (64 << 10))
    with pytest.raises(RunError, match="No space left on device"):
        RunDirectory.create(disk / "run", toy)
    assert not (disk / "run").exists()
    (disk / "fill").unlink()
    RunDirectory.create(disk / "run", toy)


@pytest.mark.parametrize("rest", [b'{"update": 2', b'{"update": 2}', b"nonsense\n", b"\xff\xfe\n"])
def test_a_line_cut_off_by_a_crash_is_dropped(tmp_path, rest):
    file = LineFile(tmp_path / "lines.jsonl")
    file.append({"update": 1})
    with file.path.open("ab") as raw:
        raw.write(rest)
    assert [line["update"] for line in file.read()] == [1]
    file.cut_back(5)
    file.append({"update": 2})
    assert [line["update"] for line in file.read()] == [1, 2]


def test_latest_is_the_newest_run_with_an_update(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="expected a run with an update in .*, got none"):
        find_run("latest")
    for number, name in enumerate(("old", "trained", "refused")):
        run = RunDirectory.create(Path("runs", name), toy)
        if name != "refused":
            run.metrics.append({"update": 1})
        for file in run.path.iterdir():
            os.utime(file, (number, number))
    assert find_run("latest").name == "trained"


def test_a_name_that_a_command_would_take_for_something_else_is_refused():
    words = (*SHIPPED, *SCRIPTS, BUILTIN, PACKAGE, LATEST)
    odd = ("", ".", "..", "a/b", "-x", "a@3", "a\nb", "a\x1bb", "sweep-009", "a.safetensors")
    for name in (*words, *odd):
        with pytest.raises(ConfigError, match="expected the name of a run, got") as caught:
            require_new_name(name)
        assert str(caught.value).isprintable(), name
    for name in ("fast-001", "my run", "größe", "sweep-wide", "club-2", "x" * 300, ".a", "a.b"):
        require_new_name(name)
