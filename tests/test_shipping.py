"""A small agent file from a run: `pixelpong export RUN --agent FILE`."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.agent.choice import load_agent
from pixelpong.agent.file import Start, decode_agent
from pixelpong.faces import shipping
from pixelpong.faces.shipping import find_start
from pixelpong.loop import train


@pytest.fixture
def run(make_run, mode, monkeypatch):
    monkeypatch.setattr(shipping, "SURVEY_STEPS", 500)
    run = make_run(hidden=8, streams=2, horizon=30, batch_size=2)
    train(run)
    return run


def test_the_file_holds_the_agent_and_its_evaluation(run, tmp_path, report):
    file = tmp_path / "agent.safetensors"
    words = ["export", run.path, "--agent", file, "--episodes", "3"]
    rows = report(*words, "--checkpoint", "latest")["rows"]
    agent = decode_agent(file.read_bytes(), "a test")
    exact = run.checkpoints.load_latest().params["W1"]
    start = find_start(load_agent(run, "latest"), run.config)
    assert start == (Start(run.config.seed, 1) if agent.algorithm == "ppo" else None)
    others = 0 if start is None else start.draw(exact.shape)
    kept = np.flatnonzero((agent.params["W1"] != others).reshape(len(exact), -1).any(axis=1))
    assert 0 < len(kept) <= rows < len(exact)
    np.testing.assert_allclose(agent.params["W1"][kept], exact[kept], atol=0.01)
    returns = agent.about["evaluation"]["greedy"]["returns"]
    played = [agent.play_episode(agent.about["evaluation_seed"], i) for i in range(3)]
    assert [replay.episode_return for replay in played] == returns
    assert agent.about["config"] == run.config.to_flat()


def test_a_small_file_keeps_the_rows_that_matter_most(run, report):
    words = ["export", run.path, "--agent", "a.safetensors", "--episodes", "1"]
    words += ["--checkpoint", "latest", "--kilobytes"]
    small, large = (report(*words, kilobytes)["rows"] for kilobytes in (1, 2000))
    assert 0 < small < large


def test_a_file_that_cannot_be_written_is_refused_in_a_line(run, tmp_path, call):
    file = tmp_path / "nowhere" / "agent.safetensors"
    code, _, err = call("export", run.path, "--agent", file, "--episodes", "1")
    assert code != 0
    assert "expected to write" in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("**/.tmp-*"))
