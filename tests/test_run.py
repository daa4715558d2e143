"""The run directory and its files of lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pixelpong.errors import RunError
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory
from pixelpong.run.lines import LineFile


def test_a_run_is_opened_as_it_was_made(make_run):
    run = make_run(seed=7)
    again = RunDirectory.open(run.path)
    assert again.config == run.config
    assert again.versions["numpy"]
    assert again.machine["processor"]
    assert not list(run.path.glob(".config*"))


def test_a_directory_that_exists_is_never_written_to(make_run, tmp_path):
    run = make_run()
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="expected a new run directory, got .*run, which exists"):
        RunDirectory.create(run.path, run.config)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="which exists"):
        RunDirectory.create(tmp_path / "empty", run.config)
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_runs_without_a_name_are_numbered(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [RunDirectory.create(None, toy).path for _ in range(3)]
    assert [path.as_posix() for path in paths] == [f"runs/classic-00{n}" for n in (1, 2, 3)]


def test_a_place_that_cannot_be_written_is_one_line(toy, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "run", Path("/proc/run")):
        with pytest.raises(RunError, match="expected"):
            RunDirectory.create(path, toy)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"format": 1}', '{"format": 1, "config": {"nonsense": 1}}', "\udcff"],
)
def test_what_is_no_run_is_one_line(make_run, content):
    run = make_run()
    (run.path / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match="expected a run's configuration"):
        RunDirectory.open(run.path)


def test_a_missing_run_is_one_line(tmp_path):
    with pytest.raises(RunError, match="expected a run directory, got .*none"):
        RunDirectory.open(tmp_path / "none")
    with pytest.raises(RunError, match="No such file"):
        RunDirectory.open(tmp_path)


def test_a_run_of_another_version_says_so(make_run):
    run = make_run()
    file = run.path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 9}))
    with pytest.raises(RunError, match="run of format 1 .* got format 9"):
        RunDirectory.open(run.path)


def test_a_run_of_the_time_of_processes_goes_on_with_threads(make_run):
    run = make_run(engine="threads", workers=2)
    file = run.path / "config.json"
    content = json.loads(file.read_text())
    content["config"]["engine"] = "processes"
    del content["sha256"]
    file.write_text(json.dumps(content))
    again = RunDirectory.open(run.path)
    assert again.config == run.config
    assert train(again).reason == "updates"
    assert RunDirectory.open(run.path).config == run.config


def test_only_one_training_writes_to_a_run(make_run):
    run = make_run()
    script = (
        "import sys; from pathlib import Path; from pixelpong.run.directory import RunDirectory\n"
        "with RunDirectory.open(Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, run.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match=rf"to be free, got .*process {other.pid}"):
            run.lock()
        other.kill()
    with run.lock():
        pass


def test_another_machine_or_library_is_said(make_run):
    run = make_run()
    run.warn_of_other_machine()
    file = run.path / "config.json"
    content = json.loads(file.read_text())
    content["versions"]["numpy"] = "1.0"
    content["machine"]["processor"] = "6502"
    del content["sha256"]
    file.write_text(json.dumps(content))
    warnings = []
    RunDirectory.open(run.path, warnings.append).warn_of_other_machine()
    assert len(warnings) == 1
    assert "numpy 1.0 → " in warnings[0]
    assert "processor 6502 → " in warnings[0]
    assert "no longer promised" in warnings[0]


def test_what_a_stranger_says_of_its_machine_is_shown_on_one_line(make_run):
    file = make_run().path / "config.json"
    content = json.loads(file.read_text())
    content["versions"]["numpy"] = "1.0\n\x1b[2J" + "x" * 10_000
    del content["sha256"]
    file.write_text(json.dumps(content))
    warnings = []
    RunDirectory.open(file.parent, warnings.append).warn_of_other_machine()
    assert "numpy 1.0 ?[2Jx" in warnings[0]
    assert len(warnings[0]) < 1000
    assert warnings[0].isprintable()


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


def test_a_folder_in_the_files_place_is_one_line(tmp_path):
    file = LineFile(tmp_path)
    for action in (lambda: list(file.read()), lambda: file.append({"update": 1}), file.sync):
        with pytest.raises(RunError, match="Is a directory"):
            action()


def test_a_line_for_a_run_that_was_deleted_does_not_ask_for_room(tmp_path):
    file = LineFile(tmp_path / "gone" / "lines.jsonl")
    with pytest.raises(RunError, match=r"got No such file or directory; if the run was deleted, "):
        file.append({"update": 1})


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


def test_a_full_disk_leaves_no_half_line():
    file = LineFile(Path("/dev/full"))
    with pytest.raises(RunError, match="expected to write to /dev/full, got No space left on dev"):
        file.append({"update": 1})
