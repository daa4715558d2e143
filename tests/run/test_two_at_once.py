"""Two at once: one training writes to a run, and those who read it never see half a thing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
from checkpoint_files import describe, make_checkpoint
from drivers import Driver
from promises import promise
from waiting import exit_code

from pixelpong.agent.file import Agent
from pixelpong.faces.cli import main
from pixelpong.faces.page.library import Library
from pixelpong.run import arrays
from pixelpong.run.checkpoints import CheckpointStore
from pixelpong.run.directory import RunDirectory

pytestmark = promise("one writer")


def run_at_once(folder: Path, times: int, *words: str) -> list[tuple[int, str]]:
    """Exit codes, and what was said of errors."""
    command, found = [sys.executable, "-m", "pixelpong", *words], []
    started = [
        subprocess.Popen(command, cwd=folder, stdout=DEVNULL, stderr=PIPE, text=True)
        for _ in range(times)
    ]
    for process in started:
        with process:  # whose pipe is closed then
            found.append((exit_code(process), process.stderr.read()))
    return found


@pytest.mark.slow
def test_of_trainings_that_begin_at_once_in_one_run_one_goes_on(tmp_path):
    (tmp_path / "mine.toml").write_text("preset = 'classic'\nmax_frames = 300\nupdates = 3")
    words = ["train", "--run", "run", "--config", "mine.toml"]
    found = run_at_once(tmp_path, 3, *words)
    assert sorted(code for code, _ in found) == [0, 1, 1]
    for code, err in found:
        assert err.count("\n") == code
        assert code == 0 or "run already exists; choose another name" in err
    assert RunDirectory(tmp_path / "run").checkpoints.load_latest().update == 3


@pytest.fixture
def training(make_run, tmp_path):
    """A training that goes on until it is ended."""
    make_run(updates=10**6, evaluate_every=2, evaluate_episodes=1, save_agent_every=1)
    with Driver(tmp_path, "resume", "run") as driver:
        driver.wait_for_lines(2)
        yield driver


@pytest.mark.slow
def test_while_one_trains_resumes_are_refused_and_change_nothing(tmp_path, training):
    """Two at once while it trains; when it has ended, the next goes on where it was."""
    config = (tmp_path / "run" / "config.json").read_bytes()
    words = ["resume", "run", "--updates", "999999", "--learning-rate", "1", "--allow-changes"]
    for code, err in run_at_once(tmp_path, 2, *words):
        assert (code, err.count("\n")) == (1, 1)
        assert f"Process {training.pid} is training in run; wait" in err
    assert (tmp_path / "run" / "config.json").read_bytes() == config
    training.send(signal.SIGTERM)
    assert (training.wait(), training.said()) == (130, "")
    run = RunDirectory(tmp_path / "run")
    newest = run.checkpoints.load_latest().update
    words = ["resume", "run", "--updates", f"{newest + 1}"]
    found = run_at_once(tmp_path, 2, *words)
    assert 0 in [code for code, _ in found]
    reasons = {1: "is training in run; wait", 2: "Nothing is left to train in run"}
    for code, err in found:  # the other may begin while the first one trains, or after it
        assert code == 0 or reasons[code] in err
    ((code, err),) = run_at_once(tmp_path, 1, *words)
    assert (code, reasons[2] in err) == (2, True)
    assert [line["update"] for line in run.metrics.read()] == list(range(1, newest + 2))


@pytest.mark.parametrize("saved", [[(3, 1.0)], [(update, None) for update in range(4, 9)]])
def test_what_is_saved_while_a_checkpoint_is_read_is_read(tmp_path, monkeypatch, capsys, saved):
    """The same one again; or so many that all that were there are dropped."""
    writer = CheckpointStore(tmp_path / "checkpoints")
    writer.make_folder()
    for update in (1, 2, 3):
        writer.save(make_checkpoint(update))
    real = arrays.read_file

    def read(path, limit):
        monkeypatch.setattr(arrays, "read_file", real)
        for checkpoint in saved:
            writer.save(make_checkpoint(*checkpoint))
        return real(path, limit)

    monkeypatch.setattr(arrays, "read_file", read)
    found = CheckpointStore(writer.folder).load_latest()
    assert describe(found) == describe(make_checkpoint(*saved[-1]))
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_everything_can_be_read_while_a_training_writes(tmp_path, training, capsys):
    """All that a run shows, as the faces read it, at five moments."""
    run, library, seen = RunDirectory(tmp_path / "run"), Library(tmp_path), set()
    while len(seen) < 5:
        updates = [line["update"] for line in run.metrics.read()]
        assert updates == list(range(1, len(updates) + 1))
        assert run.checkpoints.load_latest().update >= len(updates) - 1
        for update in run.agents.updates()[-2:]:
            assert Agent.read(run.agents.path(update)).about["update"] == update
        assert library.describe("run")["update"] >= len(updates) - 1
        assert main(["runs", str(run.path), "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert json.loads(out)["update"] >= len(updates) - 1
        assert training.is_running()
        seen.add(len(updates))
    assert main(["evaluate", str(run.path), "--episodes", "1", "--engine", "serial"]) == 0
    assert capsys.readouterr().err == ""
