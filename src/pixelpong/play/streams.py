"""Playing with the gated network, sparsely: segments of streams, and whole episodes.

A stream is an endless series of episodes; a segment is its next steps. Every step takes one row of
uniform numbers from the segment's own generator: the first chooses the action, the others are the
emulator's draws. So a segment is a pure function of (params, item, protocol), whichever worker
plays it.

The opponent is the cartridge's own player, or a network in the game for two: the learning one
itself, or another agent. There the left side sees the field mirrored, so a network can play either
side. A stream has one opponent (`pixelpong.learners.ppo`), so a game never changes sides.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pixelpong.env.duel import make_emulator_for_two
from pixelpong.env.pong import Emulator
from pixelpong.items import (
    ACTIONS,
    BUILTIN,
    SELF,
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

PREFIX = "opponent."  # of the names of another agent's arrays, next to the learning network's
_BLOCK = 128  # steps whose uniform numbers are drawn at once, for an episode of unknown length
_UP = ACTIONS.index(UP)


class StreamPlayer:
    """Plays always on the same emulators, one for the game for one, one for that for two."""

    def __init__(self, emulator: Emulator) -> None:
        self._alone = self._game = Game(emulator)
        self._for_two: Game | None = None
        self._own: GatedDecider | None = None
        self._other: GatedDecider | None = None
        self._tally = Tally()

    @property
    def emulator(self) -> Emulator:
        """The emulator of the current episode."""
        return self._game.emulator

    def play_segment(
        self,
        params: Params,
        state: StreamState | None,
        horizon: int,
        rng: np.random.Generator,
        opponent: str = BUILTIN,
        *,
        is_left: bool = False,
    ) -> SegmentResult:
        """Play the next `horizon` steps of a stream.

        The state is not changed, and is None at the stream's start. The generator is the segment's
        own. The opponent is BUILTIN, SELF, or any other word for an agent, whose parameters are
        under `PREFIX`; against that one, the network may play the left side.
        """
        begin = since = time.perf_counter()
        own = self._meet(opponent, params, is_left=is_left)
        draws = self._game.draw(rng, horizon, len(self._sides))
        if state is None:
            self._start_episode()
        else:
            assert state.opponent == opponent, "a game's opponent is fixed for the game's life"
            self._continue(state, own)
        episodes: list[EpisodeStats] = []
        played, counted, frames = 0, 0, -self.emulator.num_frames
        while played <= horizon:  # one more, for the value after the last step
            played += self._game.play(self._sides, draws[played:])
            if own.is_over:
                since = self._count(own, counted, played, since)
                counted = played
                frames += self.emulator.num_frames
                episodes.append(self._tally.to_stats(self.emulator.num_frames, opponent))
                self._start_episode()
        self._count(own, counted, horizon, since)
        learned = self._sides if opponent == SELF else [own]
        entropies = [np.add.reduce(each.steps["entropy"][:horizon]) for each in learned]
        return SegmentResult(
            tuple(_cut(each, horizon) for each in learned),
            self._state(own, opponent),
            tuple(episodes),
            frames=frames + self.emulator.num_frames,
            entropy=float(sum(entropies) / (horizon * len(learned))),
            play_seconds=time.perf_counter() - begin,
        )

    def play_episode(
        self, params: Params, rng: np.random.Generator, *, is_greedy: bool = False
    ) -> EpisodeStats:
        """Play one episode against the built-in opponent; `rng` is its own, and moves on."""
        since = time.perf_counter()
        own = self._meet(BUILTIN, params)
        self._start_episode()
        while not own.is_over:
            own.start_record()
            draws = self._game.draw(rng, _BLOCK)[:_BLOCK]
            if is_greedy:
                draws[:, 0] = GREEDY
            played = 0
            while played < _BLOCK and not own.is_over:
                played += self._game.play([own], draws[played:])
            since = self._count(own, 0, played, since)
        return self._tally.to_stats(self.emulator.num_frames)

    def _meet(self, opponent: str, params: Params, *, is_left: bool = False) -> GatedDecider:
        """Turn to the game against an opponent, with empty records; return the network's own."""
        if self._own is None:
            self._own = GatedDecider(params, _BLOCK)
        own = self._own
        own.use(params)
        self._game, self._sides = self._alone, [own]
        if opponent != BUILTIN:
            if opponent != SELF:
                params = {name: params[PREFIX + name] for name in ("W1", "W2", "b2")}
            if self._for_two is None or self._other is None:
                self._for_two = Game(make_emulator_for_two(self._alone.emulator.protocol))
                self._other = GatedDecider(params, _BLOCK)
            self._other.use(params)
            self._game = self._for_two
            self._sides = [self._other, own] if is_left else [own, self._other]
        for each in self._sides:
            each.start_record()
        return own

    def _start_episode(self) -> None:
        self.emulator.reset()
        for each in self._sides:
            each.start_episode()
        self._tally = Tally()

    def _continue(self, state: StreamState, own: GatedDecider) -> None:
        """Set everything the future depends on."""
        self.emulator.set_state(state.snapshot)
        own.resume(state.previous, state.current, state.last_action)
        for other in self._sides:
            if other is not own:
                frames = mirror_pixels(state.previous), mirror_pixels(state.current)
                other.resume(*frames, state.opponent_action)
        self._tally = state.tally.copy()

    def _state(self, own: GatedDecider, opponent: str) -> StreamState:
        previous, current = own.frames()
        last_actions = {id(it): int(it.memory["last_action"][0]) for it in self._sides}
        return StreamState(
            snapshot=self.emulator.get_state(),
            previous=previous,
            current=current,
            last_action=last_actions.pop(id(own)),
            tally=self._tally.copy(),
            opponent=opponent,
            opponent_action=sum(last_actions.values()),
        )

    def _count(self, own: GatedDecider, first: int, last: int, since: float) -> float:
        """Add the steps from `first` up to `last` to the tally; return the current time."""
        tally, steps = self._tally, own.steps[first:last]
        (ends,) = steps["reward"].nonzero()
        if len(ends):  # usually there are none
            tally.point_ends += (tally.steps + ends).tolist()
            tally.point_rewards += steps["reward"][ends].astype(int).tolist()
        tally.steps += len(steps)
        tally.entropy += float(np.add.reduce(steps["entropy"]))
        tally.ups += int(np.count_nonzero(steps["action"] == _UP))
        now = time.perf_counter()
        tally.play_seconds += now - since
        return now


def mirror_pixels(pixels: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """The active pixels of a frame as the other side sees them: [·], ascending.

    >>> mirror_pixels(np.array([0, 1, 85], np.uint16)).tolist()
    [78, 79, 154]
    """
    rows, columns = np.divmod(pixels, 80)
    return np.sort(rows * 80 + (79 - columns)).astype(np.uint16)


def _cut(decider: GatedDecider, horizon: int) -> Segment:
    """The first steps of a record, which has one more, for its value."""
    steps, offsets = decider.steps[: horizon + 1], decider.offsets[: horizon + 1].copy()
    return Segment(
        indices=decider.indices[: offsets[-1]].copy(),
        offsets=offsets,
        actions=steps["action"][:-1].copy(),
        log_probabilities=steps["log_probability"][:-1].copy(),
        values=steps["value"].copy(),
        rewards=steps["reward"][:-1].copy(),
        is_end=steps["is_end"][:-1].copy(),
    )
