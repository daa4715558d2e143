"""What programs ask of ``env.unwrapped.ale``, which is ale-py's `ALEInterface`.

`gymnasium.wrappers.AtariPreprocessing` and stable-baselines3's ``AtariWrapper`` read lives and
pictures there, others the memory. The names are ale-py's. `Ale.act` plays one frame, whatever the
frame skip of the environment's steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.action import Action
from pixelpong.atari.envs.actions import find_cartridge
from pixelpong.atari.envs.ale_settings import Settings
from pixelpong.atari.envs.ale_state import GENERATOR, NEVER_KEPT, AleState
from pixelpong.atari.envs.errors import EnvError, EnvIndexError, EnvValueError
from pixelpong.atari.envs.inputs import MOST_RADIUS
from pixelpong.atari.games.views import ATARI, View
from pixelpong.atari.machine.palette import PALETTES
from pixelpong.atari.machine.record import PADDLE_TURN, STATE, WIDTH
from pixelpong.atari.sides import BUILTIN
from pixelpong.errors import ConfigError, must_be

# By the console's number of an action, the keys that ale-py has for it.
KEYS = (
    ("e",), (" ",), ("w",), ("d",), ("a",), ("s",), ("w", "d"), ("w", "a"), ("s", "d"), ("s", "a"),
    ("w", " "), ("d", " "), ("a", " "), ("s", " "), ("w", "d", " "), ("w", "a", " "),
    ("s", "d", " "), ("s", "a", " "),
)  # fmt: skip
Buffer = NDArray[np.uint8] | None  # to be written to; without one, a method returns a new array


class Ale(Settings):
    """Reads and plays the game of an environment, as ale-py's `ALEInterface` does."""

    def __init__(self, envs: Any) -> None:
        """Read and play the only game of a `VectorEnv`."""
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

    def setRAM(self, address: int, value: int) -> None:
        """Write a byte, 0 to 255, to the console's memory at an address, 0 to 127.

        Raises:
            EnvError: there is no such address or byte, or no episode was started.
        """
        for name, number, most in (("address", address, 127), ("value", value, 255)):
            if not isinstance(number, int | np.integer) or not 0 <= number <= most:
                error = EnvIndexError if name == "address" else EnvValueError
                raise error(must_be(f"setRAM: {name}", f"from 0 to {most}", number))
        with self._envs._turns.lock:
            self._envs._turns.settle()
            self._envs._require_episode()
            state: Any = self._envs._games.states[0, : STATE.itemsize].view(STATE)
            state["ram"][0, address] = value

    def act(self, action: int, paddle_strength: float = 1.0) -> int:
        """Play one frame with an action of the console, 0 to 17; return the reward.

        The frame may keep the held action, as in a step. After the end of an episode nothing is
        played. An action that the game does not have is no action, as in ale-py.

        Args:
            action: its number, or an `Action`.
            paddle_strength: how far a paddle turns; other than 1 only in an environment with
                continuous actions. Without a paddle, it changes nothing.

        Raises:
            EnvError: there is no such action, or no episode was started.
        """
        number, options = getattr(action, "value", action), self._envs._options
        if not isinstance(number, int | np.integer) or not 0 <= number < len(Action):
            raise EnvIndexError(must_be("act: action", "from 0 to 17", action))
        if options.opponent != BUILTIN:
            raise EnvError("act() is for a game without an opponent; call step().")
        strength = abs(float(np.float32(paddle_strength)))
        if not strength <= MOST_RADIUS:
            raise EnvValueError(must_be("paddle_strength", f"at most {MOST_RADIUS:,}", strength))
        if self._has_paddles and strength != 1 and not options.continuous:
            raise EnvError("paddle_strength stays 1 here; give continuous=True to make_env.")
        move = find_cartridge(options, self._facts.name, self._envs.plugs).code_of(int(number))
        _, (reward,), *_ = self._envs._play_frame(move, int(PADDLE_TURN * strength))
        return int(reward)

    def reset_game(self) -> None:
        """Start the next episode, as the environment's `reset` without a seed."""
        self._envs.reset()

    def cloneState(self, include_rng: bool = False) -> AleState:
        """Return the state of the game; by default without the generator that decides what sticks.

        As in ale-py, the held action is no part of it. The picture is: ale-py keeps the older one
        until the next frame.
        """
        arrays = self._envs.clone_state()
        return AleState(arrays, self._flavour, NEVER_KEPT + (() if include_rng else GENERATOR))

    def restoreState(self, state: AleState) -> None:
        """Continue from a state; what it lacks stays as it is.

        Raises:
            ConfigError: the state does not fit this game; nothing has changed.
        """
        with self._envs._turns.lock:
            is_ales = isinstance(state, AleState)
            self._envs.restore_state(state.complete(self._envs.clone_state()) if is_ales else state)

    def cloneSystemState(self) -> AleState:
        """Return the state with the generator that decides what sticks."""
        return self.cloneState(include_rng=True)

    def restoreSystemState(self, state: AleState) -> None:
        """Continue from a state, as `restoreState`."""
        self.restoreState(state)

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


def _give(values: NDArray[Any], buffer: Buffer) -> Buffer:
    if buffer is None:
        return values.copy()
    buffer[...] = values.reshape(buffer.shape)
    return None
