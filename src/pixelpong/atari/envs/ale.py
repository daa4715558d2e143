"""What programs ask of ``env.unwrapped.ale``, which is ale-py's `ALEInterface`, or that of many.

`gymnasium.wrappers.AtariPreprocessing` and stable-baselines3's ``AtariWrapper`` read lives and
pictures there, others the memory. The names are ale-py's. Nothing here plays a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.action import Action
from pixelpong.atari.envs.actions import find_numbers
from pixelpong.atari.envs.errors import EnvIndexError, EnvValueError
from pixelpong.atari.games.memory import read_array
from pixelpong.atari.games.views import ATARI, View
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.atari.machine.record import STATE, WIDTH
from pixelpong.errors import ConfigError, must_be

# By the console's number of an action, the keys that ale-py has for it.
KEYS = (
    ("e",), (" ",), ("w",), ("d",), ("a",), ("s",), ("w", "d"), ("w", "a"), ("s", "d"), ("s", "a"),
    ("w", " "), ("d", " "), ("a", " "), ("s", " "), ("w", "d", " "), ("w", "a", " "),
    ("s", "d", " "), ("s", "a", " "),
)  # fmt: skip
Buffer = NDArray[np.uint8] | None  # to be written to; without one, a method returns a new array


class Ale:
    """Reads the game of an environment, as ale-py's `ALEInterface` does."""

    def __init__(self, envs: Any) -> None:
        """Read the first game of a `VectorEnv`."""
        self._envs, self._facts = envs, envs._options.cartridge(envs.game_names[0])
        grey = View(ATARI, rows=self._facts.rows, palette=self._facts.palette)
        self._greys, self._colours = grey.levels[0], PALETTES[self._facts.palette]

    def lives(self) -> int:
        """The lives that are left; 0 in a game that has none."""
        return int(self._envs._games.chances["lives"][0])

    def game_over(self, with_truncation: bool = True) -> bool:
        """Whether the game is over, or, with truncation, the episode."""
        return bool(self._envs.games["is_over"][0]) or (with_truncation and self.game_truncated())

    def game_truncated(self) -> bool:
        """Whether the frame limit has ended the episode."""
        return bool(self._envs.games["is_cut"][0])

    def getEpisodeFrameNumber(self) -> int:
        """The number of frames of the episode."""
        return int(self._envs.games["episode_frames"][0])

    def getFrameNumber(self) -> int:
        """The number of frames since the game was seeded."""
        return int(self._envs.games["total_frames"][0])

    def getMinimalActionSet(self) -> list[Action]:
        """The console's actions that the game uses."""
        return list(map(Action, self._facts.actions))

    def getLegalActionSet(self) -> list[Action]:
        """The console's actions."""
        return list(map(Action, self._facts.legal_actions))

    def getRAMSize(self) -> int:
        """The number of bytes of the console's memory."""
        return 128

    def getRAM(self, buffer: Buffer = None) -> Buffer:
        """The console's memory, [128]."""
        state: Any = self._envs._games.states[0, : STATE.itemsize].view(STATE)
        return _give(state["ram"][0], buffer)

    def getScreenDims(self) -> tuple[int, int]:
        """The rows and columns of a picture."""
        return self._facts.rows, WIDTH

    def getScreen(self, buffer: Buffer = None) -> Buffer:
        """The newest picture, [rows, 160], as indices of colours."""
        return _give(self._picture(), buffer)

    def getScreenGrayscale(self, buffer: Buffer = None) -> Buffer:
        """The newest picture, [rows, 160], in grey."""
        return _give(self._greys[self._picture()], buffer)

    def getScreenRGB(self, buffer: Buffer = None) -> Buffer:
        """The newest picture, [rows, 160, 3]."""
        return _give(self._colours[self._picture()], buffer)

    def _picture(self) -> NDArray[np.uint8]:
        frames = self._envs._games.frames
        if not len(frames):
            raise ConfigError(
                "ale has pictures only for the observations 'frame' and 'grayscale' or with "
                "render_mode='rgb_array'; choose one of them."
            )
        return frames[0]


class VectorAle:
    """Reads and resets many games, as ale-py's `ALEVectorInterface` does.

    Steps are played by the environment alone: by `step`, or by `send` and `recv`.
    """

    def __init__(self, envs: Any) -> None:
        """Read the games of a `VectorEnv`."""
        self._envs = envs

    def get_action_set(self) -> list[Action]:
        """The console's action for each index; with continuous actions, all that there are."""
        options = self._envs._options
        return list(map(Action, find_numbers(options, options.all_games[0], self._envs.plugs)))

    def get_num_envs(self) -> int:
        """The number of games."""
        return self._envs.num_envs

    def get_observation_shape(self) -> tuple[int, ...]:
        """The shape of one game's observation."""
        return self._envs._view.shape

    def reset(self, env_ids: Sequence[int], seeds: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        """Start episodes in these games, each with its seed; −1 in all: the next episodes.

        Like the environment's own `reset`, it returns the observations and infos of all games.
        """
        which, size = read_array("env_ids", env_ids, EnvValueError), self._envs.num_envs
        given = read_array("seeds", seeds, EnvValueError)
        if which.ndim != 1 or which.shape != given.shape:
            what = f"{list(which.shape)} env_ids need as many seeds, not {list(given.shape)}"
            raise EnvValueError(f"{what}: env_ids and seeds must have the same size.")
        if len(set(which.tolist())) < len(which):
            raise EnvValueError(f"env_ids has a game twice: {which.tolist()}.")
        if not set(which.tolist()) <= set(range(size)):
            raise EnvIndexError(must_be("env_ids", f"from 0 to {size - 1}", which.tolist()))
        order = np.argsort(which)
        mask = np.isin(np.arange(size), which)
        is_next = (given == -1).all()
        seed = None if is_next else [seeds[i] for i in order]
        return self._envs.reset(seed=seed, options={"reset_mask": mask})


def _give(values: NDArray[Any], buffer: Buffer) -> Buffer:
    if buffer is None:
        return values.copy()
    buffer[...] = values.reshape(buffer.shape)
    return None
