"""The PPO learner: one update against the definitions, its state, its guards."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pixelpong.config.presets import load_preset
from pixelpong.engines import Engine
from pixelpong.env.features import NUM_INPUTS
from pixelpong.errors import CheckpointError
from pixelpong.learn import gated
from pixelpong.learn.optimizer import adam
from pixelpong.learn.ppo import LossWeights, Minibatch, generalized_advantages, loss_gradient
from pixelpong.learn.returns import standardize
from pixelpong.learners.ppo import PPOLearner
from pixelpong.play.worker import make_worker
from pixelpong.run.arrays import fingerprint
from pixelpong.seeding import make_rng

CHANGES = {
    "max_frames": 300, "hidden": 10, "num_envs": 3, "num_steps": 70, "update_epochs": 2,
    "num_minibatches": 2, "engine": "serial", "updates": 3, "save_every": 1, "dtype": "float64",
}  # fmt: skip


@pytest.fixture
def config():
    return load_preset("fast").updated(CHANGES, "test")


def play(config, learner):
    return list(Engine(lambda: make_worker(config)).run(learner.items(), learner.params))


def dense_update(config, params, moments, results, step):
    """The same update from the definitions: dense observations, no slices, no kernels."""
    sides = [result.sides[0] for result in results]
    x = np.zeros((sum(map(len, sides)), NUM_INPUTS))
    row = 0
    for side in sides:
        for t in range(len(side)):
            x[row, side.indices[side.offsets[t] : side.offsets[t + 1]]] = 1
            row += 1
    records = np.array([side.steps for side in sides])
    values, steps = records["value"], records[:, :-1]
    advantages = generalized_advantages(
        steps["reward"], steps["is_end"], values, config.gamma, config.gae_lambda
    )
    targets = (advantages + values[:, :-1]).ravel()
    actions, logs = steps["action"].ravel(), steps["log_probability"].ravel()
    rng = make_rng(config.seed, "learn", 1)
    weights = LossWeights(config.clip_coef, config.vf_coef, config.ent_coef)
    for _ in range(config.update_epochs):
        for chosen in np.array_split(rng.permutation(len(x)), config.num_minibatches):
            step += 1
            y, z = gated.forward(params, x[chosen])
            batch = Minibatch(
                actions[chosen], logs[chosen], standardize(advantages.ravel()[chosen]),
                targets[chosen],
            )  # fmt: skip
            dy, _ = loss_gradient(y, batch, weights)
            grads = gated.backward(params, x[chosen], z, dy)
            touched = x[chosen].any(axis=0)
            for name in params:
                w, m, v = adam(
                    params[name], grads[name], *moments[name], config.learning_rate, step
                )
                if name == "W1":  # rows that no chosen step has seen stay as they are
                    old = (params[name], *moments[name])
                    w, m, v = (
                        np.where(touched[:, None, None], new, was)
                        for new, was in zip((w, m, v), old, strict=True)
                    )
                params[name], moments[name] = w, (m, v)
    return params


@pytest.mark.slow
def test_an_update_is_what_the_definitions_say(config):
    learner = PPOLearner(config)
    params = {name: w.copy() for name, w in learner.params.items()}
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in params.items()}
    results = play(config, learner)
    wanted = dense_update(config, params, moments, results, step=0)
    stats = learner.apply(results)
    for name, w in wanted.items():
        np.testing.assert_allclose(learner.params[name], w, rtol=1e-9, atol=1e-11, err_msg=name)
    assert stats.steps == learner.progress.steps == 210
    assert {"kl", "clip_share", "value_loss", "learning_rate"} <= set(stats.figures)
    assert stats.figures["grad_norm"] > 0


def test_items_name_everything_a_segment_depends_on(config):
    learner = PPOLearner(config)
    items = learner.items()
    assert [(item.seed, item.update, item.index) for item in items] == [
        (0, 1, index) for index in range(3)
    ]
    assert not any(item.stream.view(np.uint8).any() for item in items)
    learner.apply(play(config, learner))
    assert all(item.stream["memory"]["is_on"] and item.update == 2 for item in learner.items())


@pytest.mark.slow
def test_a_state_goes_through_json_and_arrays_and_goes_on_the_same(config):
    learner, other = PPOLearner(config), PPOLearner(config)
    learner.apply(play(config, learner))
    arrays, counters = learner.get_state()
    copies = {name: array.copy() for name, array in arrays.items()}
    other.set_state(copies, json.loads(json.dumps(counters)))
    for _ in range(2):
        for each in (learner, other):
            each.apply(play(config, each))
    for name, w in learner.params.items():
        np.testing.assert_array_equal(other.params[name], w)
    assert other.progress == learner.progress
    mine, others = (each.get_state()[0] for each in (learner, other))
    assert sorted(mine) == sorted(others)
    for name, array in mine.items():
        np.testing.assert_array_equal(others[name], array, err_msg=name)


@pytest.mark.parametrize("changes", [{"hidden": 11}, {"dtype": "float32"}])
def test_a_state_of_another_network_is_refused(config, changes):
    learner, other = PPOLearner(config), PPOLearner(config.updated(changes, "test"))
    learner.apply(play(config, learner))
    with pytest.raises(CheckpointError, match="resume with the"):
        other.set_state(*learner.get_state())


@pytest.mark.parametrize(
    ("won", "lost", "rate"),
    [(0, 0, 2e-3), (3, 7, 2e-3), (6, 4, 2e-3), (9, 3, 1.25e-3), (4, 0, 0)],
)
def test_the_rate_falls_with_the_share_of_points_lost(config, won, lost, rate):
    learner = PPOLearner(config.updated({"anneal_from": 0.6, "learning_rate": 2e-3}, "test"))
    results = play(config, learner)
    learner.progress.recent_points.extend([1] * won + [-1] * lost)
    assert learner.apply(results).figures["learning_rate"] == pytest.approx(rate)


@pytest.mark.slow
def test_an_attempt_that_is_behind_is_given_up_and_only_then(config):
    """Streams of 3 × 70 steps: after two updates 420 steps are played, and after five 1,050."""
    changes = {"restart_after": 350, "anneal_from": 1.0}
    learner = PPOLearner(config.updated(changes, "test"))
    attempts, points = [], []
    for update in range(1, 6):
        results = play(config, learner)
        if update == 4:  # it is as good as can be when the second attempt is looked at
            learner.progress.recent_points.extend([1] * 1000)
            results = [_won(each) for each in results]
        attempts.append(learner.apply(results).figures["attempt"])
        points.append(len(learner.progress.recent_points))
        fresh = gated.init_params(make_rng(config.seed, "params", 2), NUM_INPUTS, 10, "float64")
        assert (fingerprint(fresh) == fingerprint(learner.params)) == (update == 2)
        if update == 2:
            arrays, counters = learner.get_state()
            assert not any(arrays[name].any() for name in ("rows", "m.W1", "v.W1", "v.W2"))
            other = PPOLearner(config.updated(changes, "test"))
            other.set_state(arrays, counters)
    assert attempts == [1, 1, 2, 2, 2]
    assert points[1] == 0
    for _ in range(2):
        other.apply(play(config, other))
    assert fingerprint(other.params) == fingerprint(
        gated.init_params(make_rng(config.seed, "params", 3), NUM_INPUTS, 10, "float64")
    ), "a restored one counts on: without those points it is given up too"
    never = PPOLearner(config.updated({"anneal_from": 1.0}, "test"))
    assert {never.apply(play(config, never)).figures["attempt"] for _ in range(5)} == {1}


def _won(result):
    """The same round, with all points won."""
    (side,) = result.sides
    won = side.steps.copy()
    won["reward"] = np.abs(won["reward"])
    return dataclasses.replace(result, sides=(dataclasses.replace(side, steps=won),))


@pytest.mark.parametrize("streams", [2, 5])
@pytest.mark.slow
def test_streams_can_be_added_and_dropped(config, streams):
    learner = PPOLearner(config)
    learner.apply(play(config, learner))
    other = PPOLearner(config.updated({"num_envs": streams}, "test"))
    other.set_state(*learner.get_state())
    is_on = [bool(item.stream["memory"]["is_on"]) for item in other.items()]
    assert is_on == [index < 3 for index in range(streams)]


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit(config, monkeypatch):
    config = config.updated({"hidden": 33, "dtype": "float32"}, "test")
    hashes = []
    for cores in (1, 2, 3, 5, 40):
        monkeypatch.setattr("pixelpong.learners.ppo.count_cores", lambda cores=cores: cores)
        learner = PPOLearner(config)
        norms = [learner.apply(play(config, learner)).figures["grad_norm"] for _ in range(3)]
        hashes.append((fingerprint(learner.params), fingerprint(learner.get_state()[0]), norms))
    assert all(each == hashes[0] for each in hashes)


@pytest.mark.slow
def test_who_does_a_piece_and_when_changes_no_bit(config, monkeypatch):
    """Each piece in a random order, on one thread; the same as several threads at once."""
    config = config.updated({"dtype": "float32"}, "test")
    rng = np.random.default_rng(0)

    def do_all(self, do, pieces):
        pieces = list(pieces)
        found = {place: do(pieces[place]) for place in rng.permutation(len(pieces)).tolist()}
        return [found[place] for place in range(len(pieces))]

    learners = PPOLearner(config), PPOLearner(config)
    results = play(config, learners[0])
    learners[0].apply(results)
    monkeypatch.setattr(ThreadPoolExecutor, "map", do_all)
    learners[1].apply(results)
    for name, w in learners[0].params.items():
        np.testing.assert_array_equal(learners[1].params[name], w)
