"""One game as a Gymnasium environment: Pong by default, the game of training and evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from pixelpong.atari.envs.single import Environments
from pixelpong.atari.envs.single import SingleEnv as AnySingleEnv
from pixelpong.config.protocols import PROTOCOLS, Name, Protocol, find_protocol
from pixelpong.envs.plugs import Actions, Observation, describe_with
from pixelpong.envs.vector import VectorEnv


def _rules_of(protocol: Protocol) -> dict[str, Any]:
    """Return the rules of a protocol as options of `VectorEnv`."""
    low, high = protocol.frame_skips
    rules = {
        "frameskip": low,
        "repeat_action_probability": protocol.sticky,
        "max_num_frames_per_episode": protocol.max_frames,
    }
    return rules | ({"max_frameskip": high} if low < high else {})


class SingleEnv(AnySingleEnv[Observation, Actions, Name]):  # noqa: D101
    __doc__ = describe_with(
        AnySingleEnv.__doc__,
        """    Pong, the default game, has besides:

    - the observations ``"pixels"``, [80, 80] float32 of −1, 0 and 1, the changes in the field since
      the previous step, which the classic network sees; and ``"field"``, [80, 80] uint8, 1 where
      something is drawn. Our agents need ``"frame"``;
    - the actions ``"six"``, numbered as in ``ALE/Pong-v5``, which our agents need; ``"three"``:
      stay, up, down; ``"two"``: up, down;
    - as an opponent an agent such as ``"club"``, a run or a file. An agent samples its actions, and
      the winner of a point serves at once;
    - ``coins="pixelpong"`` by default.

    `environment` is the protocol, by the name under which results on Pong are published; for
    another game it has the same rules.

    >>> env = SingleEnv("pixels", actions="two")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> observation.shape, reward, info["frames"], info["points_won"], info["points_lost"]
    ((80, 80), 0.0, 4, 0, 0)
    """,
    )

    vector_env = VectorEnv
    environments: ClassVar = Environments(
        {name: _rules_of(protocol) for name, protocol in PROTOCOLS.items()},
        {
            "Pong-v4": "'Pong-v0' with sticky=0.0",
            "PongNoFrameskip-v0": "'PongNoFrameskip-v4' with sticky=0.25",
            "PongDeterministic-v0": "'ALE/Pong-v5'",
        },
    )

    @property
    def protocol(self) -> Protocol:
        """The rules that are played."""
        options = self._envs._options
        return replace(
            find_protocol(self.environment),
            frame_skips=(options.frameskip, options.most_frames),
            sticky=options.repeat_action_probability,
            max_frames=options.max_num_frames_per_episode,
        )
