"""Many games as a `VecEnv` of stable-baselines3, which takes no vector environment of Gymnasium.

envs = pixelpong.make_sb3(8, actions="three")
PPO("CnnPolicy", envs).learn(1_000_000)

A step of all games is one call, where ``DummyVecEnv`` of `pixelpong.make_env` makes one for each.
The infos are those of an environment in a ``Monitor``: ``episode`` holds the return and the length
of a whole game, before rewards are clipped and whatever lives it lost. The length ``l`` counts
steps; in ``make_atari_env("BreakoutNoFrameskip-v4")`` it counts frames, four times as many.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.envs.maker import Maker
from pixelpong.envs.options import Observation, check_option
from pixelpong.envs.vector import VectorEnv
from pixelpong.errors import ConfigError
from pixelpong.machine import require
from pixelpong.schema import Number

VecEnv: Any = object
Monitor: Any = object
with contextlib.suppress(ImportError):  # make_sb3 says how to install it
    from stable_baselines3.common import monitor, vec_env

    VecEnv, Monitor = vec_env.VecEnv, monitor.Monitor


# stable-baselines3 keeps the observations of the last step until after the next one.
MAKE_SB3 = Maker(
    "make_sb3",
    {"autoreset_mode": "SameStep", "reward_clipping": False, "batch_size": 0, "copy": True},
)


class StableBaselinesEnv(VecEnv):
    """The games of `pixelpong.make_vec`, with its options, for agents of stable-baselines3.

    With `life_loss_info`, as in its ``AtariWrapper``, a lost life is an end for the agent while the
    game goes on.

    Raises:
        ConfigError: stable-baselines3 is not installed, or as in `pixelpong.make_vec`.
    """

    def __init__(
        self,
        num_envs: Number = 1,
        observation: Observation = "atari",
        *,
        reward_clipping: bool = True,
        life_loss_info: bool = False,
        **options: Any,
    ) -> None:
        require("make_sb3 needs", "stable_baselines3", extra="peers")
        self._clips = check_option("reward_clipping", bool, reward_clipping, MAKE_SB3)
        self._ends_lives = check_option("life_loss_info", bool, life_loss_info, MAKE_SB3)
        options = MAKE_SB3.complete(options)
        self._games = games = VectorEnv(num_envs, observation, _maker=MAKE_SB3, **options)
        super().__init__(games.num_envs, games.single_observation_space, games.single_action_space)

    def reset(self) -> NDArray[Any]:
        """Start an episode in all games, from the seeds that `seed` set, if it was called."""
        if any(self._options):
            raise ConfigError("make_sb3: reset() has no options. Leave out set_options().")
        seeds = None if None in self._seeds else self._seeds
        observations, infos = self._games.reset(seed=seeds)
        self._lives, self._began = infos["lives"], np.full(self.num_envs, time.time())
        self._returns, self._lengths = np.zeros((2, self.num_envs))
        self.reset_infos = self._list_infos(infos)
        self._reset_seeds()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]:
        """Play a step of each game; return observations, rewards, whether each ended, infos."""
        observations, rewards, is_over, is_cut, infos = self._games.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        is_over_or_cut, final = is_over | is_cut, infos.pop("final_obs", observations)
        is_done, lives = is_over_or_cut, infos["lives"]
        if self._ends_lives:
            is_done = is_done | ((0 < lives) & (lives < self._lives))
        self._lives, listed = lives, self._list_infos(infos)
        for i in np.flatnonzero(is_done).tolist():
            ended = final[i] if is_over_or_cut[i] else observations[i]
            is_truncated = bool(is_cut[i] and not is_over[i])
            listed[i] |= {"terminal_observation": ended, "TimeLimit.truncated": is_truncated}
        for i in np.flatnonzero(is_over_or_cut).tolist():
            listed[i]["episode"] = self._end_episode(i)
        rewards = np.clip(rewards, -1, 1) if self._clips else rewards
        return observations, rewards.astype(np.float32), is_done, listed

    def _end_episode(self, i: int) -> dict[str, float]:
        """What `Monitor` tells of an episode; the next one of this game begins."""
        now = time.time()
        told = {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": now - self._began[i]}
        self._returns[i], self._lengths[i], self._began[i] = 0, 0, now
        return told

    def _list_infos(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """The infos of each game, as Atari environments have them."""
        names = ("lives", "frame_number", "episode_frame_number")
        values = zip(*(infos[name].tolist() for name in names), strict=True)
        return [dict(zip(names, each, strict=True)) for each in values]

    def close(self) -> None:
        """End the threads."""
        self._games.close()

    def get_images(self) -> list[NDArray[np.uint8]]:
        """The newest frames, if ``render_mode`` is ``"rgb_array"``."""
        return list(self._games.render() or ())

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the environment of all games, once for each of `indices`."""
        return [getattr(self._games, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: the games share their attributes."""
        raise ConfigError(f"The games cannot set {attr_name} one by one; give options to make_sb3.")

    def env_method(self, method_name: str, *_: Any, indices: Any = None, **__: Any) -> list[Any]:
        """Refused: the games share their methods."""
        raise ConfigError(f"The games cannot call {method_name} one by one; use make_vec for that.")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Whether the infos are those of this wrapper, which is true of `Monitor`."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]


make_sb3 = StableBaselinesEnv
