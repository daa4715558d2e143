"""Explanations of a replay: the loop that asks a network, step by step, what it saw."""

from __future__ import annotations

from collections.abc import Iterator

from pixelpong.agent.file import Agent
from pixelpong.agent.network import Explanation
from pixelpong.play.replay import Moment, Replay


def explain(replay: Replay, agent: Agent, every: int = 1) -> Iterator[tuple[Moment, Explanation]]:
    """Play a replay again, and ask its agent every few steps, and after the end, what it sees."""
    network = agent.make_network()
    for moment in replay.watch():
        network.follow(moment.screen, moment.action)
        if moment.step % every == 0 or moment.action is None:
            yield moment, network.explain()
