"""The exact Pong of our trainings as a Gymnasium environment, for any agent.

    env = pixelpong.make_env()
    env = gymnasium.make("pixelpong.env.gym:pixelpong/Pong-v0")     the same

It plays the same game as a training and an evaluation. The k-th episode after ``reset(seed=S)`` has
the sticky frames of the k-th episode of ``pixelpong.evaluate(..., seed=S)``, so you can compare an
agent's results game by game. The fast network's inputs are not available as an observation;
`pixelpong.Policy` computes them from frames.
"""

from __future__ import annotations

import operator
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from pixelpong.config import Config
from pixelpong.env.pong import Emulator
from pixelpong.env.preprocess import difference, preprocess
from pixelpong.errors import ConfigError, expected
from pixelpong.items import DOWN, STAY, UP
from pixelpong.seeding import make_rng

ID = "pixelpong/Pong-v0"

OBSERVATIONS = ("frame", "pixels")
# In the numbers of ALE/Pong-v5.
ACTION_SETS = {"six": (0, 1, 2, 3, 4, 5), "three": (STAY, UP, DOWN), "two": (UP, DOWN)}

_WORDS: dict[str, tuple[str | None, ...]] = {
    "observation": OBSERVATIONS, "actions": tuple(ACTION_SETS), "render_mode": (None, "rgb_array"),
}  # fmt: skip

Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]


class PongEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """One game of Pong; make it with `make_env`."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(
        self,
        observation: str = "frame",
        actions: str = "six",
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        _check_words(observation=observation, actions=actions, render_mode=render_mode)
        self.protocol = Config().updated(rules, "make_env").protocol
        self.actions = ACTION_SETS[actions]
        self.render_mode = render_mode
        self.metadata = self.metadata | {"render_fps": 60 / self.protocol.max_frame_skip}
        self.action_space = gymnasium.spaces.Discrete(len(self.actions))
        self.observation_space = (
            gymnasium.spaces.Box(0, 255, (210, 160, 3), np.uint8)
            if observation == "frame"
            else gymnasium.spaces.Box(-1, 1, (80, 80), np.float32)
        )
        self._emulator = Emulator(self.protocol)
        self._sees_frames = observation == "frame"
        self._field: NDArray[np.float32] | None = None
        self._seed: int | None = None
        self._episode = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start the first episode of `seed`, or without a seed the next episode.

        Until a seed is given, one from the system is used. `options` are ignored.
        """
        super().reset(seed=seed)
        if seed is not None or self._seed is None:
            self._seed, self._episode = self.np_random_seed, 0
        else:
            self._episode += 1
        self._coins = make_rng(self._seed, "evaluate", 0, self._episode)
        self._emulator.reset()
        self._field, self._points = None, {"points_won": 0, "points_lost": 0}
        return self._observe(), self._info()

    def step(self, action: np.int64 | int) -> Step:
        """Play one step with an index of `actions`; the info counts frames and points so far."""
        if self._emulator.is_over:
            raise ConfigError("The episode has ended; call reset() before the next step().")
        try:
            move = dict(enumerate(self.actions))[operator.index(action)]
        except (TypeError, KeyError) as error:
            what = f"a whole number below {len(self.actions)} as the action"
            advice = "pixelpong's agents need make_env(actions='six')"
            raise ConfigError(expected(what, repr(action), advice)) from error
        # The first number of a step's row is for the agent's choice, as in a rollout.
        draws = self._coins.random(2 + self.protocol.max_frame_skip).tolist()
        reward = self._emulator.step(move, draws[1:])
        self._points["points_won"] += reward > 0
        self._points["points_lost"] += reward < 0
        is_over = self._emulator.is_over
        is_cut = is_over and self._emulator.num_frames >= self.protocol.max_frames
        return self._observe(), reward, is_over and not is_cut, is_cut, self._info()

    def render(self) -> NDArray[np.uint8] | None:
        """The newest frame, [210, 160, 3] uint8, if ``render_mode`` is ``"rgb_array"``."""
        return self._emulator.frame() if self.render_mode == "rgb_array" else None

    def _observe(self) -> NDArray[Any]:
        frame = self._emulator.frame()
        if self._sees_frames:
            return frame
        before, self._field = self._field, preprocess(frame)
        return difference(before, self._field).reshape(80, 80)

    def _info(self) -> dict[str, Any]:
        return {"frames": self._emulator.num_frames, **self._points}


def make_env(
    observation: str = "frame",
    *,
    actions: str = "six",
    environment: str = "ALE/Pong-v5",
    frame_skip: int | None = None,
    sticky: float | None = None,
    max_frames: int | None = None,
    render_mode: str | None = None,
) -> gymnasium.Env[NDArray[Any], np.int64]:
    """Make our exact Pong as a Gymnasium environment.

    Args:
        observation: ``"frame"``, [210, 160, 3] uint8, which our agents need; or ``"pixels"``,
            [80, 80] float32 of −1, 0 and 1, what changed in the field since the previous step: what
            the classic network sees.
        actions: ``"six"``, numbered as in ``ALE/Pong-v5``, which our agents need; ``"three"``:
            stay, up, down; ``"two"``: up, down.
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
    _check_words(render_mode=render_mode)  # Gymnasium accepts other values
    return gymnasium.make(ID, **options)


def make_theirs() -> gymnasium.Env[NDArray[Any], Any]:
    """Make Gymnasium's own ``ALE/Pong-v5``, of ale-py."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    return gymnasium.make("ALE/Pong-v5")


def _check_words(**words: str | None) -> None:
    for name, word in words.items():
        if word not in _WORDS[name]:
            known = ", ".join(map(repr, _WORDS[name]))
            raise ConfigError(expected(f"{name} to be one of {known}", repr(word)))


gymnasium.register(ID, "pixelpong.env.gym:PongEnv")
