"""Agents that are saved on the way of a run: which, their files, and which one a word means."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import toy_config

from pixelpong.agent import file as agents
from pixelpong.agent.choice import Agents, open_agent
from pixelpong.agent.file import Agent, is_due
from pixelpong.agent.game import play_game
from pixelpong.errors import CheckpointError
from pixelpong.learners import make_learner
from pixelpong.loop import train
from pixelpong.run.arrays import decode_arrays, unsqueeze
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


@pytest.mark.parametrize(("has_met_agents", "most"), [(False, 10_000), (True, 24_576)])
def test_a_small_file_keeps_the_rows_with_the_largest_gradients_and_their_sign(
    has_met_agents, most
):
    """Of 29,500 rows with drawn mean squares; in ascending order, as the format wants them."""
    learner = make_learner(toy_config("fast", hidden=1))
    rng, rows = np.random.default_rng(0), np.arange(0, 59_000, 2)
    squares = rng.random((len(rows), 1, 2)).astype(np.float32)
    learner.params["W1"][:] = rng.standard_normal(learner.params["W1"].shape)
    agent = Agent.of_training(learner.config, learner.params, learner.progress)
    arrays = {"rows": rows.astype(np.uint16), "v.W1": squares}
    small, _ = decode_arrays(agents.encode_small(agent, arrays, has_met_agents))
    limit = np.sort(squares.sum(axis=(1, 2)))[-most]
    assert small["rows"].tolist() == rows[squares.sum(axis=(1, 2)) >= limit].tolist()
    kept = unsqueeze(small["W1"], most, 2)
    assert np.abs(kept).max() == 7, "half a byte"
    assert (np.sign(kept) * learner.params["W1"][small["rows"], 0] >= 0).all()
