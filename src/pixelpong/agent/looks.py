"""An episode with what the agent made of each step, as arrays: what there is to draw of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.network import Sight
from pixelpong.agent.shows import Show
from pixelpong.config import Config
from pixelpong.env.preprocess import preprocess
from pixelpong.learn.ppo import generalized_advantages
from pixelpong.learn.returns import discounted_returns, standardize

_SETTLED = 10
"""Steps after a point until a moment is thought worth showing."""


@dataclass(frozen=True)
class Glimpse:
    """One step, seen from all sides.

    Attributes:
        step: of the episode.
        frame: [210, 160, 3] uint8, as the emulator showed it.
        before: [80, 80] the frame before it, preprocessed.
        now: [80, 80] this one, preprocessed.
        sight: what the network saw and made of it.
        action: what was then done.
    """

    step: int
    frame: NDArray[np.uint8]
    before: NDArray[np.float32]
    now: NDArray[np.float32]
    sight: Sight
    action: int


@dataclass(frozen=True)
class Look:
    """An episode of T steps.

    Attributes:
        show: what was looked at.
        actions: between which the agent decides, as Gymnasium numbers them.
        probabilities: [T, A] float64.
        values: [T + 1] float64, the last that of the end; None where the network has none.
        rewards: [T] float64.
        glimpse: the step at which the picture moved the decision most, while a point goes on.
    """

    show: Show
    actions: tuple[int, ...]
    probabilities: NDArray[np.float64]
    values: NDArray[np.float64] | None
    rewards: NDArray[np.float64]
    glimpse: Glimpse

    def __len__(self) -> int:
        return len(self.rewards)

    def is_end(self) -> NDArray[np.bool_]:
        """[T] whether a point ended at the step, or the episode did."""
        is_end: NDArray[np.bool_] = self.rewards != 0
        is_end[-1] = True
        return is_end

    def advantages(self, config: Config) -> NDArray[np.float64]:
        """[T] how much better each action turned out than was to be expected.

        For PPO the generalised advantages, over the whole episode, where training cuts it into
        segments; for REINFORCE the standardised returns.

        Args:
            config: of the training, for its discount and lambda.
        """
        discount = config.learning.discount
        if self.values is None:
            return standardize(discounted_returns(self.rewards, discount))
        return generalized_advantages(
            self.rewards[None],
            self.is_end()[None],
            self.values[None],
            discount,
            config.ppo.gae_lambda,
        )[0]


def look_at(show: Show) -> Look:
    """Play an episode again, and ask the agent at every step.

    Raises:
        RunError: the episode comes out otherwise than when it was recorded.
        EmulatorError: the emulator or its game is not installed.
    """
    policy = show.agent.make_policy()
    probabilities, values, rewards = [], [], []
    best, glimpse, last, since = (False, -1.0), None, None, 0
    for moment in show.replay.watch():
        policy.follow(moment.screen, moment.action)
        sight = policy.explain()
        rewards.append(moment.reward)  # of the step before
        values.append(0.0 if sight.value is None else sight.value)
        since = 0 if moment.reward else since + 1
        if moment.action is None:
            break
        probabilities.append(sight.probabilities)
        rank = (since >= _SETTLED, float(np.abs(sight.saliency).sum()))
        if last is not None and rank > best:
            best, frames = rank, (preprocess(last), preprocess(moment.frame))
            glimpse = Glimpse(moment.step, moment.frame, *frames, sight, moment.action)
        last = moment.frame
    assert glimpse is not None, "an episode of one step"
    has_value = sight.value is not None
    return Look(
        show,
        policy.actions,
        np.array(probabilities),
        np.array(values) if has_value else None,
        np.array(rewards[1:]),
        glimpse,
    )
