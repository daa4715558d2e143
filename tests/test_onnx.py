"""The ONNX file: the same network in a program that knows nothing of pixelpong."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time

import numpy as np
import pytest
from conftest import patience

from pixelpong.agent.explain import explain
from pixelpong.agent.file import Agent
from pixelpong.config.protocols import find_protocol
from pixelpong.env import features
from pixelpong.errors import ConfigError, RunError
from pixelpong.faces import onnx as ours
from pixelpong.faces.cli import main
from pixelpong.items import ACTIONS, STAY
from pixelpong.learn import gated, network
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole
from pixelpong.seeding import make_rng

ALGORITHMS = ("reinforce", "ppo")


def make_agent(algorithm, dtype="float32", environment="Catch-v0", hidden=12) -> Agent:
    """A network that has opinions: its outputs are far from even."""
    rng = make_rng(3, "params")
    if algorithm == "ppo":
        params = gated.init_params(rng, features.NUM_INPUTS, hidden, dtype)
        params["W2"] *= 20
        params["b2"] += np.array([0.3, -0.2, 0.1, 0.05], dtype)
    else:
        params = network.init_params(rng, hidden, dtype)
        params["W1"] *= 10
    about = {"update": 7, "params_sha256": fingerprint(params)}
    return Agent(params, algorithm, find_protocol(environment), about)


def run_elsewhere(path, x):
    """What onnxruntime makes of the file, by output."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, {"observation": x}), strict=True))


def observe(agent, number, seed=5):
    """Sampled play: the replay, and observations made by the recipe, sentence by sentence."""
    replay = agent.play_episode(seed, is_greedy=False)
    observations, before, last = [], None, STAY
    for moment in itertools.islice(replay.watch(), number):
        red = moment.frame[35:195:2, ::2, 0]
        now = np.where((red == 0) | (red == 109) | (red == 144), 0, 1)
        if agent.algorithm == "ppo":
            empty = np.zeros((80, 80)) if before is None else before
            observations.append(features.observe_features(empty, now, ACTIONS.index(last)))
        else:
            observations.append(np.zeros(6400) if before is None else (now - before).reshape(6400))
        before, last = now, moment.action
    return replay, np.stack(observations).astype(np.float32)


@pytest.fixture(scope="module", params=ALGORITHMS)
def played(request):
    """The algorithm, a replay of its agent in Pong, and what the recipe makes of the frames."""
    return request.param, *observe(make_agent(request.param, environment="ALE/Pong-v5"), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnxruntime_gives_what_numpy_and_the_playing_agent_give(tmp_path, played, dtype):
    """The whole way by the recipe: from frames of Pong to probabilities and value."""
    algorithm, replay, x = played
    agent, x = make_agent(algorithm, dtype, "ALE/Pong-v5"), x.astype(dtype)
    ours.write_onnx(agent, tmp_path / "agent.onnx")
    explanations = [each for _, each in itertools.islice(explain(replay, agent, 10), len(x[::10]))]
    assert len({row.tobytes() for row in x}) > 500, "play, not one picture"
    got, limit = run_elsewhere(tmp_path / "agent.onnx", x), 1e-5 if dtype == "float32" else 1e-12
    if algorithm == "ppo":
        y, _ = gated.forward(agent.params, x)
        e = np.exp(y[:, :3])
        wanted = {"probabilities": e / e.sum(axis=1)[:, None], "value": y[:, 3]}
        values = [explanation.value for explanation in explanations]
        np.testing.assert_allclose(got["value"][::10], values, atol=1e-5)
    else:
        p, _ = network.forward(agent.params, x)
        wanted = {"probabilities": np.stack([p, 1 - p], axis=1)}
    assert set(got) == set(wanted)
    for name, values in wanted.items():
        assert np.ptp(values) > 0.1, "a network that always says the same proves nothing"
        assert got[name].dtype == dtype
        np.testing.assert_allclose(got[name], values, rtol=0, atol=limit)
    chances = [explanation.probabilities for explanation in explanations]
    np.testing.assert_allclose(got["probabilities"][::10], chances, atol=1e-5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_any_number_of_observations_goes_through_and_the_same_agent_gives_the_same_bytes(
    tmp_path, algorithm
):
    agent = make_agent(algorithm, hidden=3)
    for name in ("one", "two"):
        ours.write_onnx(agent, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    _, x = observe(agent, 5)
    five = run_elsewhere(tmp_path / "one", x)["probabilities"]
    for row, alone in zip(five, x, strict=True):
        one = run_elsewhere(tmp_path / "one", alone[None])["probabilities"]
        np.testing.assert_allclose(one[0], row, atol=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_file_says_what_it_is(tmp_path, algorithm):
    import onnx

    agent = make_agent(algorithm, environment="Pong-v0", hidden=3)
    report = ours.write_onnx(agent, tmp_path / "agent.onnx")
    model = onnx.load(tmp_path / "agent.onnx")
    facts = {each.key: each.value for each in model.metadata_props}
    assert facts.pop("observation") == ours.RECIPES[algorithm]
    assert facts.pop("action_meaning").startswith("0 stay, 2 up")
    assert {name: json.loads(fact) for name, fact in facts.items()} == {
        "environment": "Pong-v0",
        "frame_skips": [2, 4],
        "sticky": 0.25,
        "action_codes": [0, 2, 3] if algorithm == "ppo" else [2, 3],
        "algorithm": algorithm,
        "update": 7,
        "params_sha256": fingerprint(agent.params),
        "is_rounded": False,
    }
    assert report["outputs"] == ["probabilities", "value"][: 2 if algorithm == "ppo" else 1]
    assert report["bytes"] == (tmp_path / "agent.onnx").stat().st_size
    assert (report["opset"], report["inputs"]) == (17, len(agent.params["W1"]))
    assert report["params_sha256"] in ours.describe_onnx(report)


def test_the_command_exports_the_agent_of_a_run(toy_runs, tmp_path, capsys):
    target, run = tmp_path / "agent.onnx", str(toy_runs["classic"])
    assert main(["export", run, "--onnx", str(target), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert target.stat().st_size == report["bytes"]
    best = RunDirectory.open(toy_runs["classic"]).checkpoints.load_best()
    assert report["params_sha256"] == fingerprint(best.params)
    assert main(["export", run, "--onnx", str(target), "--checkpoint", "10"]) == 0
    assert "agent of update 10" in capsys.readouterr().out


def test_without_the_library_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'pixelpong\[onnx\]'"):
        ours.write_onnx(make_agent("reinforce"), tmp_path / "agent.onnx")


def test_a_network_too_large_for_the_format_is_refused_before_anything_is_copied(tmp_path):
    agent = make_agent("reinforce")
    large = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (6400, 90_000), (0, 0))
    agent = dataclasses.replace(agent, params={"W1": large, "W2": large[0]})
    begin = time.perf_counter()
    with pytest.raises(RunError, match="expected a network of at most 2.1 GB .* got 2.3 GB"):
        ours.write_onnx(agent, tmp_path / "agent.onnx")
    assert time.perf_counter() - begin < 5 * patience()


def test_a_file_is_whole_or_as_it_was(small_disk):
    disk = small_disk("1m")
    target = disk / "agent.onnx"
    write_whole(target, b"before")
    with pytest.raises(RunError, match=r"^expected to write .* got No space left on device; make"):
        write_whole(target, bytes(3 << 20))
    assert target.read_bytes() == b"before"
    assert [path.name for path in disk.iterdir()] == ["agent.onnx"]


@pytest.mark.parametrize("name", ["missing/agent.onnx", "folder", "a\0b"])
def test_a_place_that_takes_no_file_is_one_line(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError, match="^expected to write .*") as caught:
        write_whole(tmp_path / name, b"x")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
