"""A game that an agent played, again: frame by frame, the very screens that it saw."""

from __future__ import annotations

import numpy as np
import pytest

from pixelpong.agent.choice import load_agent
from pixelpong.play.networks import Network
from pixelpong.run.directory import RunDirectory


@pytest.mark.parametrize("is_greedy", [True, False])
@pytest.mark.parametrize("name", ["fast", "classic"])
def test_a_replay_shows_the_very_screens_that_the_agent_saw(toy_runs, name, is_greedy, monkeypatch):
    agent, seen, act = load_agent(RunDirectory.open(toy_runs[name])), [], Network.act
    monkeypatch.setattr(
        Network, "act", lambda self, *told: (seen.append(told[0].copy()), act(self, *told))[1]
    )
    replay = agent.play_episode(5, 2, is_greedy=is_greedy)
    *moments, last = replay.watch()
    np.testing.assert_array_equal([moment.screen for moment in moments], seen)
    assert [moment.action for moment in moments] == replay.actions.tolist()
    assert (len(replay), last.step, last.action) == (len(seen), len(seen), None)
    assert last.points[1] - last.points[0] == replay.episode_return
    assert sum(moment.reward for moment in [*moments, last]) == replay.episode_return
