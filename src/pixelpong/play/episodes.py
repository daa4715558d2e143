"""Playing one episode with the policy, sparsely.

Every step takes one row of uniform numbers from the episode's own generator: the first chooses
the action, the others are the emulator's draws. So an episode is a pure function of
(params, generator, protocol), whichever worker plays it.
"""

from __future__ import annotations

import time

import numpy as np

from pixelpong.env.pong import Emulator
from pixelpong.items import UP, EpisodeStats, Params, Trajectory
from pixelpong.learn.reinforce import entropy
from pixelpong.play.deciders import GREEDY, PlainDecider
from pixelpong.play.game import Game

_BLOCK = 1024  # steps whose uniform numbers are drawn at once; most episodes are over by then


class Player:
    """Plays episodes, always on the same emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._game = Game(emulator)
        self._decider: PlainDecider | None = None

    def play(
        self, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
    ) -> Trajectory:
        """Play one episode from its start to its end; `rng` is its own, and moves on."""
        decider = self._start(params)
        while not decider.is_over:
            draws = self._game.draw(rng, _BLOCK)[:_BLOCK]
            if is_greedy:
                draws[:, 0] = GREEDY
            played = 0
            while played < _BLOCK and not decider.is_over:
                played += self._game.play([decider], draws[played:])
        steps = decider.steps[: decider.num_steps]
        offsets = decider.offsets[: len(steps) + 1].copy()
        return Trajectory(
            indices=decider.indices[: offsets[-1]].copy(),
            offsets=offsets,
            actions=steps["action"].copy(),
            up_probabilities=steps["up_probability"].copy(),
            hidden=decider.hidden[: len(steps)].copy(),
            rewards=steps["reward"].copy(),
            num_frames=self.emulator.num_frames,
        )

    def _start(self, params: Params) -> PlainDecider:
        if self._decider is None:
            self._decider = PlainDecider(params, _BLOCK)
        self._decider.use(params)
        self._decider.start_record()
        self._decider.start_episode()
        self.emulator.reset()
        return self._decider


def summarize(trajectory: Trajectory, play_seconds: float) -> EpisodeStats:
    """The statistics of an episode."""
    ends = np.flatnonzero(trajectory.rewards)
    points = trajectory.rewards[ends].astype(int)
    return EpisodeStats(
        episode_return=float(points.sum()),
        steps=len(trajectory),
        frames=trajectory.num_frames,
        points_won=int((points > 0).sum()),
        points_lost=int((points < 0).sum()),
        point_ends=tuple(ends.tolist()),
        point_rewards=tuple(points.tolist()),
        entropy=float(entropy(trajectory.up_probabilities).mean()),
        up_share=float((trajectory.actions == UP).mean()),
        play_seconds=play_seconds,
    )


def timed_play(
    player: Player, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
) -> tuple[Trajectory, EpisodeStats]:
    """Play an episode and summarise it, with the wall time of playing."""
    begin = time.perf_counter()
    trajectory = player.play(params, rng, is_greedy=is_greedy)
    return trajectory, summarize(trajectory, time.perf_counter() - begin)
