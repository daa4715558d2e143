"""Registers our environments in Gymnasium, and makes Gymnasium's own Pong."""

from __future__ import annotations

from typing import Any

import gymnasium
from numpy.typing import NDArray

ID = "pixelpong/Pong-v0"


def make_theirs() -> gymnasium.Env[NDArray[Any], Any]:
    """Make Gymnasium's own ``ALE/Pong-v5``, from ale-py."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    return gymnasium.make("ALE/Pong-v5")


# Both environments check their input themselves. Gymnasium's checks take longer than the step.
gymnasium.register(
    ID,
    "pixelpong.envs.single:SingleEnv",
    vector_entry_point="pixelpong.envs.vector:VectorEnv",
    disable_env_checker=True,
)
