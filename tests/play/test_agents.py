"""Agents that are saved on the way of a run: which, their files, and which one a word means."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import make_checkpoint
from hostile import within_limits
from hypothesis import given
from hypothesis import strategies as st
from toys import toy_config

from pixelpong.agent import file as agents
from pixelpong.agent.choice import Agents, find_agents, open_agent, settle_update
from pixelpong.agent.file import Agent, is_due, unsqueeze
from pixelpong.agent.game import play_game
from pixelpong.errors import CheckpointError
from pixelpong.faces.notebook import Run
from pixelpong.faces.policy import Policy
from pixelpong.learners import make_learner
from pixelpong.loop import Updated, train
from pixelpong.play.scenes import scene_of
from pixelpong.run.arrays import decode_arrays, encode_arrays
from pixelpong.run.directory import RunDirectory


@pytest.mark.slow
@given(st.integers(0, 100_000), st.integers(1, 12))
def test_saved_agents_lie_ever_further_apart(newest, every):
    """No two of them more than a third of the way apart, and few in all."""
    due = [update for update in range(0, newest + 1, every) if is_due(update, every)]
    assert due[0] == 0
    assert len(due) <= 3 + 2 * max(0, newest // every).bit_length()
    for before, after in itertools.pairwise([*due, newest]):
        assert after - before <= max(every, before / 2)


def test_the_agents_that_a_run_keeps_are_those_of_its_checkpoints_but_for_rounding(mode, toy_runs):
    run = RunDirectory(toy_runs[mode])
    assert (run.agents.updates(), run.list_agents()[-1]) == ([0, 10], 12)
    exact, rounded = (Agent.read(each.path(10)) for each in (run.checkpoints, run.agents))
    assert rounded.about == exact.about | {"is_rounded": True}
    assert (rounded.algorithm, rounded.protocol) == (exact.algorithm, exact.protocol)
    levels = {"ppo": 7, "reinforce": 127}[exact.algorithm]
    for name, w in exact.params.items():
        got = rounded.params[name]
        touched = got.reshape(len(got), -1).any(axis=1) if name == "W1" else slice(None)
        largest = np.abs(w[touched]).max(axis=tuple(range(1, w.ndim)), keepdims=True)
        error = 0.502 / levels * largest if name == "W1" else 1e-3 * np.abs(w[touched]) + 1e-6
        assert (np.abs(got[touched] - w[touched]) <= error).all()
        # The rows that no gradient has reached are not in the file.
        assert name != "W1" or 0 < np.mean(touched) < 1


@pytest.mark.parametrize("kind", ["checkpoints", "agents", "package"])
def test_a_file_is_opened_once_to_read_its_agent(kind, toy_runs, monkeypatch):
    """So what is checked is what is used, even if the file is replaced in the meantime."""
    run, opened, really_open = RunDirectory(toy_runs["fast"]), [], os.open
    paths = {name: getattr(run, name).path(10) for name in ("checkpoints", "agents")}
    path = paths.get(kind, agents.SHIPPED_FOLDER / "club.safetensors")

    def note(path, *flags):
        opened.append(path)
        return really_open(path, *flags)

    monkeypatch.setattr(os, "open", note)
    Agent.read(path, is_of_run=kind in paths)
    assert opened == [path]


def test_a_file_of_a_run_may_be_as_large_as_its_network_needs_and_no_larger(
    toy_runs, tmp_path, monkeypatch
):
    """More than a stranger's file, because a checkpoint also has the optimizer's memory."""
    monkeypatch.setattr(agents, "FILE_LIMIT", 0)
    path = tmp_path / "agent.safetensors"
    path.write_bytes(RunDirectory(toy_runs["fast"]).checkpoints.path(10).read_bytes())
    assert Agent.read(path, is_of_run=True).about["update"] == 10
    with pytest.raises(CheckpointError, match="it has more than 0 bytes"):
        Agent.read(path)
    os.truncate(path, 1 << 42)
    with within_limits(path), pytest.raises(CheckpointError, match="it has more than .* bytes"):
        Agent.read(path, is_of_run=True)


def test_the_file_of_an_agent_of_any_game_has_what_training_changed_and_the_sight(
    toy_runs, tmp_path
):
    agent = Agent.read(RunDirectory(toy_runs["atari"]).checkpoints.path(10))
    size = agent.write(tmp_path / "small.safetensors")
    copy = Agent.read(tmp_path / "small.safetensors")
    changed = agent.change_of(np.arange(len(agent.params["W1"]))).any(axis=1)
    kept = copy.params["W1"].any(axis=(1, 2))
    assert 100 < changed.sum() < len(changed) / 10
    assert (kept == changed).all()
    largest = np.abs(agent.params["W1"][changed]).max()
    np.testing.assert_allclose(
        copy.params["W1"][changed], agent.params["W1"][changed], atol=0.01 * largest
    )
    np.testing.assert_array_equal(copy.sight.background, agent.sight.background)
    assert size < 200_000


def test_the_initial_layer_of_a_run_is_drawn_once_for_all_its_agents(mode, toy_runs, monkeypatch):
    drawn, real = [], agents.draw_params
    monkeypatch.setattr(agents, "draw_params", lambda *a: drawn.append(1) or real(*a))
    agents._initial_layer.cache_clear()
    for update in (10, 12):
        agent = Agent.read(RunDirectory(toy_runs[mode]).checkpoints.path(update))
        agent.change_of(np.arange(3))
    assert len(drawn) <= 2, "in the type of the file, and in that of small files"


def test_an_agent_with_other_parameters_than_its_run_had_is_refused(mode, toy_runs):
    """As with libraries that draw other numbers from the seed."""
    path = RunDirectory(toy_runs[mode]).checkpoints.path(10)
    arrays, card = decode_arrays(path.read_bytes())
    content = encode_arrays(arrays, card | {"start": card["start"] | {"seed": 999}})
    with pytest.raises(CheckpointError, match="the installed libraries draw other numbers"):
        Agent.decode(content, path)


def test_if_the_checkpoints_of_a_won_run_are_damaged_the_newest_saved_agent_is_shown(
    make_run, capsys
):
    train(run := make_run(updates=6, save_agent_every=2, save_every=100, hidden=8))
    run.checkpoints.thin(6, 1)
    assert run.checkpoints.updates() == [0, 6]
    run.checkpoints.path(6).write_bytes(b"damaged")
    for which, update in (("best", 6), ("latest", 6), ("6", 6)):
        assert Agents.of_run(run).load(which).about["update"] == update
        assert capsys.readouterr().err.endswith("using the agent of update 6\n")
    run.agents.path(6).unlink()
    assert Agents.of_run(run).load("latest").about["update"] == 4
    with pytest.raises(CheckpointError, match="000006"):
        Agents.of_run(run).load("6")


def found_in(run, which="best"):
    return Agents.of_run(run).load(which).about["update"]


def test_the_best_agent_of_a_run_that_learns_or_was_killed_is_the_newest(make_run, call):
    """Only the untrained one has a checkpoint there, until the first is due."""
    run = make_run(updates=9, save_agent_every=2, save_every=100, hidden=8)
    best = []

    def show(event):
        if isinstance(event, Updated):
            best.append(found_in(run))
            if event.progress.update == 7:
                raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        train(run, show)
    assert best == [0, 2, 2, 4, 4, 6, 6]
    assert run.checkpoints.updates()[0] == 0
    for update in run.checkpoints.updates()[1:]:  # what a kill leaves
        run.checkpoints.path(update).unlink()
    assert (run.checkpoints.updates(), found_in(run)) == ([0], 6)
    assert (Run(run.path).agent().about["update"], Policy.load(run.path).about["update"]) == (6, 6)
    assert call("export", run.path, "--json")[1].count('"update": 6') == 1


def test_a_high_mean_of_older_training_games_makes_no_agent_the_best(make_run):
    run = make_run()
    run.checkpoints.folder.mkdir(exist_ok=True)
    for update, score in ((0, None), (4, 15.0), (8, -3.0)):
        run.checkpoints.save(make_checkpoint(update, score))
    assert (run.checkpoints.find_best(), Agents.of_run(run).best) == (4, "8")


def test_the_best_of_evaluated_agents_is_the_surest_whether_newer_ones_exist_or_not(make_run):
    run = make_run(updates=9, evaluate_every=2, evaluate_episodes=5, save_every=1, hidden=8)
    train(run)
    lows = {line["update"]: line["ci95"][0] for line in run.evaluations.read()}
    surest = max(lows, key=lambda update: (lows[update], update))
    assert (found_in(run), found_in(run, "latest")) == (surest, 9)


def test_the_best_agent_of_a_won_run_is_the_one_that_won(make_run):
    run = make_run(updates=50, until_return=-21.0, save_agent_every=1, hidden=8, max_frames=4)
    assert train(run).reason == "until_return"
    (won,) = (line["update"] for line in run.evaluations.read() if line["is_won"])
    assert found_in(run) == won > 0


def test_a_number_means_the_closest_saved_update_and_one_line_says_which(make_run, call, capsys):
    train(run := make_run(updates=6, save_agent_every=2, save_every=100, hidden=8))
    assert run.list_agents() == [0, 2, 4, 6]
    for asked, taken in ((3, 2), (5, 4), (100, 6), (4, 4), ("0004", 4)):
        assert found_in(run, str(asked)) == taken
        said = f"No agent was saved at update {asked}; this is update {taken}, the closest one"
        assert capsys.readouterr().err == (
            f"warning: {said} saved.\n" if asked in (3, 5, 100) else ""
        )
        assert find_agents(f"{run.path}@{asked}")[1] == find_agents(run.path, str(asked))[1]
        capsys.readouterr()
    code, out, err = call("evaluate", run.path, "--checkpoint", 3, "--episodes", 1)
    assert (code, err.count("this is update 2"), out.count("update 2:")) == (0, 1, 1)
    assert settle_update(f"{run.path}@100") == f"{run.path}@6"
    for asked in ("-3", "best ", "4.0", "9" * 5000, "newest"):
        with pytest.raises(CheckpointError, match="Saved: 0, 2, 4, 6, best, latest"):
            found_in(run, asked)


@pytest.mark.slow
def test_the_agents_in_the_package_are_what_their_cards_say():
    """Small, each stronger than the one before, and a recorded game comes out again."""
    folder = Path(agents.__file__).parent / "shipped"
    assert sum((folder / f"{name}.safetensors").stat().st_size for name in agents.SHIPPED) <= 1e6
    for name in agents.SHIPPED:
        agent = agents.load_shipped(name)
        about, greedy = agent.about, agent.about["evaluation"]["greedy"]
        assert len(about["params_sha256"]) == 64
        assert about["config"]["opponent"] == "league"
        *_, last = play_game(agent, about["evaluation_seed"], 3)
        assert last.points[1] - last.points[0] == greedy["returns"][3]
    assert greedy["mean_return"] > 18
    assert open_agent(None)[1].about == open_agent("package")[1].about == agent.about


@pytest.mark.parametrize(("sees_much", "most"), [(False, 10_000), (True, 24_576)])
def test_a_small_file_keeps_the_rows_with_the_largest_gradients_and_their_sign(sees_much, most):
    """Of 29,500 rows with drawn mean squares; in ascending order, as the format wants them."""
    learner = make_learner(toy_config("fast", hidden=1))
    rng, rows = np.random.default_rng(0), np.arange(0, 59_000, 2)
    squares = rng.random(learner.params["W1"].shape).astype(np.float32)
    learner.params["W1"][:] = rng.standard_normal(learner.params["W1"].shape)
    agent = Agent.of_training(
        scene_of("pong"), learner.config, learner.params, learner.progress, "a run"
    )
    is_touched = np.isin(np.arange(len(squares)), rows)
    small, _ = decode_arrays(agents.encode_small(agent, is_touched, squares, sees_much))
    limit = np.sort(squares[rows].sum(axis=(1, 2)))[-most]
    assert small["rows"].tolist() == rows[squares[rows].sum(axis=(1, 2)) >= limit].tolist()
    kept = unsqueeze(small["W1"], most, 2)
    assert np.abs(kept).max() == 7, "half a byte"
    assert (np.sign(kept) * learner.params["W1"][small["rows"], 0] >= 0).all()
