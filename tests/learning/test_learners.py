"""The learners: an update against the definitions, the state, the order of sums, the threads."""

from __future__ import annotations

import contextlib
import itertools
import json

import numpy as np
import pytest
from toys import toy_config

from pixelpong.config import Config
from pixelpong.engines import Engine
from pixelpong.errors import CheckpointError
from pixelpong.kernels.records import STREAM
from pixelpong.learn import gated
from pixelpong.learn.optimizer import adam, rmsprop
from pixelpong.learn.ppo import (
    RATE_STEP,
    LossWeights,
    Minibatch,
    generalized_advantages,
    loss_gradient,
)
from pixelpong.learn.returns import standardize
from pixelpong.learners import make_learner
from pixelpong.play.worker import combine, make_worker
from pixelpong.run.arrays import fingerprint
from pixelpong.seeding import make_rng

SMALL = {
    "classic": {"hidden": 10},
    "fast": {
        "hidden": 10, "num_envs": 3, "num_steps": 70, "update_epochs": 2, "num_minibatches": 2,
        "dtype": "float64",
    },
    "atari": {
        "hidden": 10, "num_envs": 3, "num_steps": 70, "update_epochs": 2, "num_minibatches": 2,
        "dtype": "float64", "explore_share": 0.4, "target_kl": 1e-12, "max_frames": 600,
    },
}  # fmt: skip


def small(mode: str, **changes) -> Config:
    return toy_config(mode, **SMALL[mode] | changes)


@pytest.fixture
def config(mode):
    return small(mode)


def play(learner):
    return list(Engine(lambda: make_worker(learner.config)).run(learner.items(), learner.params))


def learn(config):
    """A learner after an update."""
    learner = make_learner(config)
    learner.apply(play(learner))
    return learner


def bits(learner):
    """Everything the future depends on."""
    arrays, counters = learner.get_state()
    return fingerprint(learner.params), fingerprint(arrays), counters


# --- both ---------------------------------------------------------------------------------------


def test_a_state_goes_through_json_and_arrays_and_continues_the_same(config):
    learner, other = learn(config), make_learner(config)
    first, second, *_ = learner.get_state()[0]["rows"]
    learner.params["W1"][first], learner.params["W1"][second] = -0.0, 1e-45  # odd ones
    arrays, counters = learner.get_state()
    assert 2 < len(arrays["rows"]) < len(learner.params["W1"])
    copies = {name: array.copy() for name, array in arrays.items()}
    other.set_state(copies, json.loads(json.dumps(counters)))
    assert bits(other) == bits(learner)
    for each in (learner, other):
        each.apply(play(each))
        each.apply(play(each))
    assert bits(other) == bits(learner)


@pytest.mark.parametrize("what", ["hidden", "dtype"])
def test_the_state_of_another_network_is_refused(config, what):
    others = {"hidden": 21, "dtype": "float32" if config.dtype == "float64" else "float64"}
    state = learn(config.updated({what: others[what]}, "test")).get_state()
    with pytest.raises(CheckpointError, match=r"W1 is .*; resume with its own"):
        make_learner(config).set_state(*state)


def rmsprop_update(learner, state, results, number=1):
    """One step of RMSProp on the sum over the batch, whatever its number."""
    config = learner.config
    params = {name: state[name] for name in ("W1", "W2")}
    total = {name: np.zeros_like(w) for name, w in params.items()}
    for result in results:
        total["W1"][result.grads.rows.astype(int)] += result.grads.W1
        total["W2"] += result.grads.W2
    moments = {name: state[f"v.{name}"] for name in params}
    params, moments = rmsprop(params, total, moments, config.learning_rate, config.decay_rate)
    norm = np.sqrt(sum(float((g.astype(float) ** 2).sum()) for g in total.values()))
    return params | {f"v.{name}": v for name, v in moments.items()}, norm


def ppo_update(learner, state, results, number=1):
    """All passes over a round: dense observations, no slices, no kernels."""
    config, scene, left = learner.config, learner.scene, learner.share_left()
    state, sides = dict(state), [result.sides[0] for result in results]
    preferences = np.zeros((len(sides), 0))
    rate, ent_coef = config.learning_rate * left, config.ent_coef * left**2
    if not config.is_pong:
        num_actions = len(scene.actions)
        preferences = np.array([it.streams["preferences"][0, :num_actions] for it in results])
        assert preferences.any(axis=1).tolist() == [True, False, False]
        rate = (learner.progress.learning_rate or config.learning_rate) * min(1, 2 * left)
    preferences = np.repeat(preferences, config.num_steps, axis=0)
    x = np.zeros((config.num_steps * len(sides), scene.num_inputs))
    # The last entry of a stream, a value alone, has no inputs.
    seen = [part for side in sides for part in np.split(side.indices, side.offsets[1:-2])]
    for row, active in enumerate(seen):
        x[row, active] = 1
    records = np.array([side.steps for side in sides])
    values, steps = records["value"], records[:, :-1]
    advantages = generalized_advantages(
        steps["reward"], steps["is_end"], values, config.gamma, config.gae_lambda
    )
    targets = (advantages + values[:, :-1]).ravel()
    actions, logs = steps["action"].ravel(), steps["log_probability"].ravel()
    rng, norms = make_rng(config.seed, "learn", number), []
    step = (number - 1) * config.update_epochs * config.num_minibatches  # of Adam, so far
    weights = LossWeights(config.clip_coef, config.vf_coef, ent_coef)
    for _ in range(config.update_epochs):
        for chosen in np.array_split(rng.permutation(len(x)), config.num_minibatches):
            step += 1
            y, z = gated.forward(state, x[chosen])
            batch = Minibatch(
                actions[chosen], logs[chosen], standardize(advantages.ravel()[chosen]),
                targets[chosen], preferences[chosen],
            )  # fmt: skip
            dy, _ = loss_gradient(y, batch, weights, scene.parts)
            grads = gated.backward(state, x[chosen], z, dy)
            norms.append(np.sqrt(sum(float((g**2).sum()) for g in grads.values())))
            touched = x[chosen].any(axis=0)
            for name, g in grads.items():
                names = name, f"m.{name}", f"v.{name}"
                old = [state[each] for each in names]
                new = adam(old[0], g, *old[1:], rate, step)
                if name == "W1":  # rows that no chosen step has seen stay as they are
                    pairs = zip(new, old, strict=True)
                    new = [np.where(touched[:, None, None], now, was) for now, was in pairs]
                state |= dict(zip(names, new, strict=True))
    return state, np.mean(norms)


@pytest.mark.slow
def test_an_update_is_what_the_definitions_say_and_so_is_the_next(mode, config, monkeypatch):
    """The pieces of a minibatch, which are six here, are added up; the optimizer remembers."""
    monkeypatch.setattr("pixelpong.learners.passes.PIECE", 20)
    learner, update = make_learner(config), rmsprop_update if mode == "classic" else ppo_update
    close = (2e-6, 1e-7) if mode == "classic" else (1e-9, 1e-11)
    for number in (1, 2):
        results, before = play(learner), learner.progress.steps
        state = {name: array.copy() for name, array in learner.state.items()}
        wanted, norm = update(learner, state, results, number)
        stats = learner.apply(results)
        assert sorted(learner.state) == sorted(wanted)
        for name, w in wanted.items():
            np.testing.assert_allclose(learner.state[name], w, *close, err_msg=name)
        assert stats.metrics["grad_norm"] == pytest.approx(norm, rel=1e-5)
        assert stats.steps == learner.progress.steps - before > 200
        if mode == "atari":  # the first update moves the policy further than the tiny target
            assert learner.progress.learning_rate == config.learning_rate / RATE_STEP**number
        if mode != "classic":
            assert {"kl", "clip_share", "value_loss", "learning_rate"} <= set(stats.metrics)
            assert any(result.sides[0].steps["reward"].any() for result in results)


def test_the_metrics_of_an_update_are_those_of_what_was_played(mode, config):
    learner = make_learner(config)
    results = play(learner)
    episodes = [episode for result in results for episode in result.episodes]
    if mode == "classic":
        steps = sum(it.steps for it in episodes)
        ups, entropy = (sum(getattr(it, name) for it in episodes) for name in ("ups", "entropy"))
        rewards = [reward for it in episodes for reward in it.rewards]
    else:  # without the step that is only a value
        sides = [result.sides[0].steps.reshape(-1, config.num_steps + 1) for result in results]
        played = np.concatenate([side[:, :-1].ravel() for side in sides])
        steps, ups, entropy = len(played), (played["action"] == 1).sum(), played["entropy"].sum()
        rewards = played["reward"][played["reward"] != 0].tolist()
    metrics = learner.apply(results).metrics
    assert metrics["entropy"] == pytest.approx(entropy / steps)
    if mode == "atari":
        assert not {"up_share", "steps_per_point", "points_won_share"} & set(metrics)
    else:
        assert 0.2 < metrics["up_share"] == pytest.approx(ups / steps) != 0.5
        assert metrics["steps_per_point"] == pytest.approx(steps / len(rewards))
        assert metrics["points_won_share"] == pytest.approx(np.mean(np.array(rewards) > 0))
    returns = [it.episode_return for it in episodes]
    assert metrics["mean_return"] == (pytest.approx(np.mean(returns)) if returns else None)


# --- the classic mode ---------------------------------------------------------------------------


def test_groups_as_items_give_the_bits_of_single_episodes(monkeypatch):
    """The last group is smaller: added up by workers, and by the learner."""
    config = small("classic", batch_size=305, hidden=1)
    assert [item.games for item in make_learner(config).items()] == [20] * 15 + [5]
    one = learn(config)
    monkeypatch.setattr("pixelpong.play.worker.LARGE_BATCH", 306)
    assert [item.games for item in make_learner(config).items()] == [1] * 305
    assert bits(learn(config)) == bits(one)


def test_gradients_that_are_added_up_before_they_travel_give_the_same_bits():
    """Chunks that begin a group, end one, and reach over two."""
    one, two = (make_learner(small("classic", batch_size=45, hidden=5)) for _ in range(2))
    items, results = two.items(), play(two)
    one.apply(results)
    chunks = [slice(5), slice(5, 12), slice(12, 30), slice(30, 45)]
    combined = [combine(items[chunk], iter(results[chunk])) for chunk in chunks]
    numbers = [[len(result.episodes) for result in chunk] for chunk in combined]
    assert numbers == [[5], [1] * 7, [1] * 8 + [10], [1] * 10 + [5]]
    two.apply(itertools.chain(*combined))
    assert bits(one) == bits(two)


def test_a_mean_square_decays_where_a_batch_has_no_gradient_too():
    """A single game after a batch of 20."""
    learner = learn(small("classic", batch_size=20, decay_rate=0.9))
    results, before = play(learner)[:1], learner.state["v.W1"].copy()
    learner.apply(results)
    touched = results[0].grads.rows
    others = np.setdiff1d(np.flatnonzero(before.any(axis=1)), touched)
    assert len(others) > 5
    wanted = np.float32(0.9) * before[others]
    np.testing.assert_allclose(learner.state["v.W1"][others], wanted, rtol=1e-6)


# --- the fast mode ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("won", "lost", "rate"),
    [(0, 0, 2e-3), (3, 7, 2e-3), (6, 4, 2e-3), (9, 3, 1.25e-3), (4, 0, 0)],
)
def test_the_rate_falls_with_the_share_of_points_lost(won, lost, rate):
    learner = make_learner(small("fast", anneal_from=0.6, learning_rate=2e-3))
    learner.progress.recent_points.extend([1] * won + [-1] * lost)
    assert learner.apply(play(learner)).metrics["learning_rate"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("changes", "continued"),
    [
        ({"num_envs": 2}, [True, True]),
        ({"num_envs": 5}, [True, True, True, False, False]),
        ({"opponent": "half"}, [False, True, False]),  # itself in the first and the third
    ],
)
def test_streams_continue_if_they_are_still_there_and_against_whom_they_were(changes, continued):
    other = make_learner(small("fast", **changes))
    other.set_state(*learn(small("fast")).get_state())
    assert [bool(item.streams["game"]["is_on"]) for item in other.items()] == continued


def test_streams_whose_indices_leave_an_array_are_refused():
    arrays, counters = learn(small("fast")).get_state()
    for spoil in (
        lambda stream: stream["game"].__setitem__("newest", -1),
        lambda stream: stream["last_actions"].__setitem__(1, 3),
    ):
        streams = arrays["streams"].copy()
        spoil(streams.view(STREAM)[0, 0])
        with pytest.raises(CheckpointError, match="the checkpoint is damaged: .* out of range$"):
            make_learner(small("fast")).set_state(arrays | {"streams": streams}, counters)


@pytest.mark.slow
def test_how_many_threads_there_are_and_who_does_a_piece_when_changes_no_bit(monkeypatch):
    """Real threads, and then each piece in a random order on one."""
    monkeypatch.setattr("pixelpong.learners.passes.PIECE", 20)
    rng, most, found = np.random.default_rng(0), [], []

    @contextlib.contextmanager
    def shuffled(num_threads):
        def run_all(calls):
            most.append(len(calls))
            done = {index: calls[index]() for index in rng.permutation(len(calls)).tolist()}
            return [done[index] for index in range(len(calls))]

        yield run_all

    for cores in (1, 2, 5, 40, None):
        if cores is None:
            monkeypatch.setattr("pixelpong.learners.ppo.thread_pool", shuffled)
        monkeypatch.setattr("pixelpong.learners.ppo.count_cores", lambda cores=cores: cores or 1)
        learner = learn(small("fast", hidden=33, dtype="float32"))
        norm = learner.apply(play(learner)).metrics["grad_norm"]
        found.append((norm, *bits(learner)))
    assert all(each == found[0] for each in found)
    assert max(most) >= 5


@pytest.mark.parametrize(
    ("engine", "workers", "threads"),
    [
        ("threads", 1, 1), ("threads", 3, 3), ("threads", 99, 8), ("threads", None, 8),
        ("serial", 1, 8), ("ray", 1, 8),  # these workers are not this process's threads
    ],
)  # fmt: skip
def test_a_learner_takes_no_more_threads_than_its_run_has_workers(
    monkeypatch, engine, workers, threads
):
    """Several runs of a sweep share a machine, each with a few threads."""
    given = []

    @contextlib.contextmanager
    def noted(num_threads):
        given.append(num_threads)
        yield lambda calls: [call() for call in calls]

    monkeypatch.setattr("pixelpong.learners.ppo.thread_pool", noted)
    monkeypatch.setattr("pixelpong.learners.ppo.count_cores", lambda: 8)
    learner = make_learner(small("fast", engine=engine, workers=workers))
    learner.apply(play(learner))
    assert set(given) == {threads}


# --- what changes in the course of a training ----------------------------------------------------

ANNEALED = {
    "learning_rate": 2e-3, "ent_coef": 0.2, "gae_lambda": 0.95, "gae_lambda_end": 0.35,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "counts", "now"),
    [
        # Three quarters won: half of the way from 50 % to all.
        (
            {"anneal_from": 0.5},
            {"recent_points": [1] * 9 + [-1] * 3},
            {"learning_rate": 1e-3, "ent_coef": 0.05, "gae_lambda": 0.65},
        ),
        # Three of four steps are left, and not one frame: there are four in a step.
        (
            {"anneal_steps": 1000},
            {"steps": 250, "frames": 1000},
            {"learning_rate": 1.5e-3, "ent_coef": 0.1125, "gae_lambda": 0.8},
        ),
    ],
)
def test_learning_rate_entropy_bonus_and_lambda_are_annealed_together(changes, counts, now):
    """The definitions' update, with the three numbers worked out by hand."""
    config = small("fast", **ANNEALED, **changes)
    learner = make_learner(config)
    for name, value in counts.items():
        setattr(learner.progress, name, value)
    results, state = play(learner), {name: array.copy() for name, array in learner.state.items()}
    wanted, _ = ppo_update(make_learner(config.updated(now, "test")), state, results)
    learner.apply(results)
    for name, w in wanted.items():
        np.testing.assert_allclose(learner.state[name], w, 1e-9, 1e-11, err_msg=name)


@pytest.mark.parametrize(
    ("steps", "rate"), [(0, 2e-3), (250, 1.5e-3), (999, 2e-6), (1000, 0.0), (5000, 0.0)]
)
def test_with_anneal_steps_the_rate_falls_with_the_steps_whatever_is_won(steps, rate):
    learner = make_learner(small("fast", anneal_steps=1000, learning_rate=2e-3))
    learner.progress.steps, learner.progress.frames = steps, 4 * steps
    learner.progress.recent_points.extend([1] * 12)
    assert learner.apply(play(learner)).metrics["learning_rate"] == pytest.approx(rate, abs=1e-12)
