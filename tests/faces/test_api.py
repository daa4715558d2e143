"""The names that `import pixelpong` gives: lazily, at any time, with one-line errors."""

from __future__ import annotations

import base64
import re
import signal
import socket
import types
from pathlib import Path

import numpy as np
import pytest
from accidents import planted
from promises import promise
from toys import toy_evaluation

import pixelpong
from pixelpong import Evaluation
from pixelpong.errors import ConfigError
from pixelpong.faces.look.media import Media
from pixelpong.faces.notebook import Run
from pixelpong.faces.report import resume_command
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory

TOY = {"max_frames": 300, "hidden": 8, "batch_size": 2, "engine": "serial", "save_every": 1}


@pytest.fixture
def toy(tmp_path):
    return pixelpong.train("classic", run=tmp_path / "toy", quiet=True, updates=2, **TOY)


def test_the_public_names_are_these():
    names = {
        "Config", "Evaluation", "PixelpongError", "Policy", "Run", "dashboard", "evaluate",
        "export", "games", "load_preset", "make_env", "make_sb3", "make_two", "make_vec",
        "plot",
        "preset_names", "record", "resume", "runs", "sweep", "tournament", "train", "training",
        "verify", "watch",
    }  # fmt: skip
    modules = {path.stem for path in Path(pixelpong.__file__).parent.iterdir()}
    assert not names & modules, "importing the module would hide the function"
    assert {*pixelpong.__all__} == {*dir(pixelpong)} - {"__version__"} == names
    for name in names:
        assert not isinstance(getattr(pixelpong, name), types.ModuleType), name
        assert getattr(pixelpong, name).__doc__, name


def test_however_a_training_is_called_it_is_the_same(tmp_path, toy, report, capsys):
    """Event by event, left and resumed, on the command line."""
    wanted = toy.agent("latest").about["params_sha256"]
    events = list(pixelpong.training("classic", run=tmp_path / "whole", updates=2, **TOY))
    assert events[-1].params_sha256 == wanted
    for event in pixelpong.training("classic", run=tmp_path / "left", updates=9, **TOY):
        if getattr(event, "stats", None):
            break
    del event
    left = pixelpong.resume(tmp_path / "left", updates=2, quiet=True)
    assert left.agent("latest").about["params_sha256"] == wanted
    assert capsys.readouterr() == ("", "")
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TOY.items()]
    told = report("train", "--preset", "classic", "--run", "toy2", "--updates", "2", *options)
    assert told["params_sha256"] == wanted


def test_a_training_gives_the_run_and_a_resume_takes_it_or_its_path(toy):
    assert toy.metrics()["update"].tolist() == [1, 2]
    assert toy.metrics()["entropy"].shape == (2,)
    longer = pixelpong.resume(toy, quiet=True, updates=3, gamma=0.9, allow_changes=True)
    assert (longer.metrics()["update"].tolist(), longer.config.gamma) == ([1, 2, 3], 0.9)
    again = pixelpong.resume(toy.path, quiet=True, updates=np.int64(4))
    assert (again, hash(again)) == (toy, hash(toy))
    assert again != toy.path


@promise("nothing leaves")
def test_a_resume_plays_where_it_is_told_and_never_where_the_run_says(make_run):
    """The run may be a stranger's, and its address a trap."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        address = f"127.0.0.1:{trap.getsockname()[1]}"
        place = {"engine": "ray", "ray_address": address, "ray_mode": "tasks", "workers": 3}
        made = make_run(**place)
        run = pixelpong.resume(made.path, quiet=True, updates=1)
        with pytest.raises(BlockingIOError):
            trap.accept()
    assert (run.update, run.config.engine, run.config.ray_address) == (1, "threads", None)
    assert (run.config.ray_mode, run.config.workers) == ("actors", None)
    told = f"pixelpong resume {made.path} --engine ray --workers 3 --ray-address {address}"
    assert resume_command(made.path, made.config) == f"{told} --ray-mode tasks"
    again = pixelpong.resume(run, quiet=True, updates=2, engine="serial", workers=1)
    assert (again.config.engine, again.config.workers) == ("serial", 1)


@pytest.mark.parametrize("is_command", [False, True])
def test_the_time_of_a_run_begins_with_the_process_of_a_command(tmp_path, monkeypatch, is_command):
    """Its imports take seconds; a notebook may have been open for days."""
    monkeypatch.setattr("pixelpong.faces.training.interrupts.is_command", lambda: is_command)
    monkeypatch.setattr("pixelpong.faces.training.time.process_time", lambda: 1e6)
    run = pixelpong.train("classic", run=tmp_path / "run", quiet=True, updates=1, **TOY)
    assert (run.total_seconds >= 1e6) == is_command


def test_a_won_run_is_trained_on_by_a_higher_target_or_none(make_run):
    run = make_run()
    train(run)
    run.evaluations.append(toy_evaluation(3, 19.0, target=18.0, is_won=True))
    run.with_config(run.config.updated({"until_return": 18.0}, "test")).write_config(3)
    with pytest.raises(ConfigError, match="a higher until_return, or until_return none"):
        pixelpong.resume(run.path, quiet=True, updates=5)
    assert pixelpong.resume(run.path, quiet=True, updates=4, until_return=20.0).update == 4
    free = pixelpong.resume(run.path, quiet=True, updates=5, until_return=None)
    assert (free.update, free.config.until_return) == (5, None)


def test_ctrl_c_saves_and_stops_a_script_that_may_go_on(tmp_path):
    before, path = signal.getsignal(signal.SIGINT), tmp_path / "toy"
    never = {"updates": 10**6, "save_every": 10**6}
    place, press = "pixelpong.play.worker:Worker.play", lambda: signal.raise_signal(signal.SIGINT)
    with planted(place, 8, press), pytest.raises(KeyboardInterrupt) as stop:
        pixelpong.train("classic", run=path, quiet=True, **TOY | never)
    assert str(stop.value) == f"update 3 is saved; continue with pixelpong.resume('{path}')"
    assert RunDirectory(path).checkpoints.load_latest().update == 3
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture
def run(toy_runs):
    return Run(toy_runs["classic"])


def test_agents_are_listed_and_loaded(run):
    files = [*run.path.glob("checkpoints/0*"), *run.path.glob("agents/*.safetensors")]
    assert run.agents() == sorted({int(file.stem) for file in files})
    assert run.agents()[-1] == 12
    assert [run.agent(each).about["update"] for each in run.agents()] == run.agents()
    assert run.agent("latest").about["update"] == 12


def test_an_evaluation_shows_itself_in_words_and_a_histogram():
    one = Evaluation(-1.5, 24.0, (-21.0, 18.0), (-21.0, 18.0, 18.0), 2345.6)
    shown = one._repr_html_()
    assert str(one) in shown
    assert "\n−21 █ 1\n+18 ██ 2\n" in shown


@pytest.mark.parametrize("content", [b"\x89PNG", b"film"])
def test_the_title_of_pictures_and_films_is_text_and_not_html(content):
    """A run may be a stranger's, and so its name."""
    shown = Media(content, 'curve of "><script>alert(1)</script>')._repr_html_()
    assert "curve of &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script" not in shown


@pytest.mark.slow
def test_pictures_and_films_show_themselves_and_can_be_saved(run, tmp_path, make_run):
    pytest.importorskip("matplotlib")
    pytest.importorskip("av")
    shown = run._repr_html_()
    assert f"<b>{run.summary}</b>" in shown
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', shown)
    assert base64.b64decode(data) == run.plot().content
    assert "<img" not in Run(make_run().path)._repr_html_(), "it has no update yet"
    picture, film = run.plot("health"), run.replay("latest", 2, sampled=True)
    assert picture._repr_html_().startswith('<img alt="health of classic')
    assert "health of classic" in repr(picture)
    assert "update 12: sampled episode 2" in repr(film)
    assert (picture.content[:4], film.content[4:8]) == (b"\x89PNG", b"ftyp")
    for media in (picture, film):
        media.save(tmp_path / "media")
        assert (tmp_path / "media").read_bytes() == media.content


@pytest.mark.slow
def test_it_trains_and_shows_runs_in_a_notebook(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    options = TOY | {"engine": "threads", "workers": 1}
    cells = [
        "import pixelpong",
        f"run = pixelpong.train('classic', run='toy', updates=3, **{options})\nrun",
        "pixelpong.evaluate(run, 2, workers=1).returns",
        "run.plot()",
        "pixelpong.Run('nowhere')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, allow_errors=True).execute(cwd=str(tmp_path))
    _, trained, (result,), (shown,), (refused,) = (cell.outputs for cell in notebook.cells)
    text = "".join(each["text"] for each in trained[:-1])  # and no piece of HTML a line
    assert text.splitlines()[-1].split("  ")[1] == "update 3"
    assert "update 3, 6 episodes" in trained[-1]["data"]["text/plain"]
    assert result["output_type"] == "execute_result"
    assert "data:image/png" in shown["data"]["text/html"]
    assert refused["traceback"] == [f"RunError: {refused['evalue']}"]


def test_a_run_is_the_same_whichever_way_its_path_is_written(make_run, monkeypatch):
    run = make_run(updates=1)
    train(run)
    monkeypatch.chdir(run.path.parent)
    ways = {Run(run.path), Run("run"), Run("./run"), Run(f"../{run.path.parent.name}/run")}
    assert len(ways) == 1
