"""What has been played and not yet been received, as one value that is never changed.

A call replaces it in the assignment with which its step begins, see `atari.games.turns.Turns`.
So an interrupt loses no results and gives none twice.

With a `batch_size`, a program computes the next actions of one batch of games while the others are
played. Results come in the order in which the actions came; ale-py returns them in any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.envs.errors import EnvOrderError
from pixelpong.atari.games.games import raise_faults
from pixelpong.atari.steps.stepping import (
    EPISODE_FRAMES,
    LIVES,
    REWARD,
    SECOND,
    TOTAL_FRAMES,
    Results,
)

Numbers = NDArray[np.integer[Any]]  # of games
Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]


class Part(NamedTuple):
    """The results of some games of a step."""

    games: Numbers
    results: Results  # of the whole step
    first: int = 0  # where those of the first of these games are

    def split(self, count: int) -> tuple[Part, Part]:
        """Split off the first `count` games."""
        rest = Part(self.games[count:], self.results, self.first + count)
        return Part(self.games[:count], self.results, self.first), rest

    def read(self) -> Results:
        """Return the results of these games alone, in the step's arrays."""
        if len(self.games) == self.results.numbers.shape[1]:
            return self.results
        which = slice(self.first, self.first + len(self.games))
        observations, final, numbers, ends, rams = self.results
        shown = observations[which], final[which] if len(final) else final
        return Results(*shown, numbers[:, which], ends[:, which], rams[which])


class Pending(NamedTuple):
    """The results that were not received yet, and the games that need actions next."""

    received: Numbers | None  # the games that the next actions are for; None: first, recv()
    waiting: tuple[Part, ...] = ()
    kept: Any = None  # what an environment keeps beside its games since the last reset

    def add(self, results: Results, received: Numbers | None) -> Pending:
        """Add the results of games that were given actions; `received` need the next ones."""
        if self.received is None:
            raise EnvOrderError("Results of these games wait: call recv() before the next step.")
        return Pending(received, (*self.waiting, Part(self.received, results)), self.kept)

    def take(self, count: int) -> tuple[tuple[Part, ...], Pending]:
        """Take the results of the next `count` games; return them and what is then pending."""
        waiting = self.waiting
        if len(waiting) == 1 and len(waiting[0].games) == count:  # as in most steps
            return waiting, Pending(waiting[0].games, (), self.kept)
        taken, rest, missing = [], [], count
        for part in waiting:
            first, others = part.split(missing)
            taken += [first] if len(first.games) else []
            rest += [others] if len(others.games) else []
            missing -= len(first.games)
        if missing:
            raise EnvOrderError("No more results will come: call send() before recv().")
        received = np.concatenate([part.games for part in taken])
        return tuple(taken), Pending(received, tuple(rest), self.kept)


def join(parts: tuple[Part, ...]) -> Results:
    """Join the results of these games; results of one step are not copied."""
    if len(parts) == 1:
        return parts[0].read()
    observations, final, numbers, ends, rams = zip(*(part.read() for part in parts), strict=True)
    return Results(
        np.concatenate(observations),
        np.concatenate(final),
        np.concatenate(numbers, axis=1),
        np.concatenate(ends, axis=1),
        np.concatenate(rams),
    )


def give(parts: tuple[Part, ...], *, has_second: bool = False) -> Step:
    """Return what a program receives of these games; with a second side, its rewards too.

    Raises:
        EmulatorError: one of the games met something that the console does not support.
    """
    observations, final, numbers, (is_over, is_cut, _), rams = join(parts)
    raise_faults(numbers)
    infos = {
        "env_id": np.concatenate([part.games for part in parts]),
        "lives": numbers[LIVES],
        "frame_number": numbers[TOTAL_FRAMES],
        "episode_frame_number": numbers[EPISODE_FRAMES],
    }
    if has_second:
        infos["second_rewards"] = numbers[SECOND]
    if len(rams):
        infos["ram"] = rams
    if len(final) and (is_over | is_cut).any():
        ended = is_over | is_cut
        infos["final_obs"] = shown = observations.copy()
        shown[ended] = final[ended]
    return observations, numbers[REWARD], is_over, is_cut, infos
