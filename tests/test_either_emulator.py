"""Whole trainings on the real Pong: the same bits on our emulator, on ALE, and in turn."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest
from toys import result_of

import pixelpong
from pixelpong.config.presets import load_preset
from pixelpong.env.ale import AleConsole
from pixelpong.faces.cli import main
from pixelpong.faces.display import TrainingDisplay
from pixelpong.loop import train
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


@pytest.mark.parametrize("emulators", [["ale"] * 3, ["native", "ale", "native"]])
@pytest.mark.parametrize("preset", SHORT)
def test_a_training_gives_the_same_bits_on_ale_and_in_turn(make_run, wanted, preset, emulators):
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


def test_a_run_is_resumed_on_ale_on_the_command_line(make_run, wanted, capsys):
    """It changes the speed, never the result, so it needs no leave."""
    run = make_run("classic", updates=1)
    train(run)
    words = ["--updates", str(UPDATES), "--emulator", "ale", "--json"]
    assert main(["resume", str(run.path), *words]) == 0
    assert result_of(run) == wanted["classic"]
    assert json.loads(capsys.readouterr().out)["params_sha256"] == wanted["classic"][1]
    assert "changes" not in json.loads((run.path / "config.json").read_text("utf-8"))


# --- where it is shown ------------------------------------------------------------------------


def test_every_face_names_the_emulator(make_run, capsys):
    run, stream = make_run("fast", updates=1, emulator="ale"), io.StringIO()
    train(run, TrainingDisplay(stream))
    assert stream.getvalue().splitlines()[0].endswith("engine serial, emulator ale")
    assert repr(pixelpong.Run(run.path)).splitlines()[0].endswith(", emulator ale")
    assert main(["runs", str(run.path)]) == 0
    assert re.search(r"\bemulator\s+ale\b", capsys.readouterr().out)
    content = json.loads((run.path / "config.json").read_text("utf-8"))
    assert content["config"]["emulator"] == "ale"


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
