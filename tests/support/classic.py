"""Two environments of one game that are stepped together, and must give the same."""

from __future__ import annotations

import itertools

import numpy as np


def play_both(ours, theirs, seed, steps):
    """Play two environments at once from a seed; yield their results, those of resets too.

    An action is held for a while. A result is an observation, the rest as a list, and the info.
    """
    rng, action = np.random.default_rng(seed), 0
    results = [(observation, [], info) for observation, info in reset(ours, theirs, seed=seed)]
    for _ in range(steps):
        yield results
        if rng.random() < 0.3:
            action = int(rng.integers(theirs.action_space.n))
        steps_of_both = [env.step(action) for env in (ours, theirs)]
        results = [(it[0], list(it[1:4]), it[4]) for it in steps_of_both]
        if any(itertools.chain(*(rest[1:] for _, rest, _ in results))):
            yield results
            results = [(observation, [], info) for observation, info in reset(ours, theirs)]


def reset(*envs, **options):
    return [env.reset(**options) for env in envs]


def count_ends(ours, theirs, seed, steps, ignored=("seeds",)):
    """Assert that two environments give the same; return how many episodes ended."""
    ends = 0
    for moment, ((our, *ours_too), (their, *theirs_too)) in enumerate(
        play_both(ours, theirs, seed, steps)
    ):
        np.testing.assert_array_equal(our, their, f"moment {moment}")
        assert our.dtype == their.dtype
        (rest, info), (their_rest, their_info) = ours_too, theirs_too
        assert rest == their_rest, f"moment {moment}"
        known = their_info.keys() - set(ignored)
        assert {key: info[key] for key in known} == {key: their_info[key] for key in known}
        ends += any(rest[1:])
    return ends
