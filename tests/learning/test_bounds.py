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
from sparse import NO_PARTS
from toys import toy_config

import pixelpong
from pixelpong.items import BUILTIN, SELF
from pixelpong.kernels.ppo import sum_rows
from pixelpong.learners import Learner
from pixelpong.learners.ppo import lay_out

pytestmark = promise("bounds")


checked_only = pytest.mark.skipif(
    not numba.config.BOUNDSCHECK, reason="bounds are not checked in this job"
)


@checked_only
def test_an_index_outside_its_array_is_an_error_here():
    one = np.zeros(1, np.int32)
    with pytest.raises(IndexError):
        sum_rows(np.ones((3, 2)), np.array([3], np.uint16), one, one + 1, np.zeros((1, 2)))


@pytest.fixture
def played(monkeypatch):
    """The results of every update of the trainings in this process."""
    rounds, apply = [], Learner.apply

    def noting(self, results):
        rounds.append(list(results))
        return apply(self, rounds[-1])

    monkeypatch.setattr(Learner, "apply", noting)
    return rounds


@checked_only
@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "before", "after"),
    [
        ("classic", "builtin", {"batch_size": 3, "gamma": 0.5}),
        ("fast", "builtin", {"num_envs": 3, "num_steps": 50, "num_minibatches": 7}),
        ("fast", "half", {"num_envs": 6, "num_steps": 1201}),
        ("fast", "half", {"opponent": "self"}),
        ("fast", "self", {"opponent": "builtin"}),
        ("fast", "builtin", {"opponent": "half"}),
        ("fast", "club", {"opponent": "self"}),
    ],
)
def test_every_mode_continues_with_other_options_or_another_opponent(
    preset, before, after, tmp_path, played
):
    """Games end in these segments; each has the sides that learn, with all their inputs."""
    config = toy_config(preset, opponent=before, updates=1, num_steps=100)
    run = pixelpong.train(config, run=tmp_path / "run", quiet=True)
    run = pixelpong.resume(run, updates=2, allow_changes=True, quiet=True, **after)
    run = pixelpong.resume(run, updates=3, quiet=True)  # as it is now
    assert pixelpong.evaluate(run, episodes=1)
    assert any(result.episodes for results in played[1:] for result in results)
    opponent = run.config.opponent
    each = (SELF, BUILTIN) if opponent == "half" else (opponent, opponent)
    for results in played[1:]:
        for index, result in enumerate(results):
            num_sides = 2 if each[index % 2] == SELF else 1
            assert len(result.sides) == (0 if preset == "classic" else num_sides)
            for side in result.sides:
                assert len(side.offsets) == run.config.num_steps + 2
                *lengths, last = np.diff(side.offsets)
                assert min(lengths) > 0 == last
                assert side.offsets[-1] == len(side.indices)


def test_steps_whose_offsets_do_not_fit_their_entries_are_refused(tmp_path, played):
    """As those of a side that began to record in mid-segment: offsets jump back to 0."""
    pixelpong.train(toy_config("fast", updates=1, num_steps=50), run=tmp_path / "run", quiet=True)
    (results,) = played
    (side,) = results[1].sides
    last = NO_PARTS, np.zeros((1, 0))
    lay_out(results, 50, 0.99, 0.95, *last)
    for place, value in ((20, 0), (0, 1), (51, len(side.indices) + 1), (50, 3)):
        offsets = side.offsets.copy()
        offsets[place] = value
        bad = dataclasses.replace(side, offsets=offsets)
        with pytest.raises(RuntimeError, match="offsets do not fit"):
            lay_out([dataclasses.replace(results[1], sides=(bad,))], 50, 0.99, 0.95, *last)
