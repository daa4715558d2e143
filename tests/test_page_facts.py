"""What the page's server tells beyond a run's lines: glossary, small curves, sweeps, moments."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from toys import toy_config
from web_client import make_lines, metrics_line

from pixelpong.agent.choice import find_game, load_agent
from pixelpong.agent.expect import expect, find_arrival
from pixelpong.agent.explain import explain
from pixelpong.errors import RunError
from pixelpong.faces.page import view
from pixelpong.faces.page.jobs import carry_out
from pixelpong.faces.page.library import Library
from pixelpong.faces.page.view import CURVE_POINTS, View
from pixelpong.run.directory import RunDirectory
from pixelpong.run.tail import read_spread
from pixelpong.sweep import sweep

ROOT = Path(__file__).parents[1]


def load_script(path: Path):
    """A script outside the package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_sentences_are_those_of_the_glossary():
    script = load_script(ROOT / "docs" / "_ext" / "page_glossary.py")
    terms = script.read_terms((ROOT / "docs" / "glossary.md").read_text("utf-8"))
    shipped = json.loads(script.TARGET.read_text("utf-8"))
    assert shipped == terms, "run: python docs/_ext/page_glossary.py"
    assert not [words for words in terms.values() if set(words) & set("{}`$<>*\n")]


@pytest.mark.parametrize("updates", [1, 3, 40, 1500])
def test_a_small_curve_is_spread_over_the_whole_training(tmp_path, updates):
    run = RunDirectory.create(tmp_path / "run", toy_config("fast"), [].append)
    lines = [metrics_line(each, estimated_return=each / 1000) for each in range(1, updates + 1)]
    run.metrics.append(*lines)
    found = [line["update"] for line in read_spread(run.metrics.path, CURVE_POINTS)]
    assert (found[0], found[-1]) == (1, updates)
    assert len(found) <= CURVE_POINTS + 2
    assert max(np.diff([*found, updates]), default=0) <= max(1, 2 * updates / CURVE_POINTS)
    curve = View(run.path).glance()["curve"]
    assert curve[-1] == (100 * updates, round(updates / 1000, 2))


def test_the_list_knows_seeds_and_groups_and_reads_a_run_again_only_if_it_has_changed(
    tmp_path, monkeypatch
):
    for name, changes in (("a", {"seed": 1}), ("b", {"seed": 2}), ("c", {"hidden": 9})):
        RunDirectory.create(tmp_path / name, toy_config("fast", **changes), [].append)
    library = Library(tmp_path)
    told = {each["name"]: each for each in library.list()}
    assert [told[name]["seed"] for name in "ab"] == [1, 2]
    assert told["a"]["group"] == told["b"]["group"] != told["c"]["group"]
    read = []
    summarize = view.summarize
    monkeypatch.setattr(
        view, "summarize", lambda path: (read.append(path.name), summarize(path))[1]
    )
    library.list()
    assert read == []
    RunDirectory.open(tmp_path / "b").metrics.append(metrics_line(1))
    assert {each["name"]: each["update"] for each in library.list()}["b"] == 1
    assert read == ["b"]


def test_the_runs_of_a_sweep_are_listed_by_its_name_and_theirs(tmp_path):
    make_lines(tmp_path / "sweep-001" / "seed-0", updates=2)
    make_lines(tmp_path / "folder" / "seed-0", updates=2)
    make_lines(tmp_path / "single", updates=1)
    (tmp_path / "sweep-001" / sweep.FILE).write_text("{}")
    library = Library(tmp_path)
    assert {each["name"] for each in library.list()} == {"single", "sweep-001/seed-0"}
    assert view.SWEEP_FILE == sweep.FILE


@pytest.mark.slow
def test_a_moment_holds_what_the_network_answers():
    told = json.loads(carry_out(None, "moment", 0))
    chosen = find_game(None, "best")
    before, now, explanation = find_arrival(explain(chosen.replay, chosen.agent))
    found = expect(
        load_agent(None, "best").make_network(), before.screen, now.screen, before.action
    )
    np.testing.assert_allclose(told["height_probabilities"], found.probabilities, atol=1e-4)
    np.testing.assert_allclose(told["height_values"], found.values, atol=1e-4)
    np.testing.assert_allclose(told["probabilities"], explanation.probabilities, atol=1e-4)
    assert told["step"] == now.step
    place = told["paddle"]["height"] // 2
    wanted = np.abs(np.array(told["height_values"][place : place + 2]) - told["value"]).min()
    assert wanted < 0.5, "the paddle stands still there, and flew here"


def test_another_game_has_no_such_moment(toy_runs, tmp_path):
    path = shutil.copytree(toy_runs["fast"], tmp_path / "toy")
    newest = RunDirectory.open(path, [].append).checkpoints.updates()[-1]
    with pytest.raises(RunError, match="expected a moment when the ball reaches the paddle"):
        carry_out(path, "moment", newest)
