"""Whole trainings on the real Pong: the same bits on our emulator, on ALE, and in turn.

Runs of versions that knew ALE alone go on to the same bits as well: their configuration names no
emulator, and their checkpoints hold snapshots of another form.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from toys import result_of, with_updates

from pixelpong.config import OPTIONS
from pixelpong.config.presets import load_preset
from pixelpong.env import ale as ale_module
from pixelpong.env.ale import AleConsole
from pixelpong.env.pong import Emulator
from pixelpong.faces.cli import main
from pixelpong.faces.display import TrainingDisplay
from pixelpong.faces.notebook import RunDirectory as NotebookRun
from pixelpong.loop import train
from pixelpong.play import worker as worker_module
from pixelpong.run.directory import RunDirectory

UPDATES = 3
ALWAYS = {"hidden": 8, "engine": "serial", "updates": UPDATES, "save_every": 1}
SHORT = {
    "fast": ALWAYS | {"streams": 2, "horizon": 420, "minibatches": 2},
    "classic": ALWAYS | {"batch_size": 1},
}
"""Of both modes; an episode of an agent that knows nothing takes a thousand steps."""

pytestmark = pytest.mark.slow


@pytest.fixture
def make_run(tmp_path):
    def make(preset: str, name: str = "run", **changes) -> RunDirectory:
        config = load_preset(preset).updated(SHORT[preset] | changes, "test")
        return RunDirectory.create(tmp_path / name, config, [].append)

    return make


def train_in_turn(run: RunDirectory, emulators: list[str]) -> RunDirectory:
    """An update on each, stopped and resumed in between."""
    for number, emulator in enumerate(emulators, start=1):
        run = RunDirectory.open(run.path)
        train(run.with_config(run.config.updated({"updates": number, "emulator": emulator}, "")))
    return run


# --- the same bits ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """What an undisturbed training on our emulator comes to, by mode."""
    results = {}
    for preset, changes in SHORT.items():
        config = load_preset(preset).updated(changes, "test")
        run = RunDirectory.create(tmp_path_factory.mktemp("wanted") / "run", config, [].append)
        train(run)
        assert list(run.episodes.read())  # a game ended in it, and another one began
        results[preset] = result_of(run)
    return results


@pytest.mark.parametrize("preset", SHORT)
def test_a_training_on_ale_gives_the_same_bits(make_run, wanted, preset):
    run = make_run(preset, emulator="ale")
    train(run)
    assert result_of(run) == wanted[preset]


@pytest.mark.parametrize("emulators", [["native", "ale", "native"], ["ale", "native", "ale"]])
@pytest.mark.parametrize("preset", SHORT)
def test_a_training_goes_on_on_the_other_emulator(make_run, wanted, preset, emulators):
    run = train_in_turn(make_run(preset), emulators)
    assert result_of(run) == wanted[preset]
    assert RunDirectory.open(run.path).config.engine.emulator == emulators[-1]


def test_verify_compares_both_emulators(capsys):
    words = ["verify", "--presets", "fast", "--engines", "serial", "--batch-size", "2", "--json"]
    assert main([*words, "--updates", "2"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [way["name"] for way in report["ways"]][-2:] == [
        "serial, emulator ale", "serial, emulators native and ale in turn, an update each",
    ]  # fmt: skip
    for name in ("params_sha256", "optimizer_sha256", "lines_sha256"):
        assert len({way[name] for way in report["ways"]}) == 1, name
    assert main([*words, "--updates", "1", "--emulators", "ale,native"]) == 0
    names = [way["name"] for way in json.loads(capsys.readouterr().out)["ways"]]
    assert names[0] == "serial"
    assert names[-1] == "serial, emulator native"


def test_verify_finds_an_emulator_that_plays_otherwise(capsys, monkeypatch):
    real = AleConsole.run

    def run(self, actions, draws):
        return real(self, bytes(3 if action == 2 else action for action in actions), draws)

    monkeypatch.setattr(AleConsole, "run", run)
    words = ["verify", "--presets", "fast", "--engines", "serial", "--updates", "1"]
    assert main([*words, "--batch-size", "2"]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[1] for row in rows[:-1]] == ["same", "same", "DIFFERENT"]
    assert rows[-1] == "fast: the bits differ"


# --- runs of versions that knew ALE alone -----------------------------------------------------


class OlderEmulator(Emulator):
    """ALE, with snapshots as they were while it was the only one.

    Such a snapshot has the action held (ALE's number), the frames so far, the size of ALE's state
    and its CRC-32; then where it differs from that of a game's start, and what it has there.
    """

    def __init__(self, protocol, emulator):
        super().__init__(protocol, AleConsole())

    def get_state(self) -> bytes:
        data = np.frombuffer(self.console._ale.cloneState().serialize(), np.uint8)
        start = np.zeros(len(data), np.uint8)
        known = np.frombuffer(self.console._start_data, np.uint8)[: len(data)]
        start[: len(known)] = known
        where = np.flatnonzero(data != start).astype("<u2")
        held = ale_module._ACTIONS[self.held]
        header = ale_module._OLD_HEADER.pack(
            held, self.num_frames, len(data), zlib.crc32(data.data)
        )
        return header + where.tobytes() + data[where].tobytes()


def make_older(run: RunDirectory) -> None:
    """Write a run's configuration as it was before there was a choice of emulators."""
    file = run.path / "config.json"
    content = json.loads(file.read_text("utf-8"))
    del content["config"]["emulator"], content["sha256"]
    content["config"]["engine"] = "processes"
    file.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize("emulator", [None, "native", "ale"])
@pytest.mark.parametrize("preset", SHORT)
def test_a_run_of_an_older_version_goes_on_to_the_same_bits(
    make_run, wanted, preset, emulator, monkeypatch
):
    run = make_run(preset, updates=1)
    with monkeypatch.context() as older:
        older.setattr(worker_module, "make_emulator", OlderEmulator)
        train(run)
    make_older(run)
    if preset == "fast":
        arrays = run.checkpoints.load_latest().optimizer
        assert arrays["stream.1.snapshot"][:4].tobytes() != b"PONG"
    again = RunDirectory.open(run.path)
    assert again.config.engine.emulator == OPTIONS["emulator"].default == "native"
    changes = {"updates": UPDATES} | ({"emulator": emulator} if emulator else {})
    train(again.with_config(again.config.updated(changes, "test")))
    assert result_of(run) == wanted[preset]


def test_a_run_without_the_option_is_resumed_on_the_command_line(make_run, wanted, capsys):
    run = make_run("fast", updates=1)
    train(run)
    make_older(run)
    words = ["resume", str(run.path), "--updates", str(UPDATES), "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["params_sha256"] == wanted["fast"][1]
    assert main(["inspect", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["emulator"] == "native"


# --- where it is shown ------------------------------------------------------------------------


@pytest.mark.parametrize("emulator", ["native", "ale"])
def test_every_face_names_the_emulator(make_run, emulator, capsys):
    run, stream = make_run("fast", updates=1, emulator=emulator), io.StringIO()
    train(run, TrainingDisplay(stream))
    assert stream.getvalue().splitlines()[0].endswith(f"engine serial, emulator {emulator}")
    assert repr(NotebookRun(run.path)).splitlines()[0].endswith(f", emulator {emulator}")
    assert main(["inspect", str(run.path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["emulator", emulator] in rows
    content = json.loads(Path(run.path / "config.json").read_text("utf-8"))
    assert content["config"]["emulator"] == emulator


WITHOUT_OURS = """
import sys
from pixelpong.__main__ import main
from pixelpong.env import native

def refuse():
    raise native.NotCoveredError("no machine code can be made here")

native.load_game = refuse
sys.argv[0] = "pixelpong"
main()
"""


def test_one_line_says_why_ale_plays(make_run, wanted):
    """In every worker, and at every restored snapshot: it is said once."""
    run = make_run("fast", updates=1)
    train(run)
    words = ["resume", str(run.path), "--updates", str(UPDATES), "--engine", "threads", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OURS, *words, "--workers", "2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if "ALE plays" in line]
    assert lines == [
        "warning: ALE plays, forty times slower: the native emulator can't "
        "(no machine code can be made here)"
    ]
    assert json.loads(done.stdout)["params_sha256"] == wanted["fast"][1]


def test_changing_the_emulator_needs_no_leave(make_run, capsys):
    """It changes the speed, never the result."""
    run = make_run("classic", updates=1)
    train(run)
    words = ["resume", str(run.path), "--updates", "2", "--emulator", "ale", "--json"]
    assert main(words) == 0
    train(with_updates(RunDirectory.open(run.path), 2))
    assert "changes" not in json.loads((run.path / "config.json").read_text("utf-8"))
