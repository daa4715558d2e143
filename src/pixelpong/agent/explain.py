"""Explanations of a replay: the loop that asks a network, step by step, what it saw.

    for moment, explanation in explain(replay, agent):
        ...

Films, plots, reels and the count of dead units all use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.agent.choice import ChosenReplay
from pixelpong.agent.file import Agent
from pixelpong.agent.network import Explanation
from pixelpong.config import Config
from pixelpong.learn.ppo import generalized_advantages
from pixelpong.learn.returns import discounted_returns, standardize
from pixelpong.play.replay import Moment, Replay

_SETTLED = 10
"""Steps after a point before a step counts as typical of play."""


def explain(replay: Replay, agent: Agent, every: int = 1) -> Iterator[tuple[Moment, Explanation]]:
    """Play a replay again, and ask the agent at each step what it sees and thinks.

    Args:
        replay: the episode.
        agent: the one that played it.
        every: steps from one explanation to the next; one more follows after the end.

    Raises:
        EmulatorError: the emulator or its game is not installed.
    """
    network = agent.make_network()
    for moment in replay.watch():
        network.follow(moment.screen, moment.action)
        if moment.step % every == 0 or moment.action is None:
            yield moment, network.explain()


@dataclass(frozen=True)
class Explanations:
    """The explanations of an episode of T steps, as arrays.

    Attributes:
        chosen: the replay explained.
        actions: the actions the agent chooses from, in Gymnasium's numbers.
        probabilities: [T, A] float64.
        values: [T + 1] float64, the last for the end; None if the network has no value.
        rewards: [T] float64.
        frame_before: [210, 160, 3] uint8, the frame before `moment`.
        moment: the step, during a point, at which the picture moved the decision most.
        explanation: of `moment`.
    """

    chosen: ChosenReplay
    actions: tuple[int, ...]
    probabilities: NDArray[np.float64]
    values: NDArray[np.float64] | None
    rewards: NDArray[np.float64]
    frame_before: NDArray[np.uint8]
    moment: Moment
    explanation: Explanation

    def __len__(self) -> int:
        return len(self.rewards)

    def advantages(self, config: Config) -> NDArray[np.float64]:
        """How much better than expected each action turned out: [T].

        For PPO the generalised advantages over the whole episode (training cuts it into segments);
        for REINFORCE the standardised returns.

        Args:
            config: of the training.
        """
        discount = config.learning.discount
        if self.values is None:
            return standardize(discounted_returns(self.rewards, discount))
        is_end = self.rewards != 0
        is_end[-1] = True
        lambda_ = config.ppo.gae_lambda
        return generalized_advantages(
            self.rewards[None], is_end[None], self.values[None], discount, lambda_
        )[0]


def explain_all(chosen: ChosenReplay) -> Explanations:
    """Explain every step of a replay; raises the same errors as `explain`."""
    rewards, probabilities, values = [], [], []
    best, telling, before, since = (False, -1.0), None, None, 0
    for moment, explanation in explain(chosen.replay, chosen.agent):
        rewards.append(moment.reward)  # of the step before
        probabilities.append(explanation.probabilities)
        values.append(explanation.value)
        since = 0 if moment.reward else since + 1
        rank = (since >= _SETTLED, float(np.abs(explanation.saliency).sum()))
        if before is not None and moment.action is not None and rank > best:
            best, telling = rank, (before, moment, explanation)
        before = moment.frame
    assert telling is not None, "an episode of one step"
    return Explanations(
        chosen,
        chosen.agent.make_network().actions,
        np.array(probabilities[:-1]),
        None if values[0] is None else np.array(values, np.float64),
        np.array(rewards[1:]),
        *telling,
    )
