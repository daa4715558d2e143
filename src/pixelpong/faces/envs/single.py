"""One game of Pong as a Gymnasium environment: the game of a training and of an evaluation.

The k-th episode after ``reset(seed=S)`` has the sticky frames of the k-th episode of
``pixelpong.evaluate(..., seed=S)``, so you can compare an agent's results game by game.
"""

from __future__ import annotations

import operator
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.errors import ConfigError, expected
from pixelpong.faces.envs.vector import Actions, Observation, PongVectorEnv
from pixelpong.items import BUILTIN

Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]


class PongEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """One game of Pong; make it with `pixelpong.make_env`."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(
        self,
        observation: Observation = "frame",
        actions: Actions = "six",
        opponent: str = BUILTIN,
        render_mode: Literal["rgb_array"] | None = None,
        **rules: Any,
    ) -> None:
        self.protocol = Config().updated(rules, "make_env").protocol
        self._envs = PongVectorEnv(
            1, observation, actions=actions, opponent=opponent, render_mode=render_mode,
            num_threads=1, autoreset_mode="Disabled", noop_max=0, use_fire_reset=False,
            frameskip=self.protocol.frame_skips[0], max_frameskip=self.protocol.max_frame_skip,
            repeat_action_probability=self.protocol.sticky,
            max_num_frames_per_episode=self.protocol.max_frames,
        )  # fmt: skip
        self.render_mode, self.metadata = render_mode, self._envs.metadata
        self.action_space = self._envs.single_action_space
        self.observation_space = self._envs.single_observation_space
        self._points = {"points_won": 0, "points_lost": 0}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start the first episode of `seed`, or without a seed the next episode.

        Until a seed is given, one from the system is used. `options` are ignored.
        """
        super().reset(seed=seed)
        observations, _ = self._envs.reset(seed=seed)
        self._points = {"points_won": 0, "points_lost": 0}
        return observations[0], self._info()

    def step(self, action: np.int64 | int) -> Step:
        """Play one step with an index of `actions`; the info counts frames and points so far."""
        count = len(self._envs.moves)
        try:
            number = operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number < count:
            what = f"a whole number below {count} as the action"
            advice = "pixelpong's agents need make_env(actions='six')"
            raise ConfigError(expected(what, repr(action), advice))
        observations, (reward,), (over,), (cut,), _ = self._envs.step(np.array([number]))
        self._points["points_won"] += int(reward > 0)
        self._points["points_lost"] += int(reward < 0)
        return observations[0], float(reward), bool(over), bool(cut), self._info()

    def render(self) -> NDArray[np.uint8] | None:
        """The newest frame, [210, 160, 3] uint8, if ``render_mode`` is ``"rgb_array"``."""
        frames = self._envs.render()
        return frames[0] if frames else None

    def clone_state(self) -> Any:
        """Everything that the future of the game depends on, for `restore_state`."""
        return self._envs.clone_state(), dict(self._points)

    def restore_state(self, state: Any) -> None:
        """Continue from a state of this game, or of another with the same options."""
        self._envs.restore_state(state[0])
        self._points = dict(state[1])

    def _info(self) -> dict[str, Any]:
        return {"frames": int(self._envs.places["num_frames"][0]), **self._points}
