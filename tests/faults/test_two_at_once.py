"""Two at once: one training writes to a run, and those who read it never see half a thing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import wait_for_checkpoint
from test_store import assert_same, make_checkpoint

from pixelpong.agent.file import Agent
from pixelpong.faces.cli import main
from pixelpong.faces.page.library import Library
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.directory import RunDirectory

TOY = [
    "--preset", "classic", "--max-frames", "300", "--hidden", "10", "--batch-size", "2",
    "--engine", "serial", "--save-every", "1", "--save-agent-every", "1",
]  # fmt: skip


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pixelpong", *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ends(processes) -> list[tuple[int, str]]:
    """Exit codes, and what was said of errors."""
    return [
        (process.returncode, err) for process in processes for _, err in [process.communicate()]
    ]


# --- two writers ------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_trainings_that_begin_at_once_in_one_run_one_goes_on(tmp_path):
    words = ["train", *TOY, "--updates", "3", "--run", "run"]
    found = ends([start(tmp_path, *words) for _ in range(3)])
    assert sorted(code for code, _ in found) == [0, 1, 1]
    for code, err in found:
        assert err.count("\n") == code
        assert code == 0 or "run exists; choose another name" in err
    assert RunDirectory(tmp_path / "run").checkpoints.load_latest().update == 3


@pytest.mark.slow
def test_while_one_trains_resumes_are_refused_and_change_nothing(tmp_path):
    """Two at once while it trains; when it has ended, the next goes on where it was."""
    first = start(tmp_path, "train", *TOY, "--updates", "100000", "--run", "run")
    wait_for_checkpoint(tmp_path / "run")
    config = (tmp_path / "run" / "config.json").read_bytes()
    words = ["resume", "run", "--updates", "999999", "--learning-rate", "1", "--allow-changes"]
    for code, err in ends([start(tmp_path, *words) for _ in range(2)]):
        assert code == 1
        assert err.count("\n") == 1
        assert f"Process {first.pid} trains in run; wait" in err
    assert (tmp_path / "run" / "config.json").read_bytes() == config
    first.terminate()
    assert ends([first])[0] == (130, "")
    run = RunDirectory(tmp_path / "run")
    lines = [line["update"] for line in run.metrics.read()]
    newest = run.checkpoints.load_latest().update
    assert lines == list(range(1, newest + 1))
    more = str(newest + 1)
    found = ends([start(tmp_path, "resume", "run", "--updates", more) for _ in range(2)])
    assert {code for code, _ in found} <= {0, 1}
    assert 0 in [code for code, _ in found]
    assert [line["update"] for line in run.metrics.read()] == [*lines, newest + 1]


# --- one writer, many readers -----------------------------------------------------------------


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Checkpoints, and somebody who does something just before one is read."""
    writer = CheckpointStore(tmp_path / "checkpoints")
    for update in (1, 2, 3):
        writer.save(make_checkpoint(update))

    def disturb(do):
        real = Path.read_bytes

        def read(path):
            monkeypatch.setattr(Path, "read_bytes", real)
            do(writer)
            return real(path)

        monkeypatch.setattr(Path, "read_bytes", read)

    return CheckpointStore(writer.folder), disturb


def test_one_that_is_saved_again_while_it_is_read_is_read(watched, capsys):
    reader, disturb = watched
    later = make_checkpoint(3, score=1.0)
    disturb(lambda writer: writer.save(later))
    found = reader.load_latest()
    assert_same(found, later)
    assert capsys.readouterr().err == ""


def test_where_all_are_dropped_while_one_is_read_newer_ones_are_found(watched, capsys):
    reader, disturb = watched
    disturb(lambda writer: [writer.save(make_checkpoint(update)) for update in range(4, 9)])
    assert reader.load_latest().update == 8
    assert capsys.readouterr().err == ""


def read_everything(run: RunDirectory, library: Library, capsys) -> None:
    """All that a run shows, as the faces read it."""
    updates = [line["update"] for line in run.metrics.read()]
    assert updates == list(range(1, len(updates) + 1))
    assert run.checkpoints.load_latest().update >= len(updates) - 1
    for update in run.agents.updates()[-2:]:
        assert Agent.read(run.agents.path(update)).about["update"] == update
    told = library.tell(run.path.name)
    assert told["update"] >= len(updates) - 1
    capsys.readouterr()
    assert main(["runs", str(run.path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out)["update"] >= len(updates) - 1


@pytest.mark.slow
def test_everything_can_be_read_while_a_training_writes(tmp_path, capsys):
    writer = start(
        tmp_path, "train", *TOY, "--updates", "100000", "--run", "run", "--evaluate-every", "2",
        "--evaluate-episodes", "1",
    )  # fmt: skip
    try:
        wait_for_checkpoint(tmp_path / "run")
        run = RunDirectory(tmp_path / "run")
        library, rounds = Library(tmp_path), 0
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            read_everything(run, library, capsys)
            rounds += 1
        words = [str(run.path), "--json", "--episodes", "1", "--engine", "serial"]
        assert main(["evaluate", *words]) == 0
        assert capsys.readouterr().err == ""
        assert rounds >= 3
        assert writer.poll() is None
    finally:
        writer.terminate()
        assert ends([writer])[0][0] == 130
