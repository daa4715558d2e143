"""The game as an environment for other programs: one game, many at once, a game of two learners.

env = pixelpong.make_env()
env = gymnasium.make("pixelpong.env.gym:pixelpong/Pong-v0")                        the same
envs = pixelpong.make_vec(64)
envs = gymnasium.make_vec("pixelpong.env.gym:pixelpong/Pong-v0", num_envs=64)      the same
env = pixelpong.make_two()
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from pixelpong.config.protocols import FrameLimit, FrameSkip, Name
from pixelpong.env.gym import ID
from pixelpong.errors import ConfigError
from pixelpong.faces.envs.two import TwoPlayerEnv
from pixelpong.faces.envs.vector import Actions, Observation, PongVectorEnv
from pixelpong.items import BUILTIN
from pixelpong.schema import Share

make_vec, make_two = PongVectorEnv, TwoPlayerEnv


def make_env(
    observation: Observation = "frame",
    *,
    actions: Actions = "six",
    opponent: str = BUILTIN,
    environment: Name = "ALE/Pong-v5",
    frame_skip: FrameSkip | None = None,
    sticky: Share | None = None,
    max_frames: FrameLimit | None = None,
    render_mode: Literal["rgb_array"] | None = None,
) -> gymnasium.Env[NDArray[Any], np.int64]:
    """Make our exact Pong as a Gymnasium environment.

    Args:
        observation: ``"frame"``, [210, 160, 3] uint8, which our agents need; ``"pixels"``, [80, 80]
            float32 of −1, 0 and 1, what changed in the field since the previous step: what the
            classic network sees; ``"field"``, [80, 80] uint8, 1 where something is drawn; or
            ``"atari"``, as in `make_vec`.
        actions: ``"six"``, numbered as in ``ALE/Pong-v5``, which our agents need; ``"three"``:
            stay, up, down; ``"two"``: up, down.
        opponent: ``"builtin"``, or an agent: ``"club"``, a run or a file. It draws its actions, and
            the winner of a point serves at once.
        environment: protocol, by the name under which results are published.
        frame_skip: frames per step; the protocol's own by default.
        sticky: probability that a frame keeps the held action; the protocol's own by default.
        max_frames: frames after which an episode is cut off; the protocol's own by default.
        render_mode: ``"rgb_array"`` for `render`, or None.

    Raises:
        ConfigError: a word is unknown, or a number is out of range.
        EmulatorError: the emulator or its game is not installed.

    >>> env = make_env("pixels", actions="two")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> observation.shape, reward, info
    ((80, 80), 0.0, {'frames': 4, 'points_won': 0, 'points_lost': 0})
    """
    options = dict(locals())  # all of the above
    if render_mode not in (None, "rgb_array"):  # Gymnasium accepts others
        raise ConfigError(f"make_env: render_mode is rgb_array or None, not {render_mode!r}.")
    return gymnasium.make(ID, **options)
