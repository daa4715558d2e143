"""The ONNX file: the same policy in a program that knows nothing of pixelpong."""

from __future__ import annotations

import dataclasses
import json
import sys
import time

import numpy as np
import pytest
from conftest import patience

from pixelpong.agent.file import Agent
from pixelpong.agent.network import PlainNetwork
from pixelpong.config.protocols import find_protocol
from pixelpong.env import features
from pixelpong.env.preprocess import preprocess
from pixelpong.errors import ConfigError, RunError
from pixelpong.faces import onnx as ours
from pixelpong.faces.cli import main
from pixelpong.items import ACTIONS, STAY
from pixelpong.learn import gated, network
from pixelpong.learn.network import sigmoid
from pixelpong.loop import train
from pixelpong.run.checkpoints import fingerprint
from pixelpong.run.files import write_whole
from pixelpong.seeding import make_rng

ALGORITHMS = ("reinforce", "ppo")


def make_agent(
    algorithm: str, dtype: str = "float32", environment: str = "ALE/Pong-v5", hidden: int = 12
) -> Agent:
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


def read_metadata(path) -> dict:
    import onnx

    return {each.key: each.value for each in onnx.load(path).metadata_props}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_onnxruntime_gives_what_numpy_gives_on_a_thousand_observations_of_pong(
    tmp_path, algorithm, dtype
):
    agent = make_agent(algorithm, dtype)
    report = ours.write_onnx(agent, tmp_path / "agent.onnx")
    x = ours.collect_observations(agent, 1000)
    assert len(np.unique(x, axis=0)) > 500, "play, not one picture"
    got, limit = run_elsewhere(tmp_path / "agent.onnx", x), 1e-5 if dtype == "float32" else 1e-12
    if algorithm == "ppo":
        y, _ = gated.forward(agent.params, x)
        e = np.exp(y[:, :3])
        wanted = {"probabilities": e / e.sum(axis=1)[:, None], "value": y[:, 3]}
    else:
        p = sigmoid(np.maximum(x @ agent.params["W1"], 0) @ agent.params["W2"])
        wanted = {"probabilities": np.stack([p, 1 - p], axis=1)}
    assert set(got) == set(wanted) == set(report["outputs"])
    for name, values in wanted.items():
        assert np.ptp(values) > 0.1, "a network that always says the same proves nothing"
        assert got[name].dtype == dtype
        np.testing.assert_allclose(got[name], values, rtol=0, atol=limit)
    assert report["observations"] == 1000
    assert 0 <= report["largest_difference"] < limit


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_file_decides_as_the_agent_does(tmp_path, algorithm):
    """The whole way, frames in and actions out, against the kernels that play."""
    agent = make_agent(algorithm)
    ours.write_onnx(agent, tmp_path / "agent.onnx")
    facts = read_metadata(tmp_path / "agent.onnx")
    codes = json.loads(facts["action_codes"])
    policy = agent.make_network()
    assert codes == list(policy.actions)
    observations, explanations = [], []
    before, last = np.zeros((80, 80), np.float32), STAY
    for moment in agent.play_episode(5, is_greedy=False).watch():
        if moment.action is None or len(explanations) == 150:
            break
        now = preprocess(moment.frame)
        if algorithm == "ppo":
            observations.append(features.observe_features(before, now, ACTIONS.index(last)))
        else:
            is_first = moment.step == 0
            observations.append((np.zeros_like(now) if is_first else now - before).ravel())
        policy.follow(moment.screen, moment.action)
        explanations.append(policy.explain())
        before, last = now, moment.action
    got = run_elsewhere(tmp_path / "agent.onnx", np.stack(observations))
    wanted = np.stack([explanation.probabilities for explanation in explanations])
    np.testing.assert_allclose(got["probabilities"], wanted, atol=1e-5)
    if algorithm == "ppo":
        np.testing.assert_allclose(got["value"], [each.value for each in explanations], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_any_number_of_observations_goes_through(tmp_path, algorithm):
    agent = make_agent(algorithm, environment="Catch-v0")
    ours.write_onnx(agent, tmp_path / "agent.onnx")
    x = ours.collect_observations(agent, 5)
    five = run_elsewhere(tmp_path / "agent.onnx", x)["probabilities"]
    for row, alone in zip(five, x, strict=True):
        one = run_elsewhere(tmp_path / "agent.onnx", alone[None])["probabilities"]
        np.testing.assert_allclose(one[0], row, atol=1e-6)


@pytest.mark.slow
def test_the_observations_are_those_that_the_policy_sees():
    agent = make_agent("reinforce")
    x = ours.collect_observations(agent, 150)
    policy = agent.make_network()
    assert isinstance(policy, PlainNetwork)
    for row, moment in zip(x, agent.play_episode(0, is_greedy=False).watch(), strict=False):
        policy.act(moment.screen)
        indices = policy._decider.last_inputs().astype(np.intp)
        wanted = np.zeros(6400)
        wanted[indices % 6400] = np.where(indices < 6400, 1, -1)
        np.testing.assert_array_equal(row, wanted)


@pytest.mark.slow
def test_the_file_says_what_it_is(tmp_path):
    agent = make_agent("ppo", environment="Pong-v0")
    report = ours.write_onnx(agent, tmp_path / "agent.onnx")
    facts = read_metadata(tmp_path / "agent.onnx")
    text = {"observation", "action_meaning"}
    read = {name: json.loads(fact) for name, fact in facts.items() if name not in text}
    assert read == {
        "environment": "Pong-v0",
        "frame_skips": [2, 4],
        "sticky": 0.25,
        "action_codes": [0, 2, 3],
        "algorithm": "ppo",
        "update": 7,
        "params_sha256": fingerprint(agent.params),
        "is_rounded": False,
    }
    assert "observe_features" in facts["observation"]
    assert report["bytes"] == (tmp_path / "agent.onnx").stat().st_size
    assert report["opset"] == 17
    assert report["params_sha256"] in ours.describe_onnx(report)


@pytest.mark.slow
def test_the_recipe_of_the_classic_observation_is_right(tmp_path):
    """Its sentences in NumPy, on frames, against the definition."""
    agent = make_agent("reinforce")
    before = None
    for moment, row in zip(
        agent.play_episode(0, is_greedy=False).watch(),
        ours.collect_observations(agent, 60),
        strict=False,
    ):
        red = moment.frame[35:195:2, ::2, 0]
        now = np.where((red == 0) | (red == 109) | (red == 144), 0, 1)
        wanted = np.zeros(6400) if before is None else (now - before).reshape(6400)
        np.testing.assert_array_equal(row, wanted)
        before = now
    assert "rows 35 to 194" in ours._RECIPE["reinforce"]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_agent_gives_the_same_bytes(tmp_path, algorithm):
    agent = make_agent(algorithm, environment="Catch-v0", hidden=3)
    for name in ("one", "two"):
        ours.write_onnx(agent, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.slow
def test_the_check_notices_a_graph_that_computes_something_else(tmp_path, monkeypatch):
    agent = make_agent("ppo", environment="Catch-v0", hidden=3)
    make = ours._make_gated

    def make_wrong(params):
        return make(params | {"b2": params["b2"] + np.array([0, 0.1, 0, 0], np.float32)})

    monkeypatch.setattr(ours, "_make_gated", make_wrong)
    with pytest.raises(RunError, match="expected a graph within 0.001 of NumPy"):
        ours.write_onnx(agent, tmp_path / "agent.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_exports_the_agent_of_a_run(make_run, tmp_path, capsys):
    run = make_run()
    train(run)
    target = tmp_path / "agent.onnx"
    assert main(["export", str(run.path), "--onnx", str(target), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["params_sha256"] == fingerprint(run.checkpoints.load_best().params)
    assert target.stat().st_size == report["bytes"]
    assert main(["export", str(run.path), "--onnx", str(target), "--checkpoint", "2"]) == 0
    assert "agent of update 2" in capsys.readouterr().out


def test_without_the_library_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
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
