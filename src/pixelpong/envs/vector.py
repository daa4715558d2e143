"""Many games as one environment, and for stable-baselines3: Pong by default."""

from __future__ import annotations

from pixelpong.atari.envs.stable_baselines import StableBaselinesEnv as AnyStableBaselinesEnv
from pixelpong.atari.envs.stable_baselines import StepsWithEpisodes
from pixelpong.atari.envs.vector import VectorEnv as AnyVectorEnv
from pixelpong.envs.plugs import DEFAULT_GAME, PLUGS, Actions, Observation, describe_with


class VectorEnv(AnyVectorEnv[Observation, Actions]):  # noqa: D101
    __doc__ = describe_with(
        AnyVectorEnv.__doc__,
        """    Pong, the default game, has more observations, actions and opponents, see
    `pixelpong.make_env`.

    >>> envs = VectorEnv(3, num_threads=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminated, truncated, infos = envs.step([0, 2, 3])
    >>> observations.shape, rewards.tolist()
    ((3, 4, 84, 84), [0, 0, 0])
    """,
    )

    plugs, default_game = PLUGS, DEFAULT_GAME


class _StepsWithEpisodes(StepsWithEpisodes, VectorEnv):
    """The games of `StableBaselinesEnv`."""


class StableBaselinesEnv(AnyStableBaselinesEnv[Observation]):  # noqa: D101
    __doc__ = AnyStableBaselinesEnv.__doc__

    vector_env = _StepsWithEpisodes
