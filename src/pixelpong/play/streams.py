"""Playing with the gated network, sparsely: segments of streams, and whole episodes.

A stream is episode after episode on one emulator, without end; a segment is its next steps. Every
step takes one row of uniform numbers from the segment's own generator: the first chooses the
action, the others are the emulator's draws. So a segment is a pure function of
(params, item, protocol), whatever worker plays it.

Covered: the fast rollout. Not covered: the dense form of what is seen (`pixelpong.env.features`).
"""

from __future__ import annotations

import time

import numpy as np

from pixelpong.env.pong import Emulator
from pixelpong.items import (
    ACTIONS,
    UP,
    EpisodeStats,
    Params,
    Segment,
    SegmentResult,
    StreamState,
    Tally,
)
from pixelpong.play.deciders import GREEDY, GatedDecider
from pixelpong.play.game import Game

_BLOCK = 128
"""Steps whose uniform numbers are drawn at once, in an episode of unknown length."""


_UP = ACTIONS.index(UP)


class StreamPlayer:
    """Plays on one emulator, which it keeps."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self._game = Game(emulator)
        self._decider: GatedDecider | None = None
        self._tally = Tally()

    def play_segment(
        self, params: Params, state: StreamState | None, horizon: int, rng: np.random.Generator
    ) -> SegmentResult:
        """Play the next steps of a stream.

        Args:
            params: of the gated network.
            state: the state of the stream, not changed; None at its start.
            horizon: T, steps.
            rng: the segment's own generator; its state moves on.
        """
        begin = since = time.perf_counter()
        decider = self._go_to(state, params)
        draws = self._game.draw(rng, horizon)
        episodes: list[EpisodeStats] = []
        played, counted, frames = 0, 0, -self.emulator.num_frames
        while played <= horizon:  # one more, for the value of what comes after the last step
            played += self._game.play(decider, draws[played:])
            if decider.is_over:
                since = self._count(decider, counted, played, since)
                counted = played
                frames += self.emulator.num_frames
                episodes.append(self._tally.to_stats(self.emulator.num_frames))
                self._start_episode(decider)
        self._count(decider, counted, horizon, since)
        steps, offsets = decider.steps[: horizon + 1], decider.offsets[: horizon + 1].copy()
        segment = Segment(
            indices=decider.indices[: offsets[-1]].copy(),
            offsets=offsets,
            actions=steps["action"][:-1].copy(),
            log_probabilities=steps["log_probability"][:-1].copy(),
            values=steps["value"].copy(),
            rewards=steps["reward"][:-1].copy(),
            is_end=steps["is_end"][:-1].copy(),
        )
        return SegmentResult(
            segment,
            self._state(decider),
            tuple(episodes),
            frames=frames + self.emulator.num_frames,
            entropy=float(np.add.reduce(steps["entropy"][:-1]) / horizon),
            play_seconds=time.perf_counter() - begin,
        )

    def play_episode(
        self, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
    ) -> EpisodeStats:
        """Play one episode from its start to its end.

        Args:
            params: of the gated network.
            rng: the episode's own generator; its state moves on.
            is_greedy: take the most probable action instead of drawing one.
        """
        since = time.perf_counter()
        decider = self._go_to(None, params)
        while not decider.is_over:
            decider.start_record()
            draws = self._game.draw(rng, _BLOCK)[:_BLOCK]
            if is_greedy:
                draws[:, 0] = GREEDY
            played = 0
            while played < _BLOCK and not decider.is_over:
                played += self._game.play(decider, draws[played:])
            since = self._count(decider, 0, played, since)
        return self._tally.to_stats(self.emulator.num_frames)

    def _go_to(self, state: StreamState | None, params: Params) -> GatedDecider:
        """Set everything that the future depends on, with nothing written down."""
        if self._decider is None:
            self._decider = GatedDecider(params, _BLOCK)
        decider = self._decider
        decider.use(params)
        decider.start_record()
        if state is None:
            self._start_episode(decider)
        else:
            self.emulator.set_state(state.snapshot)
            decider.resume(state.previous, state.current, state.last_action)
            self._tally = state.tally.copy()
        return decider

    def _start_episode(self, decider: GatedDecider) -> None:
        self.emulator.reset()
        decider.start_episode()
        self._tally = Tally()

    def _state(self, decider: GatedDecider) -> StreamState:
        previous, current = decider.frames()
        return StreamState(
            snapshot=self.emulator.get_state(),
            previous=previous,
            current=current,
            last_action=int(decider.memory["last_action"][0]),
            tally=self._tally.copy(),
        )

    def _count(self, decider: GatedDecider, first: int, last: int, since: float) -> float:
        """Add the steps from `first` up to `last` to the tally; return the time it is now."""
        tally, steps = self._tally, decider.steps[first:last]
        (ends,) = steps["reward"].nonzero()
        if len(ends):  # mostly there are none
            tally.point_ends += (tally.steps + ends).tolist()
            tally.point_rewards += steps["reward"][ends].astype(int).tolist()
        tally.steps += len(steps)
        tally.entropy += float(np.add.reduce(steps["entropy"]))
        tally.ups += int(np.count_nonzero(steps["action"] == _UP))
        now = time.perf_counter()
        tally.play_seconds += now - since
        return now
