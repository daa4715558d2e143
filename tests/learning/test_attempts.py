"""Attempts: when one is given up, and with what the next begins."""

from __future__ import annotations

import pytest
from toys import toy_config

from pixelpong.engines import Engine
from pixelpong.learners import draw_params, make_learner
from pixelpong.play.scenes import scene_of
from pixelpong.play.worker import make_worker
from pixelpong.run.arrays import fingerprint


def small(**changes):
    """An update has 3 × 70 steps."""
    shape = {"hidden": 10, "num_envs": 3, "num_steps": 70, "dtype": "float64"}
    passes = {"update_epochs": 2, "num_minibatches": 2}
    return toy_config("fast", **shape | passes | changes)


def play(learner):
    return list(Engine(lambda: make_worker(learner.config)).run(learner.items(), learner.params))


@pytest.mark.slow
def test_an_attempt_that_is_behind_is_given_up_and_only_then():
    """Streams of 3 × 70 steps: after two updates 420 steps are played, and after five 1,050."""
    config = small(restart_after=350, anneal_from=0.5)
    learner, other = make_learner(config), make_learner(config)
    attempts, points = [], []

    def begins(learner, attempt):
        fresh = draw_params(
            scene_of("pong"), "ppo", config.hidden, config.dtype, config.seed, attempt
        )
        return fingerprint(fresh) == fingerprint(learner.params)

    for update in range(1, 6):
        results = play(learner)
        if update == 4:  # it is ahead when the second attempt is looked at
            learner.progress.recent_points.extend([1] * 1000)
        attempts.append(learner.apply(results).metrics["attempt"])
        points.append(len(learner.progress.recent_points))
        assert begins(learner, 2) == (update == 2)
        if update == 2:
            arrays, counters = learner.get_state()
            assert not any(arrays[name].any() for name in ("rows", "m.W1", "v.W1", "v.W2"))
            other.set_state(arrays, counters)
    assert attempts == [1, 1, 2, 2, 2]
    assert points[1] == 0
    for _ in range(2):
        other.apply(play(other))
    assert begins(other, 3), "a restored one counts on: without those points it is given up too"
    never = make_learner(small(anneal_from=0.5))
    assert {never.apply(play(never)).metrics["attempt"] for _ in range(5)} == {1}


@pytest.mark.parametrize(("limit", "attempts"), [(209, [2, 3]), (210, [2, 3]), (211, [1, 2])])
def test_an_attempt_is_looked_at_in_the_update_that_completes_its_steps(limit, attempts):
    """An update has 3 × 70 steps, and all points are lost; every attempt is looked at once."""
    learner = make_learner(small(restart_after=limit, anneal_from=1.0))
    found = []
    for _ in attempts:
        learner.progress.recent_points.append(-1)
        learner.apply(play(learner))
        found.append(learner.progress.attempt)
    assert found == attempts


def test_against_another_opponent_no_attempt_is_given_up():
    learner = make_learner(small(restart_after=210, anneal_from=1.0, opponent="self"))
    for _ in range(2):
        learner.progress.recent_points.append(-1)
        learner.apply(play(learner))
    assert learner.progress.attempt == 1


def test_a_new_attempt_begins_with_the_first_step_of_adam():
    """Else the first steps of its running means, which begin at 0, would be too short."""
    config = small(restart_after=300, anneal_from=1.0)
    learner, per_update = make_learner(config), config.update_epochs * config.num_minibatches
    found = []
    for _ in range(3):
        learner.progress.recent_points.append(-1)
        learner.apply(play(learner))
        found.append((learner.progress.attempt, learner.progress.adam_steps))
    assert found == [(1, per_update), (2, 0), (2, per_update)]


def test_an_attempt_that_was_ahead_when_it_was_looked_at_is_not_looked_at_again():
    learner = make_learner(small(restart_after=210, anneal_from=0.5))
    learner.progress.recent_points.extend([1] * 1000)
    learner.apply(play(learner))
    learner.progress.recent_points[:] = [-1] * 1000
    learner.apply(play(learner))
    assert (learner.progress.attempt, learner.progress.steps) == (1, 420)
