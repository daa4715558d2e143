"""A small agent file from a run: `pixelpong export RUN --agent FILE`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pixelpong.agent.choice import load_agent
from pixelpong.agent.file import Start, decode_agent
from pixelpong.config.presets import load_preset
from pixelpong.faces import shipping
from pixelpong.faces.cli import main
from pixelpong.faces.shipping import find_start
from pixelpong.loop import train
from pixelpong.run.directory import RunDirectory


@pytest.fixture(params=["fast", "classic"])
def run(request, tmp_path, monkeypatch):
    monkeypatch.setattr(shipping, "SURVEY_STEPS", 500)
    toy = {"environment": "Catch-v0", "engine": "serial", "hidden": 8, "updates": 3}
    few = {"streams": 2, "horizon": 30, "batch_size": 2}
    run = RunDirectory.create(
        tmp_path / "run", load_preset(request.param).updated(toy | few, "test")
    )
    train(run)
    return run


def test_the_file_holds_the_agent_and_its_evaluation(run, tmp_path, capsys):
    file = tmp_path / "agent.safetensors"
    words = ["export", str(run.path), "--agent", str(file), "--episodes", "3", "--json"]
    assert main([*words, "--checkpoint", "latest"]) == 0
    report = json.loads(capsys.readouterr().out)
    agent = decode_agent(file.read_bytes(), "a test")
    exact = run.checkpoints.load_latest().params["W1"]
    start = find_start(load_agent(run, "latest"), run.config)
    assert start == (Start(run.config.seed, 1) if agent.algorithm == "ppo" else None)
    others = 0 if start is None else start.draw(exact.shape)
    kept = np.flatnonzero((agent.params["W1"] != others).reshape(len(exact), -1).any(axis=1))
    assert 0 < len(kept) <= report["rows"] < len(exact)
    np.testing.assert_allclose(agent.params["W1"][kept], exact[kept], atol=0.01)
    returns = agent.about["evaluation"]["greedy"]["returns"]
    played = [agent.play_episode(agent.about["evaluation_seed"], i) for i in range(3)]
    assert [replay.episode_return for replay in played] == returns
    assert agent.about["config"] == run.config.to_flat()


def test_a_small_file_keeps_the_rows_that_matter_most(run, tmp_path, capsys):
    sizes = []
    for kilobytes in (1, 2000):
        file = tmp_path / f"{kilobytes}.safetensors"
        words = ["export", str(run.path), "--agent", str(file), "--episodes", "1", "--json"]
        assert main([*words, "--checkpoint", "latest", "--kilobytes", str(kilobytes)]) == 0
        sizes.append(json.loads(capsys.readouterr().out)["rows"])
    assert 0 < sizes[0] < sizes[1]


def test_a_file_that_cannot_be_written_is_refused_in_a_line(run, tmp_path, capsys):
    file = str(tmp_path / "nowhere" / "agent.safetensors")
    assert main(["export", str(run.path), "--agent", file, "--episodes", "1"]) != 0
    err = capsys.readouterr().err
    assert "expected to write" in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("**/.tmp-*"))
