"""The names that `import pixelpong` gives: lazily, at any time, with one-line errors."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from conftest import wait_until

import pixelpong
from pixelpong import Evaluation
from pixelpong.errors import CheckpointError, ConfigError, RunError
from pixelpong.faces.notebook import Run
from pixelpong.run.directory import RunDirectory

TOY = {"max_frames": 300, "hidden": 8, "batch_size": 2, "engine": "serial", "save_every": 1}


@pytest.fixture
def toy(tmp_path):
    return pixelpong.train("classic", run=tmp_path / "toy", quiet=True, updates=2, **TOY)


def test_the_public_names_are_these():
    names = {
        "Config", "Evaluation", "PixelpongError", "Policy", "Run", "evaluate", "load_preset",
        "make_env", "preset_names", "resume", "train", "training",
    }  # fmt: skip
    assert {*pixelpong.__all__} == {*dir(pixelpong)} - {"__version__"} == names
    for name in names:
        assert not isinstance(getattr(pixelpong, name), types.ModuleType), name
        assert getattr(pixelpong, name).__doc__, name


def test_the_package_can_be_pickled_by_those_who_send_functions_that_use_it():
    """As Ray and stable-baselines3 do, with cloudpickle, which Gymnasium brings."""
    cloudpickle = pytest.importorskip("cloudpickle")
    there = cloudpickle.loads(cloudpickle.dumps(lambda: pixelpong.make_env(max_frames=300)))
    assert there().reset(seed=0)[0].shape == (210, 160, 3)


def test_gymnasium_makes_the_environment_by_the_name_of_its_module():
    script = "import gymnasium; print(gymnasium.make('pixelpong.env.gym:pixelpong/Pong-v0'))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "PongEnv" in done.stdout, done.stderr


def hash_of(run):
    return run.agent("latest").about["params_sha256"]


def test_a_training_event_by_event_is_the_same_and_can_be_left(tmp_path, toy):
    events = list(pixelpong.training("classic", run=tmp_path / "whole", updates=2, **TOY))
    for event in pixelpong.training("classic", run=tmp_path / "left", updates=9, **TOY):
        if getattr(event, "stats", None):
            break
    del event
    left = pixelpong.resume(tmp_path / "left", updates=2, quiet=True)
    assert events[-1].params_sha256 == hash_of(toy) == hash_of(left)


def test_a_training_comes_out_as_that_of_the_command_line(toy, report):
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TOY.items()]
    told = report("train", "--preset", "classic", "--run", "toy2", "--updates", "2", *options)
    assert told["params_sha256"] == hash_of(toy)


def test_a_training_gives_the_run_and_one_that_goes_on_too(toy, capsys):
    assert isinstance(toy, Run)
    assert toy.metrics()["update"].tolist() == [1, 2]
    longer = pixelpong.resume(toy, quiet=True, updates=3)
    assert longer.metrics()["update"].tolist() == [1, 2, 3]
    again = pixelpong.resume(toy.path, quiet=True, updates=np.int64(4))
    assert (again, hash(again)) == (toy, hash(toy))
    assert again != toy.path
    assert capsys.readouterr() == ("", "")


def test_the_loop_over_a_training_that_is_shown_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[1].joinpath("docs/howto/python.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n([^`]*pixelpong\.training[^`]*)```", page)
    shown = '"fast", total_timesteps=400_000, evaluate_every=20'
    assert shown in block
    toy = '"classic", evaluate_every=2, updates=4, **TOY'
    exec(block.replace(shown, toy), {"TOY": TOY | {"evaluate_episodes": 2}})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0].isdigit()] == ["1", "2", "3", "4"]
    assert sum(line.startswith("mean return") for line in lines) == 2


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: pixelpong.train(name="a", run="b"), ConfigError, "expected run or name, got both"),
        (lambda: pixelpong.train(name="../x"), ConfigError, "got '../x'; give one that means"),
        (lambda: pixelpong.train(run="a/fast@3"), ConfigError, "got 'fast@3'; give one that means"),
        (lambda: pixelpong.train("fats"), ConfigError, "did you mean fast?"),
        (lambda: pixelpong.train(updats=3), ConfigError, "did you mean updates?"),
        (
            lambda: pixelpong.train(batch_size=3),
            ConfigError,
            "train: batch_size is an option of REINFORCE",
        ),
        (lambda: pixelpong.train(updates="3"), ConfigError, "train: expected updates to be a wh"),
        (lambda: pixelpong.train(pixelpong.Config()), ConfigError, "give updates, episodes, total"),
        (lambda: pixelpong.resume("nowhere"), RunError, "expected a run directory"),
        (lambda: pixelpong.resume(None), RunError, "expected a run directory, got None"),
        (lambda: pixelpong.Policy.load(None), ConfigError, "expected an agent, got None; give"),
        (lambda: pixelpong.Policy.load().act(None), ConfigError, "3 colours, uint8, got NoneType"),
        (lambda: pixelpong.evaluate(seed=np.int64(-1)), ConfigError, "expected seed to be a whole"),
        (lambda: pixelpong.evaluate("nowhere"), RunError, "expected a run directory"),
        (lambda: pixelpong.evaluate(episodes=0), ConfigError, "episodes to be a whole number"),
        (lambda: pixelpong.evaluate(hidden=3), ConfigError, "an option of environment or engine"),
        (lambda: pixelpong.evaluate(stiky=0.0), ConfigError, "did you mean sticky?"),
        (lambda: pixelpong.Policy.load("x.safetensors"), CheckpointError, "a usable agent in"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(call, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, pixelpong.PixelpongError)
    assert not list(tmp_path.iterdir())


def test_options_that_change_the_result_must_be_allowed(toy):
    with pytest.raises(ConfigError, match="seed 0 → 1; leave them out, or give allow_changes"):
        pixelpong.resume(toy, seed=1, quiet=True)
    changed = pixelpong.resume(toy, quiet=True, updates=3, gamma=0.9, allow_changes=True)
    assert changed.config.gamma == 0.9


def test_ctrl_c_saves_and_stops_a_script_that_may_go_on(tmp_path):
    before, path = signal.getsignal(signal.SIGINT), tmp_path / "toy"
    lines = path / "metrics.jsonl"

    def press() -> None:
        wait_until(lambda: lines.exists() and lines.stat().st_size > 0)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    never = {"updates": 10**6, "save_every": 10**6}
    with pytest.raises(KeyboardInterrupt) as stop:
        pixelpong.train("classic", run=path, quiet=True, **TOY | never)
    thread.join()
    update = RunDirectory(path).checkpoints.load_latest().update
    assert str(stop.value) == f"update {update} is saved; continue with pixelpong.resume('{path}')"
    assert update > 0
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_it_trains_in_a_notebook_and_the_stop_button_saves(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    options = TOY | {"engine": "threads", "workers": 1}
    cells = [
        f"import pixelpong\noptions = {options}",
        "run = pixelpong.train('classic', run='toy', updates=3, **options)\nrun",
        "import os, signal, threading\n"
        "threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "pixelpong.resume(run, updates=10**6, quiet=True)",
        "pixelpong.evaluate(run, 2, workers=1).returns",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, allow_errors=True).execute(cwd=str(tmp_path))
    *printed, shown = notebook.cells[1].outputs
    text = "".join(each["text"] for each in printed)  # and no piece of HTML a line
    assert text.splitlines()[-1].split("  ")[1] == "update 3"
    assert "update 3, 6 episodes" in shown["data"]["text/plain"]
    (stopped,) = notebook.cells[2].outputs
    assert stopped["ename"] == "Stopped"  # a KeyboardInterrupt
    assert "is saved; continue with pixelpong.resume('toy')" in stopped["evalue"]
    (result,) = notebook.cells[3].outputs
    assert result["output_type"] == "execute_result"


def test_a_run_a_path_and_a_policy_are_the_same_agent(toy):
    policy = pixelpong.Policy.load(toy, "latest")
    ways = [toy, str(toy.path), policy]
    results = [pixelpong.evaluate(way, 2, checkpoint="latest", engine="serial") for way in ways]
    assert results[0] == results[1] == results[2]


def test_an_evaluation_shows_itself_in_words_and_a_histogram():
    one = Evaluation(-1.5, 24.0, (-21.0, 18.0), (-21.0, 18.0, 18.0), 2345.6)
    few = "too few games for an interval"
    assert str(one) == f"mean return −1.50 ({few}) over 3 games of 2,346 steps"
    assert few not in str(dataclasses.replace(one, returns=one.returns * 4))
    assert repr(one) == f"<Evaluation: {one}; .returns>"
    shown = one._repr_html_()
    assert str(one) in shown
    assert "\n−21 █ 1\n+18 ██ 2\n" in shown
