"""Names of environments in Gymnasium, and Gymnasium's own environments."""

from __future__ import annotations

from typing import Any

import gymnasium
from numpy.typing import NDArray

from pixelpong.atari.machine.cartridges import id_of


def make_theirs(game: str, **options: Any) -> gymnasium.Env[NDArray[Any], Any]:
    """Make Gymnasium's own environment of a game, from ale-py."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    return gymnasium.make(id_of(game, "ALE", 5), **options)
