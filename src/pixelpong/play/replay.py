"""A game of an agent, which can be watched frame by frame.

The emulator's draws follow from a seed and an index, so that seed, index and actions hold an
episode. Watching it needs no parameters: nothing is decided again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.config.protocols import Protocol
from pixelpong.env import make_emulator
from pixelpong.seeding import make_rng


@dataclass(frozen=True)
class Moment:
    """The screen at one step of an episode, and the action taken."""

    step: int  #: starting at 0; the last moment, after the end, has the number of steps
    screen: NDArray[np.uint8]  #: [210, 160], palette indices
    frame: NDArray[np.uint8]  #: [210, 160, 3], red, green and blue
    action: int | None  #: the agent's next action, in Gymnasium's numbers; None after the end
    reward: float  #: of the step before
    points: tuple[int, int]  #: won by the opponent and by the agent so far


@dataclass(frozen=True)
class Replay:
    """One episode of an evaluation, which can be played again."""

    protocol: Protocol
    seed: int  #: of the evaluation
    index: int  #: of the episode in it
    actions: NDArray[np.int8]  #: [T], in Gymnasium's numbers
    episode_return: float

    def __len__(self) -> int:
        return len(self.actions)

    def watch(self) -> Iterator[Moment]:
        """Play it again: T + 1 moments, the last after the end."""
        rng = make_rng(self.seed, "evaluate", 0, self.index)
        emulator, width = make_emulator(self.protocol), 2 + self.protocol.max_frame_skip
        reward, lost, won = 0.0, 0, 0
        for step, action in enumerate([*self.actions.tolist(), None]):
            screen, frame = emulator.screen.copy(), emulator.frame()
            yield Moment(step, screen, frame, action, reward, (lost, won))
            if action is not None:
                reward = emulator.step(action, rng.random(width).tolist()[1:])
                lost, won = lost + (reward < 0), won + (reward > 0)
