"""The examples: programs in one file, with the gradient and the step of `pixelpong.learn`."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import ale_py
import explore_in_one_file as explore
import flavours_in_one_file as flavours
import moved_picture
import numpy as np
import pong_in_one_file as pong
import ppo_in_one_file as clipped
import pytest
import search_in_one_file as search
import to_tensorboard
from shown import DOCS

import pixelpong
from pixelpong.faces.cli import parse
from pixelpong.items import ACTIONS, DOWN, UP
from pixelpong.learn import gated, ppo, reinforce
from pixelpong.learn.optimizer import adam, rmsprop
from pixelpong.pong.features import NUM_INPUTS
from pixelpong.run.directory import RunDirectory


@pytest.fixture
def short_games(monkeypatch):
    """ALE with games of 300 steps, in which some points are lost."""
    load = ale_py.ALEInterface.loadROM

    def load_short(ale, path):
        ale.setInt("max_num_frames_per_episode", 1200)
        load(ale, path)

    monkeypatch.setattr(ale_py.ALEInterface, "loadROM", load_short)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "lines", "words", "wanted"),
    [
        (pong, 150, ["--updates", "1", "--batch", "1"], r"update 1: mean return -\d+\.0\n"),
        (clipped, 250, ["--steps", "8192"], r" +8,192 steps, +\d+ s: +\d% of points won\n"),
    ],
)
@pytest.mark.usefixtures("short_games")
def test_it_is_short_needs_little_and_runs(example, lines, words, wanted, monkeypatch, capsys):
    text = Path(example.__file__).read_text("utf-8")
    assert len(text.splitlines()) <= lines
    imports = set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) - sys.stdlib_module_names
    assert imports <= {"numpy", "ale_py" if example is pong else "pixelpong"}
    assert not re.search(r"pixelpong\.(learn|learners|kernels)\b", text)
    monkeypatch.setattr(sys, "argv", [example.__file__, *words])
    runpy.run_path(example.__file__, run_name="__main__")
    assert re.fullmatch(wanted, capsys.readouterr().out)


@pytest.mark.slow
def test_a_search_that_knows_what_is_coming_loses_no_point():
    won, lost, steps = search.play(0, num_plans=48, max_frames=1600)
    assert (lost, steps) == (0, 400)
    assert won >= 2


@pytest.mark.slow
def test_going_back_to_spots_finds_the_key_and_opens_a_door():
    steps, spots, scores = zip(*explore.explore(0, rounds=50), strict=True)
    assert (steps, scores) == ((35_200, 118_400), (100, 400))
    assert spots == (182, 363)


@pytest.mark.slow
@pytest.mark.usefixtures("short_games")
def test_the_gradient_of_reinforce_is_the_packages_on_the_same_episode():
    rng = np.random.default_rng(0)
    params = pong.init_params(rng)
    xs, hs, ps, ups, rewards = pong.play_episode(pong.make_game(0), params, rng)
    advantages = pong.compute_advantages(rewards)
    np.testing.assert_allclose(advantages, reinforce.advantages(rewards, 0.99), atol=1e-12)
    ours = reinforce.episode_gradient(params, xs, np.where(ups, UP, DOWN), advantages)
    theirs = pong.episode_gradient(params, xs, hs, ps, ups, advantages)
    assert rewards.sum() < -1
    for name, g in ours.items():
        np.testing.assert_allclose(theirs[name], g, atol=1e-10 * np.abs(g).max())


def test_the_steps_and_the_advantages_are_the_packages():
    w, g, m = np.random.default_rng(1).standard_normal((3, 5))
    v = np.random.default_rng(2).random(5)
    step, cache = {"w": w.copy()}, {"w": v.copy()}
    pong.rmsprop(step, {"w": g}, cache)
    wanted = rmsprop({"w": w}, {"w": g}, {"w": v}, pong.RATE, pong.DECAY)
    np.testing.assert_allclose([step["w"], cache["w"]], [each["w"] for each in wanted], rtol=1e-14)
    wanted = adam(w, g, m, v, clipped.RATE, 7)
    clipped.adam(w, g, m, v, clipped.RATE, 7)
    np.testing.assert_allclose([w, m, v], wanted, rtol=1e-12)
    rng = np.random.default_rng(2)
    rewards, values = rng.integers(-1, 2, (3, 40)), rng.standard_normal((3, 41))
    args = rewards, rewards != 0, values
    wanted = ppo.generalized_advantages(*args, clipped.DISCOUNT, 0.9)
    np.testing.assert_allclose(clipped.compute_advantages(*args, 0.9), wanted)


@pytest.mark.slow
def test_ppo_decides_and_learns_as_the_package_that_plays_for_it(monkeypatch):
    """In float64, on steps of Pong; among them are actions whose probability has changed much."""
    monkeypatch.setattr(clipped, "STREAMS", 2)
    params = clipped.init_params(np.random.default_rng(0), np.float64)
    params["W2"] *= 30  # so that policy and value differ from step to step
    side = clipped.Streams("ALE/Pong-v5", seed=0).play(params, update=1)[0]
    rng, size = np.random.default_rng(1), clipped.HORIZON
    some = rng.permutation(size)
    actions, log_played = side.steps["action"][some], side.steps["log_probability"][some]
    rows, used = clipped.spread(*clipped.pick(side.indices, side.offsets, some))
    y, z = clipped.forward(params, rows, used)
    np.testing.assert_allclose(
        ppo.log_softmax(y[:, :3])[np.arange(size), actions], log_played, rtol=1e-9
    )
    np.testing.assert_allclose(y[:, 3], side.steps["value"][some], rtol=1e-9)
    assert ACTIONS == (0, 2, 3), "the order of its outputs"

    log_played = log_played + rng.normal(0, 0.3, size)
    gain, targets = rng.standard_normal((2, size))
    x = np.zeros((size, NUM_INPUTS))
    for line, step in zip(x, some, strict=True):
        line[side.indices[slice(*side.offsets[step : step + 2])]] = 1
    theirs, hidden = gated.forward(params, x)
    batch = ppo.Minibatch(actions, log_played, gain, targets, np.zeros((size, 0)))
    weights = ppo.LossWeights(clipped.CLIP_RATIO, clipped.VALUE_WEIGHT, 0.02)
    dy, stats = ppo.loss_gradient(theirs, batch, weights, np.zeros((3, 0), np.int64))
    assert 0.1 < stats.clip_share < 0.9
    wanted = gated.backward(params, x, hidden, dy)

    dy = clipped.loss_gradient(y, actions, log_played, gain, targets, 0.02)
    grads = clipped.backward(params, used, z, dy)
    whole = grads | {"W1": np.zeros_like(params["W1"])}
    whole["W1"][rows] = grads["W1"]
    for name, g in wanted.items():
        np.testing.assert_allclose(whole[name], g, atol=1e-10 * np.abs(g).max())


def test_tensorboard_gets_every_number_of_a_run(toy_runs, tmp_path, monkeypatch):
    drawn = set()
    board = pytest.importorskip("tensorboardX").SummaryWriter
    monkeypatch.setattr(board, "add_scalar", lambda _, *what: drawn.add(what))
    to_tensorboard.convert(toy_runs["fast"], tmp_path / "board")
    run = RunDirectory(toy_runs["fast"])
    for group, lines in (("training", run.metrics), ("evaluation", run.evaluations)):
        wanted = {
            (f"{group}/{name}", value, line["update"])
            for line in lines.read()
            for name, value in line.items()
            if isinstance(value, int | float) and name != "update"
        }
        assert len(wanted) > 5
        assert wanted <= drawn
    for path, folder in ((toy_runs["fast"], "board"), (tmp_path / "none", "new")):
        with pytest.raises(SystemExit, match="a folder that does not exist yet"):
            to_tensorboard.convert(path, tmp_path / folder)


def test_ray_and_slurm_read_the_files_to_launch_a_cluster_with():
    files = Path(pong.__file__).parent / "cluster"
    yaml, ray, jsonschema = map(pytest.importorskip, ("yaml", "ray", "jsonschema"))
    schema = Path(ray.__file__).with_name("autoscaler") / "ray-schema.json"
    check = jsonschema.Draft7Validator(json.loads(schema.read_text("utf-8"))).validate
    for name in ("aws.yaml", "ssh.yaml"):
        file = yaml.safe_load((files / name).read_text("utf-8"))
        check(file)
        with pytest.raises(jsonschema.ValidationError, match="min_worker"):
            check(file | {"min_worker": 3})
        # What is fetched is what the sweep writes, in the folder that is mounted or demanded.
        comment = (files / name).read_text("utf-8").partition("cluster_name:")[0]
        assert "'cd /shared && " in comment
        assert "--out runs/seeds'" in comment
        assert " /shared/runs/ runs/\n" in comment
        assert any("/shared" in line for line in file["setup_commands"])
    types = yaml.safe_load((files / "aws.yaml").read_text("utf-8"))["available_node_types"]
    assert all("ImageId" in each["node_config"] for each in types.values())
    assert len({each["node_config"]["InstanceType"] for each in types.values()}) == 1
    job = yaml.safe_load((files / "kuberay.yaml").read_text("utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == ray.__version__
    text = (files / "slurm.sh").read_text("utf-8")
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_the_job_on_kubernetes_continues_a_sweep_that_is_there(tmp_path):
    """Else a second `kubectl apply` would fail, as its folder exists."""
    yaml = pytest.importorskip("yaml")
    file = Path(pong.__file__).parent / "cluster/kuberay.yaml"
    assert "wget" in file.read_text("utf-8"), "for the probes of KubeRay"
    entrypoint = yaml.safe_load(file.read_text("utf-8"))["spec"]["entrypoint"]
    (tmp_path / "pixelpong").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n')
    (tmp_path / "pixelpong").chmod(0o755)
    for _ in range(2):
        words = shlex.split(entrypoint.replace("/results", str(tmp_path)))
        subprocess.run(words, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True)
        (tmp_path / "seeds").mkdir(exist_ok=True)
        (tmp_path / "seeds/sweep.csv").touch()
    first, second = (tmp_path / "said").read_text().splitlines()
    assert first == f"sweep --seeds 0-63 --ray-address auto --out {tmp_path}/seeds"
    assert second == f"sweep {tmp_path}/seeds --ray-address auto"
    for line in (first, second):
        parse(shlex.split(line))


@pytest.mark.slow
def test_an_agent_plays_every_flavour_of_its_cartridge(breakout_run, monkeypatch):
    facts = next(game for game in pixelpong.games() if game.name == "breakout")
    short = dataclasses.replace(facts, modes=(0, 44))
    monkeypatch.setattr(pixelpong, "games", lambda: [short])
    brief = functools.partial(pixelpong.make_env, max_frames=600)
    monkeypatch.setattr(pixelpong, "make_env", brief)
    (first, agent, random), *others = flavours.compare(breakout_run, "breakout", 0, episodes=2)
    assert [first, *(it[0] for it in others)] == [(0, 0), (44, 0), (0, 1), (44, 1)]
    assert (len(agent), len(random), flavours.describe(random).count("±")) == (2, 2, 1)
    assert len({it[2].tobytes() for it in others}) > 1


def test_the_champion_sees_nothing_in_a_picture_that_has_moved(capsys, monkeypatch):
    policy = pixelpong.Policy.load("package")
    scores = {
        name: moved_picture.play(policy, change, 100, max_frames=4_000)
        for name, change in moved_picture.GLASSES.items()
    }
    assert scores.pop("as it is") > 0 > max(scores.values())
    monkeypatch.setattr(moved_picture, "play", lambda _policy, _change, seed: seed - 100.0)
    moved_picture.main(games=3)
    page = (DOCS / "missing.md").read_text("utf-8")
    for line in capsys.readouterr().out.splitlines():
        assert line[:24] in page
        assert line.endswith("+1.0   (+0 to +2)")
