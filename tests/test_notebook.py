"""A run in a notebook: what its methods return shows itself, without a display."""

from __future__ import annotations

import base64
import re
import subprocess
import sys

import numpy as np
import pytest

import pixelpong
from pixelpong import Run
from pixelpong.errors import CheckpointError, ConfigError, RunError
from pixelpong.faces.notebook import Media
from pixelpong.faces.text import describe_times
from pixelpong.loop import train
from pixelpong.run.summary import duration, summarize

pytest.importorskip("matplotlib")


@pytest.fixture
def path(toy_runs):
    return toy_runs["classic"]


@pytest.fixture
def run(path):
    return Run(path)


def test_a_run_says_what_it_is_and_what_can_be_asked(run, path):
    lines = repr(run).splitlines()
    assert lines[0] == f"Run('{path}'): classic on ALE/Pong-v5, emulator native"
    assert lines[1].startswith("  budget spent at update 12; greedy return ")
    assert "update 12, 36 episodes" in lines[2]
    assert f"{len(run.agents())} agents saved" in lines[3]
    assert ".plot(kind) with curve, health" in lines[4]


def test_a_run_tells_the_same_times_as_inspect(make_run, report):
    run = make_run(updates=2, evaluate_every=1, evaluate_episodes=2)
    train(run)
    told = report("runs", run.path)
    assert 0 < told["training_seconds"] < told["wall_seconds"]
    words = f"{duration(Run(run.path).metrics()['training_seconds'][-1])} of training"
    assert words in repr(Run(run.path))
    assert words in describe_times(told)


def test_a_run_that_has_not_begun_says_so(make_run):
    assert "not begun" in repr(Run(make_run().path))


def test_a_path_that_is_no_run_is_refused_in_one_line(tmp_path):
    with pytest.raises(RunError, match="expected a run directory") as caught:
        Run(tmp_path / "nowhere")
    (line,) = caught.value._render_traceback_()  # what IPython shows in a traceback's place
    assert line == f"RunError: {caught.value}"


@pytest.mark.slow
def test_a_run_shows_its_verdict_in_bold_and_its_curve(run, make_run):
    shown = run._repr_html_()
    assert f"<b>{summarize(run.path).verdict}</b>" in shown
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', shown)
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "<img" not in Run(make_run().path)._repr_html_()


def test_metrics_are_columns_of_one_length_as_pandas_takes_them(run):
    columns = run.metrics()
    assert {column.shape for column in columns.values()} == {(12,)}
    assert isinstance(columns, dict)


def test_metrics_are_arrays(run):
    metrics = run.metrics()
    assert metrics["update"].tolist() == list(range(1, 13))
    assert isinstance(metrics["entropy"], np.ndarray)
    assert metrics["entropy"].dtype == np.float64
    assert np.isfinite(metrics["steps_per_second"]).all()


def test_agents_are_listed_and_loaded(run):
    files = [*run.path.glob("checkpoints/0*"), *run.path.glob("milestones/*.safetensors")]
    assert run.agents() == sorted({int(file.stem) for file in files})
    assert run.agents()[-1] == 12
    assert [run.agent(each).about["update"] for each in run.agents()] == run.agents()
    assert run.agent("latest").about["update"] == 12
    with pytest.raises(CheckpointError, match="use best, latest or one of: [0-9, ]*12"):
        run.agent(77)
    assert run.config.network.hidden == 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["curve", "health"])
def test_every_kind_of_picture_shows_itself(run, kind, tmp_path):
    picture = run.plot(kind)
    picture.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert picture._repr_html_().startswith(f'<img alt="{kind} of classic')
    assert f"{kind} of classic" in repr(picture)


def test_runs_are_compared(run, path):
    both = run.plot("curve", others=[path, Run(path)])
    assert both.content != run.plot("curve").content
    assert repr(both).count("classic") == 3
    with pytest.raises(ConfigError, match="expected a kind of picture, got 'all'"):
        run.plot("all")


def test_a_film_shows_itself_as_html():
    film = Media(b"\x00mp4", "a <b>")
    html = film._repr_html_()
    data = re.search(r'src="data:video/mp4;base64,([^"]*)"', html)[1]
    assert base64.b64decode(data) == b"\x00mp4"
    assert html.startswith("<video controls")
    assert "a &lt;b&gt;" in html


def test_a_replay_is_a_film_of_an_agents_game(run, tmp_path):
    pytest.importorskip("av")
    pytest.importorskip("pixelpong.faces.film")
    film = run.replay()
    assert film.content[4:8] == b"ftyp"
    assert "greedy episode 0" in repr(film)
    film.save(tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").read_bytes() == film.content
    assert "update 12, sampled episode 2" in repr(run.replay("latest", 2, is_greedy=False))


@pytest.mark.slow
def test_the_package_gives_run_only_when_asked():
    script = (
        "import sys, pixelpong\n"
        "heavy = {'numpy', 'pixelpong.run.directory', 'pixelpong.faces.plots'}\n"
        "heavy |= {'matplotlib', 'numba'}\n"
        "print(*(heavy & set(sys.modules)), 'Run' in dir(pixelpong))\n"
        "pixelpong.Run\n"
        "print(*({'matplotlib', 'av'} & set(sys.modules)), "
        "'pixelpong.run.directory' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["True", "True"]
    with pytest.raises(AttributeError, match="no attribute 'Runs'"):
        pixelpong.Runs  # noqa: B018


@pytest.mark.slow
def test_it_shows_in_a_real_notebook(path, tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [f"from pixelpong import Run\nrun = Run({str(path)!r})", "run.plot()", "Run('nowhere')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, allow_errors=True).execute(cwd=str(tmp_path))
    (shown,) = notebook.cells[1].outputs
    assert "data:image/png" in shown["data"]["text/html"]
    (refused,) = notebook.cells[2].outputs
    assert len(refused["traceback"]) == 1
