"""One game of Pong as a Gymnasium environment: the same game as in training and evaluation.

The k-th episode after ``reset(seed=S)`` has the sticky frames of the k-th episode of
``pixelpong.evaluate(..., seed=S)``, so you can compare an agent's results game by game.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.config.protocols import FrameLimit, FrameSkip, Name
from pixelpong.envs.actions import ACTION_SETS, MEANINGS
from pixelpong.envs.seeds import read_seed
from pixelpong.envs.vector import Actions, Observation, VectorEnv
from pixelpong.errors import ConfigError, must_be
from pixelpong.items import BUILTIN
from pixelpong.schema import Share

Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]


class _OneGame(VectorEnv):
    maker = "make_env"


class PongEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """Our exact Pong as a Gymnasium environment.

    Args:
        observation: ``"frame"``, [210, 160, 3] uint8, which our agents need; ``"pixels"``, [80, 80]
            float32 of −1, 0 and 1, the changes in the field since the previous step, which the
            classic network sees; ``"field"``, [80, 80] uint8, 1 where something is drawn; or
            ``"atari"``, as in `pixelpong.make_vec`.
        actions: ``"six"``, numbered as in ``ALE/Pong-v5``, which our agents need; ``"three"``:
            stay, up, down; ``"two"``: up, down.
        opponent: ``"builtin"``, or an agent such as ``"club"``, a run or a file. An agent samples
            its actions, and the winner of a point serves at once.
        environment: the protocol, by the name under which results are published.
        frame_skip: frames per step; the protocol's own by default.
        sticky: probability that a frame keeps the held action; the protocol's own by default.
        max_frames: frames after which an episode is cut off; the protocol's own by default.
        render_mode: ``"rgb_array"`` for `render`, or None.

    Raises:
        ConfigError: an option's value is unknown or out of range.
        EmulatorError: the emulator or its game is not installed.

    >>> env = PongEnv("pixels", actions="two")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> observation.shape, reward, info
    ((80, 80), 0.0, {'frames': 4, 'points_won': 0, 'points_lost': 0})
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(
        self,
        observation: Observation = "frame",
        *,
        actions: Actions = "six",
        opponent: str = BUILTIN,
        environment: Name = "ALE/Pong-v5",
        frame_skip: FrameSkip | None = None,
        sticky: Share | None = None,
        max_frames: FrameLimit | None = None,
        render_mode: Literal["rgb_array"] | None = None,
    ) -> None:
        rules = {
            "environment": environment, "frame_skip": frame_skip, "sticky": sticky,
            "max_frames": max_frames,
        }  # fmt: skip
        self.protocol = Config().updated(rules, "make_env").protocol
        self._envs = _OneGame(
            1, observation, actions=actions, opponent=opponent, render_mode=render_mode,
            num_threads=1, autoreset_mode="Disabled", noop_max=0, use_fire_reset=False,
            frameskip=self.protocol.frame_skips[0], max_frameskip=self.protocol.max_frame_skip,
            repeat_action_probability=self.protocol.sticky,
            max_num_frames_per_episode=self.protocol.max_frames, coins="pixelpong",
        )  # fmt: skip
        self.metadata = self.metadata | {"render_fps": self._envs.metadata["render_fps"]}
        self.render_mode, self._actions = render_mode, actions
        self.action_space = self._envs.single_action_space
        self.observation_space = self._envs.single_observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start the first episode of `seed`; without a seed, start the next episode.

        Until you give a seed, the system supplies one. There are no `options`.
        """
        for name in options or {}:
            raise ConfigError(f"reset() has no option {name!r}. Leave it out.")
        seed = None if seed is None else read_seed(seed)
        super().reset(seed=seed)
        observations, _ = self._envs.reset(seed=seed)
        return observations[0], self._info()

    def step(self, action: np.int64 | int) -> Step:
        """Play one step with an index of `actions`; the info counts frames and points so far."""
        number = np.asarray(action)
        if number.shape != () or number.dtype.kind not in "biu":
            raise ConfigError(must_be("action", "a whole number", repr(action)))
        observations, (reward,), (over,), (cut,), _ = self._envs.step(number[None])
        return observations[0], float(reward), bool(over), bool(cut), self._info()

    def get_action_meanings(self) -> list[str]:
        """The names of the actions, as Gymnasium's Atari environments have them.

        >>> PongEnv(actions="three").get_action_meanings()
        ['NOOP', 'RIGHT', 'LEFT']
        """
        return [MEANINGS[k] for k in ACTION_SETS[self._actions]]

    def render(self) -> NDArray[np.uint8] | None:
        """The newest frame, [210, 160, 3] uint8, if ``render_mode`` is ``"rgb_array"``."""
        frames = self._envs.render()
        return frames[0] if frames else None

    def clone_state(self) -> Any:
        """The state on which the game's future depends, for `restore_state`."""
        return self._envs.clone_state()

    def restore_state(self, state: Any) -> None:
        """Continue from a state of this game, or of another game with the same options.

        Raises:
            ConfigError: the state does not fit this game; nothing has changed.
        """
        self._envs.restore_state(state)

    def _info(self) -> dict[str, Any]:
        (game,) = self._envs.games
        won, lost = game["points"].tolist()
        return {"frames": int(game["num_frames"]), "points_won": won, "points_lost": lost}
