"""The names that `import pixelpong` gives: lazily, at any time, with one-line errors."""

from __future__ import annotations

import base64
import re
import types
from pathlib import Path

import numpy as np
import pytest

import pixelpong
from pixelpong.faces.notebook import Run
from pixelpong.run.directory import RunDirectory

TOY = {"max_frames": 300, "hidden": 8, "batch_size": 2, "engine": "serial", "save_every": 1}


@pytest.fixture
def toy(tmp_path):
    return pixelpong.train("classic", run=tmp_path / "toy", quiet=True, updates=2, **TOY)


def test_each_public_name_is_found_and_described():
    assert {*pixelpong.__all__} == {*dir(pixelpong)} - {"__version__"}
    assert len(pixelpong.__all__) == 14
    for name in pixelpong.__all__:
        assert not isinstance(getattr(pixelpong, name), types.ModuleType), name
        assert getattr(pixelpong, name).__doc__, name


def test_the_package_can_be_pickled_by_those_who_send_functions_that_use_it():
    """As Ray and stable-baselines3 do, with cloudpickle, which Gymnasium brings."""
    cloudpickle = pytest.importorskip("cloudpickle")
    there = cloudpickle.loads(cloudpickle.dumps(lambda: pixelpong.make_env(max_frames=300)))
    assert there().reset(seed=0)[0].shape == (210, 160, 3)


def test_a_training_by_function_by_command_or_event_by_event_is_the_same(tmp_path, toy, report):
    """And it can be left, and resumed."""
    events = list(pixelpong.training("classic", run=tmp_path / "whole", updates=2, **TOY))
    for event in pixelpong.training("classic", run=tmp_path / "left", updates=9, **TOY):
        if getattr(event, "stats", None):
            break
    del event
    left = pixelpong.resume(tmp_path / "left", updates=2, quiet=True)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TOY.items()]
    told = report("train", "--preset", "classic", "--run", "toy2", "--updates", "2", *options)
    trained, resumed = (run.agent("latest").about["params_sha256"] for run in (toy, left))
    assert events[-1].params_sha256 == told["params_sha256"] == trained == resumed


def test_a_training_gives_the_run_and_one_that_goes_on_too(toy, capsys):
    assert isinstance(toy, Run)
    assert toy.metrics()["update"].tolist() == [1, 2]
    longer = pixelpong.resume(toy, quiet=True, updates=3)
    assert longer.metrics()["update"].tolist() == [1, 2, 3]
    changes = {"gamma": 0.9, "allow_changes": True}
    again = pixelpong.resume(toy.path, quiet=True, updates=np.int64(4), **changes)
    assert (again, hash(again), again.config.gamma) == (toy, hash(toy), 0.9)
    assert again != toy.path
    assert capsys.readouterr() == ("", "")


def test_the_loop_over_a_training_that_is_shown_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2].joinpath("docs/howto/python.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n([^`]*pixelpong\.training[^`]*)```", page)
    shown = '"fast", total_timesteps=400_000, evaluate_every=20'
    assert shown in block
    toy = '"classic", evaluate_every=2, updates=4, **TOY'
    exec(block.replace(shown, toy), {"TOY": TOY | {"evaluate_episodes": 2}})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0].isdigit()] == ["1", "2", "3", "4"]
    assert sum(line.startswith("mean return") for line in lines) == 2


def test_a_run_a_path_and_a_policy_are_the_same_agent(toy):
    policy = pixelpong.Policy.load(toy, "latest")
    ways = [toy, str(toy.path), policy]
    results = [pixelpong.evaluate(way, 2, checkpoint="latest", engine="serial") for way in ways]
    assert results[0] == results[1] == results[2]


# --- in a notebook ----------------------------------------------------------------------------


def test_a_run_says_what_it_is_and_its_agents_are_listed_and_loaded(toy_runs):
    run = Run(toy_runs["classic"])
    lines = repr(run).splitlines()
    assert lines[0] == f"Run('{run.path}'): classic on ALE/Pong-v5"
    assert "update 12, 36 episodes" in lines[2]
    assert run.metrics()["entropy"].shape == (12,)
    files = [*run.path.glob("checkpoints/0*"), *run.path.glob("agents/*.safetensors")]
    assert run.agents() == sorted({int(file.stem) for file in files})
    assert [run.agent(each).about["update"] for each in run.agents()] == run.agents()
    assert run.agent("latest").about["update"] == run.agents()[-1] == 12


@pytest.mark.slow
def test_pictures_and_films_show_themselves_and_can_be_saved(toy_runs, tmp_path, make_run):
    pytest.importorskip("matplotlib")
    pytest.importorskip("av")
    run = Run(toy_runs["classic"])
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', run._repr_html_())
    assert base64.b64decode(data) == run.plot().content
    assert "<img" not in Run(make_run().path)._repr_html_(), "it has no update yet"
    picture, film = run.plot("health"), run.replay("latest", 2, sampled=True, seconds=1)
    assert picture._repr_html_().startswith('<img alt="health of classic')
    assert "update 12, sampled episode 2" in repr(film)
    assert (picture.content[:4], film.content[4:8]) == (b"\x89PNG", b"ftyp")
    picture.save(tmp_path / "picture")
    assert (tmp_path / "picture").read_bytes() == picture.content


PRESS_STOP = """
import os, pathlib, signal, threading, time
lines = pathlib.Path("toy/metrics.jsonl")
before = lines.stat().st_size
def press():
    while lines.stat().st_size == before:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
pixelpong.resume(run, updates=10**6, quiet=True)
"""


@pytest.mark.slow
def test_it_trains_and_shows_runs_in_a_notebook_and_the_stop_button_saves(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    options = TOY | {"engine": "threads", "workers": 1}
    cells = [
        f"import pixelpong\noptions = {options}",
        "run = pixelpong.train('classic', run='toy', updates=3, **options)\nrun",
        PRESS_STOP,
        "pixelpong.evaluate(run, 2, workers=1).returns",
        "run.plot()",
        "pixelpong.Run('nowhere')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, allow_errors=True).execute(cwd=str(tmp_path))
    _, trained, (stopped,), (result,), (shown,), (refused,) = (
        cell.outputs for cell in notebook.cells
    )
    text = "".join(each["text"] for each in trained[:-1])  # and no piece of HTML a line
    assert text.splitlines()[-1].split("  ")[1] == "update 3"
    assert "update 3, 6 episodes" in trained[-1]["data"]["text/plain"]
    assert stopped["ename"] == "Stopped"  # a KeyboardInterrupt
    update = RunDirectory(tmp_path / "toy").checkpoints.load_latest().update
    assert stopped["evalue"] == f"update {update} is saved; continue with pixelpong.resume('toy')"
    assert update > 3
    assert result["output_type"] == "execute_result"
    assert "data:image/png" in shown["data"]["text/html"]
    assert refused["traceback"] == [f"RunError: {refused['evalue']}"]
