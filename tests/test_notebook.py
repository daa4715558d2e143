"""A run in a notebook: what its methods return shows itself, without a display."""

from __future__ import annotations

import base64
import re

import pytest

from pixelpong import Run
from pixelpong.errors import CheckpointError, RunError
from pixelpong.run.record import Record

pytest.importorskip("matplotlib")


@pytest.fixture
def path(toy_runs):
    return toy_runs["classic"]


@pytest.fixture
def run(path):
    return Run(path)


def test_a_run_says_what_it_is_and_what_can_be_asked(run, path):
    lines = repr(run).splitlines()
    assert lines[0] == f"Run('{path}'): classic on ALE/Pong-v5"
    assert lines[1].startswith("  budget spent at update 12; greedy return ")
    assert "update 12, 36 episodes" in lines[2]
    assert f"{len(run.agents())} agents saved" in lines[3]
    assert ".plot(kind) with curve, health" in lines[4]
    assert run.metrics()["entropy"].shape == (12,)


def test_a_path_that_is_no_run_is_refused_in_one_line(tmp_path):
    with pytest.raises(RunError, match="expected a run directory") as caught:
        Run(tmp_path / "nowhere")
    (line,) = caught.value._render_traceback_()  # what IPython shows in a traceback's place
    assert line == f"RunError: {caught.value}"


@pytest.mark.slow
def test_a_run_shows_its_verdict_in_bold_and_its_curve(run, make_run):
    shown = run._repr_html_()
    assert f"<b>{Record.read(run.path).verdict}</b>" in shown
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', shown)
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "<img" not in Run(make_run().path)._repr_html_()


def test_agents_are_listed_and_loaded(run):
    files = [*run.path.glob("checkpoints/0*"), *run.path.glob("agents/*.safetensors")]
    assert run.agents() == sorted({int(file.stem) for file in files})
    assert run.agents()[-1] == 12
    assert [run.agent(each).about["update"] for each in run.agents()] == run.agents()
    assert run.agent("latest").about["update"] == 12
    with pytest.raises(CheckpointError, match="Saved: [0-9, ]*12, best, latest"):
        run.agent(77)
    assert run.config.hidden == 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["curve", "health"])
def test_every_kind_of_picture_shows_itself(run, kind, tmp_path):
    picture = run.plot(kind)
    picture.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert picture._repr_html_().startswith(f'<img alt="{kind} of classic')
    assert f"{kind} of classic" in repr(picture)


def test_a_replay_is_a_film_of_an_agents_game(run, tmp_path):
    pytest.importorskip("av")
    film = run.replay()
    assert film.content[4:8] == b"ftyp"
    assert "greedy episode 0" in repr(film)
    film.save(tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").read_bytes() == film.content
    assert "update 12, sampled episode 2" in repr(run.replay("latest", 2, sampled=True))


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
