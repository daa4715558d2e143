"""A game for two learners, Pong by default: a `ParallelEnv` of PettingZoo if that is installed.

Without PettingZoo it is the same environment, because it needs nothing of that class. In Pong each
side sees itself on the right, so one agent can play both sides, and a side serves when it may. The
other games are those of multi-agent-ale-py, with its modes, and both players see the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from pixelpong.atari.envs.maker import Maker
from pixelpong.envs.plugs import PLUGS, Observation
from pixelpong.envs.vector import VectorEnv
from pixelpong.errors import ConfigError, list_words, must_be
from pixelpong.items import SELF
from pixelpong.pong.preprocess import mirror

Each = dict[str, Any]  # one value per agent

ParallelEnv: Any = object
with contextlib.suppress(ImportError):
    import pettingzoo

    ParallelEnv = pettingzoo.ParallelEnv


MAKE_TWO = Maker(
    "make_two",
    {
        "num_envs": 1, "games": None, "opponent": SELF, "batch_size": 0,
        "autoreset_mode": "Disabled", "num_threads": 1, "thread_affinity_offset": -1,
    },
)  # fmt: skip


class TwoPlayerEnv(ParallelEnv):
    """Make a game for two learners, with the options of `pixelpong.make_vec`.

    In Pong the agents are called ``right`` and ``left``, and each sees itself on the right; but
    both see the same memory with ``"ram"``, which cannot be mirrored. In the other games they are
    called ``first_0`` and ``second_0``, as in PettingZoo, and see the same. `mode` and `difficulty`
    have multi-agent-ale-py's numbers; Pong has only one game for two here. Nobody is charged for
    waiting, as if ``max_turn_time`` were 0 there.

    >>> env = TwoPlayerEnv("pixels", actions="three")
    >>> observations, infos = env.reset(seed=0)
    >>> observations, rewards, *ends, infos = env.step({"right": 0, "left": 1})
    >>> rewards, env.agents
    ({'right': 0.0, 'left': 0.0}, ['right', 'left'])
    >>> TwoPlayerEnv(game="boxing").possible_agents
    ['first_0', 'second_0']
    """

    def __init__(self, observation: Observation = "frame", **options: Any) -> None:
        options = MAKE_TWO.complete(options)
        self._envs = envs = VectorEnv(observation=observation, _maker=MAKE_TWO, **options)
        self._is_mirrored = envs.game in PLUGS
        self.possible_agents = ["right", "left"] if self._is_mirrored else ["first_0", "second_0"]
        self.metadata = envs.metadata | {"name": "pixelpong_v0"}
        del self.metadata["autoreset_mode"]  # which no ParallelEnv has
        self.render_mode = envs.render_mode
        counts: Any = envs.single_action_space
        actions = map(gymnasium.spaces.Discrete, counts.nvec.tolist())
        self.action_spaces = dict(zip(self.possible_agents, actions, strict=True))
        self.action_space = self.action_spaces.__getitem__
        space = envs.single_observation_space
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.observation_space = self.observation_spaces.__getitem__
        self.state_space = space

    @property
    def agents(self) -> list[str]:
        """The agents that play now; empty before the first episode and after the end of one."""
        return list(self.possible_agents) if self._envs.games["is_on"][0] else []

    @property
    def num_agents(self) -> int:
        """The number of agents that play now."""
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        """The number of agents in an episode."""
        return len(self.possible_agents)

    @property
    def unwrapped(self) -> TwoPlayerEnv:
        """This environment, which wraps no other one."""
        return self

    def state(self) -> Any:
        """Return what both agents see together, in `state_space`: the first agent's observation."""
        if self._envs.games["episode"][0] < 0:
            raise ConfigError("No episode has started: call reset() before state().")
        return self._envs._observe()[0]

    def reset(self, seed: int | None = None, options: Each | None = None) -> tuple[Each, Each]:
        """Start an episode; return each agent's observation and info.

        There are no `options`. They are not refused, because PettingZoo's own tests give some.
        """
        observations, infos = self._envs.reset(seed=seed)
        return self._see(observations[0]), self._name_infos(infos)

    def step(self, actions: Each) -> tuple[Each, Each, Each, Each, Each]:
        """Play a step with one action per agent."""
        if not self.agents:
            raise ConfigError("No episode is in progress: call reset() before step().")
        if not isinstance(actions, Mapping) or set(actions) != set(self.possible_agents):
            is_named = isinstance(actions, Mapping) and actions
            named = ", ".join(map(str, actions)) if is_named else repr(actions)
            raise ConfigError(
                must_be("actions", f"those of {list_words(self.possible_agents, 'and')}", named)
            )
        numbers: Any = [[actions[agent] for agent in self.possible_agents]]
        observations, (reward,), (over,), (cut,), infos = self._envs.step(numbers)
        names, second = self.possible_agents, infos["second_rewards"][0]
        rewards = {names[0]: float(reward), names[1]: float(second)}
        is_over, is_cut = (dict.fromkeys(names, bool(each)) for each in (over, cut))
        return self._see(observations[0]), rewards, is_over, is_cut, self._name_infos(infos)

    def render(self) -> Any:
        """Return the newest frame, [210, 160, 3] uint8, if ``render_mode`` is ``"rgb_array"``."""
        frames = self._envs.render()
        return frames and frames[0]

    def close(self) -> None:
        """End the threads."""
        self._envs.close()

    def _name_infos(self, infos: dict[str, Any]) -> Each:
        """Return each side's info: the console's memory if it is shown."""
        if "ram" not in infos:
            return {agent: {} for agent in self.possible_agents}
        return {agent: {"ram": infos["ram"][0].copy()} for agent in self.possible_agents}

    def _see(self, first: Any) -> Each:
        """Return each side's observation."""
        return dict(zip(self.possible_agents, (first, self._turn(first)), strict=True))

    def _turn(self, first: Any) -> Any:
        """Return a copy of the first side's observation, as the second side sees it."""
        if not self._is_mirrored:
            return first.copy()
        kind = self._envs._view.observation
        axis = kind.horizontal_axis
        is_picture = kind.reads_frames
        turned = mirror(first) if is_picture else first if axis is None else np.flip(first, axis)
        return np.array(turned, order="C")
