"""Compiled code stays inside its arrays, in every mode and after a resume with other options.

`make test` runs these once more with bounds checked, when an index outside an array is an error:

    NUMBA_BOUNDSCHECK=1 pytest tests/learning/test_kernels.py tests/learning/test_bounds.py
"""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from promises import promise

import pixelpong
from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.config.presets import load_preset
from pixelpong.items import BUILTIN, SELF
from pixelpong.learners.ppo import PPOLearner, lay_out

pytestmark = promise("bounds")


def small(preset: str, **changes) -> Config:
    few = {"hidden": 8, "updates": 2}
    few |= {"batch_size": 2} if preset == "classic" else {"num_envs": 4, "num_steps": 1200}
    return load_preset(preset).updated(few | {"until_return": None} | changes, "test")


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="bounds are not checked in this job")
def test_an_index_outside_its_array_is_an_error_here():
    one = np.zeros(1, np.int32)
    with pytest.raises(IndexError):
        kernels.sum_rows(np.ones((3, 2)), np.array([3], np.uint16), one, one + 1, np.zeros((1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("classic", {"batch_size": 3, "gamma": 0.5}),
        ("fast", {"num_envs": 3, "num_steps": 50, "num_minibatches": 7}),
        ("half", {"num_envs": 6, "num_steps": 1201}),
    ],
)
def test_every_mode_learns_and_goes_on_with_other_options(preset, changes, tmp_path):
    run = pixelpong.train(small(preset), run=tmp_path / "run", quiet=True)
    run = pixelpong.resume(run, updates=4, allow_changes=True, quiet=True, **changes)
    assert pixelpong.evaluate(run, episodes=1)


def wanted(opponent):
    return [SELF, BUILTIN] * 2 if opponent == "half" else [opponent] * 4


@pytest.fixture
def played(monkeypatch):
    """The results of every update of the trainings in this process."""
    rounds, apply = [], PPOLearner.apply

    def noting(self, results):
        rounds.append(list(results))
        return apply(self, rounds[-1])

    monkeypatch.setattr(PPOLearner, "apply", noting)
    return rounds


CHANGES = [
    ("builtin", "self"), ("builtin", "half"), ("builtin", "club"), ("self", "builtin"),
    ("half", "self"), ("club", "self"), ("club", "beginner"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_games_against_another_opponent_are_dropped_when_a_run_is_resumed(
    before, after, tmp_path, played
):
    """Games end in these segments, and in each all steps are of one opponent, with their inputs."""
    config = small("half", opponent=before, updates=1, num_steps=100, max_frames=300)
    run = pixelpong.train(config, run=tmp_path / "run", quiet=True)
    run = pixelpong.resume(run, opponent=after, allow_changes=True, updates=2, quiet=True)
    pixelpong.resume(run, updates=3, quiet=True)  # as it is now
    for results in played[1:]:
        for result, opponent in zip(results, wanted(after), strict=True):
            assert {episode.opponent for episode in result.episodes} <= {opponent}
            assert len(result.sides) == (2 if opponent == SELF else 1)
            for side in result.sides:
                assert len(side.offsets) == 101
                assert (np.diff(side.offsets) > 0).all()
                assert side.offsets[-1] == len(side.indices)
    assert any(result.episodes for results in played[1:] for result in results)


def test_steps_whose_offsets_do_not_fit_their_entries_are_refused(tmp_path, played):
    """As those of a side that began to record in mid-segment: offsets jump back to 0."""
    pixelpong.train(small("fast", updates=1, num_steps=50), run=tmp_path / "run", quiet=True)
    (results,) = played
    (side,) = results[1].sides
    lay_out(results, 0.99, 0.95)
    for place, value in ((20, 0), (0, 1), (50, len(side.indices) + 1), (50, 3)):
        offsets = side.offsets.copy()
        offsets[place] = value
        bad = dataclasses.replace(side, offsets=offsets)
        with pytest.raises(RuntimeError, match="offsets do not fit"):
            lay_out([dataclasses.replace(results[1], sides=(bad,))], 0.99, 0.95)
