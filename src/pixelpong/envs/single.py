"""One game as a Gymnasium environment, Pong by default: the game of training and evaluation.

With ``coins="ale"``, or without sticky frames, it is ale-py's own environment, byte for byte. Other
people's wrappers find what they ask of that one: `Ale`, the names of actions, the frame skip.

By default, the k-th episode after ``reset(seed=S)`` has the sticky frames of the k-th episode of
``pixelpong.evaluate(..., seed=S)``, so you can compare an agent's results game by game.
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from pixelpong.atari.cartridges import cartridge
from pixelpong.config import Config
from pixelpong.config.protocols import FrameLimit, FrameSkip, Name, Protocol
from pixelpong.envs.actions import ACTION_SETS
from pixelpong.envs.ale import ACTION_NAMES, Ale
from pixelpong.envs.errors import EnvError
from pixelpong.envs.inputs import read_seed, split_seed
from pixelpong.envs.options import CoinsName, add_own
from pixelpong.envs.vector import Actions, Observation, VectorEnv
from pixelpong.errors import ConfigError, must_be
from pixelpong.games.console import PONG
from pixelpong.games.memory import read_array
from pixelpong.items import BUILTIN
from pixelpong.schema import Share

Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]

DEFAULT: Name = "ALE/Pong-v5"
# What ale-py calls the options of a protocol.
_THEIR_NAMES = {
    "frameskip": "frame_skip", "repeat_action_probability": "sticky",
    "max_num_frames_per_episode": "max_frames",
}  # fmt: skip


def vector_options(**options: Any) -> dict[str, Any]:
    """The options of `pixelpong.make_vec` for those of `pixelpong.make_env`."""
    return _read_options(options)[1]


def _read_options(options: dict[str, Any]) -> tuple[Protocol, dict[str, Any]]:
    """The protocol of an environment with these options, and those of the same games at once."""
    rules = {name: options.pop(name, None) for name in ("frame_skip", "sticky", "max_frames")}
    for name in _THEIR_NAMES.keys() & options.keys():
        if rules[_THEIR_NAMES[name]] is not None:
            raise EnvError(f"{name} is {_THEIR_NAMES[name]}; leave out one of the two.")
        rules[_THEIR_NAMES[name]] = options.pop(name)
    rules["environment"] = options.pop("environment", DEFAULT)
    try:
        protocol = Config().updated(rules, "make_env").protocol
    except ConfigError as error:
        raise EnvError(str(error)) from error
    low, high = protocol.frame_skips
    is_like_ale = options.get("game", PONG) != PONG and low == high
    coins = options.pop("coins", None) or ("ale" if is_like_ale else "pixelpong")
    return protocol, {
        "noop_max": 0, "use_fire_reset": False, "reward_clipping": False,
        "frameskip": low, "max_frameskip": None if low == high else high,
        "repeat_action_probability": protocol.sticky,
        "max_num_frames_per_episode": protocol.max_frames,
        "coins": "ale_env" if coins == "ale" else coins,
    } | options  # fmt: skip


class _OneGame(VectorEnv):
    maker = "make_env"


class SingleEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """One exact game as a Gymnasium environment.

    Args:
        observation: ``"frame"``, [210, 160, 3] uint8, which our agents need; ``"atari"``, as in
            `pixelpong.make_vec`; and for Pong alone ``"pixels"``, [80, 80] float32 of −1, 0 and 1,
            the changes in the field since the previous step, which the classic network sees; or
            ``"field"``, [80, 80] uint8, 1 where something is drawn.
        game: the cartridge, by ale-py's name, such as ``"ms_pacman"``.
        actions: for Pong alone: ``"six"``, numbered as in ``ALE/Pong-v5``, which our agents need;
            ``"three"``: stay, up, down; ``"two"``: up, down.
        opponent: for Pong alone: ``"builtin"``, or an agent such as ``"club"``, a run or a file. An
            agent samples its actions, and the winner of a point serves at once.
        coins: what decides which frames are sticky. ``"pixelpong"``: the generators of
            `pixelpong.evaluate`, the default for Pong. ``"ale"``: ale-py's, for the same bytes as
            ``gymnasium.make("ALE/Pong-v5")`` from the same seed; the default for other games.
        environment: the protocol, by the name under which results on Pong are published; for
            another game it has the same rules.
        frame_skip: frames per step; the protocol's own by default.
        sticky: probability that a frame keeps the held action; the protocol's own by default.
        max_frames: frames after which an episode is cut off; the protocol's own by default.
        full_action_space: use all actions of the console.
        render_mode: ``"rgb_array"`` for `render`, or None.
        others: options of `pixelpong.make_vec`, such as ``noop_max``; and ``frameskip``,
            ``repeat_action_probability`` and ``max_num_frames_per_episode``, ale-py's names for
            three of the above.

    Raises:
        ConfigError: an option's value is unknown or out of range.
        EmulatorError: there is no such game, it is not covered, or its ROM is not installed.

    >>> env = SingleEnv("pixels", actions="two")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> observation.shape, reward, info["frames"], info["points_won"], info["points_lost"]
    ((80, 80), 0.0, 4, 0, 0)
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(  # noqa: PLR0913 - see `make_vec`
        self,
        observation: Observation = "frame",
        *,
        game: str = PONG,
        actions: Actions | None = None,
        opponent: str = BUILTIN,
        coins: CoinsName | None = None,
        environment: Name = DEFAULT,
        frame_skip: FrameSkip | None = None,
        sticky: Share | None = None,
        max_frames: FrameLimit | None = None,
        full_action_space: bool = False,
        render_mode: Literal["rgb_array"] | None = None,
        **others: Any,
    ) -> None:
        given: dict[str, Any] = {
            "game": game, "actions": actions, "opponent": opponent, "coins": coins,
            "environment": environment, "frame_skip": frame_skip, "sticky": sticky,
            "max_frames": max_frames, "full_action_space": full_action_space,
            "render_mode": render_mode,
        }  # fmt: skip
        self.protocol, options = _read_options(given | others)
        own = {"num_envs": 1, "num_threads": 1, "autoreset_mode": "Disabled"}
        self._envs = _OneGame(observation=observation, **add_own(options, own, "make_env"))
        self.ale = Ale(self._envs)
        low, high = self.protocol.frame_skips
        self._frameskip = low if low == high else (low, high + 1)  # for wrappers that look there
        facts = cartridge(game)
        numbers = facts.legal_actions if full_action_space else facts.actions
        if actions:
            numbers = tuple(numbers[k] for k in ACTION_SETS[actions])
        self._meanings = [ACTION_NAMES[number] for number in numbers]
        self.metadata = self.metadata | {"render_fps": self._envs.metadata["render_fps"]}
        self.render_mode = render_mode
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
        if seed is None:
            observations, _ = self._envs.reset()
        else:  # wrappers draw their no-ops from the same numbers as with ale-py
            generator, _ = seeding.np_random(split_seed(seed)[0])
            observations, _ = self._envs._reset(seed, None, (generator, seed))
        return observations[0], self._info()

    # Gymnasium's environments keep their generator here. It is kept with the game, so a reset that
    # is interrupted changes both or none.

    @property
    def _np_random(self) -> np.random.Generator | None:
        generator, _ = self._envs._pending.kept or (None, None)
        return generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._envs._keep((generator, self._np_random_seed))

    @property
    def _np_random_seed(self) -> int | None:
        _, seed = self._envs._pending.kept or (None, None)
        return seed

    @_np_random_seed.setter
    def _np_random_seed(self, seed: int | None) -> None:
        self._envs._keep((self._np_random, seed))

    def step(self, action: Any) -> Step:
        """Play one step with an index of `actions`, or with a continuous action, [3] float32."""
        chosen, shape = read_array("action", action, EnvError), self.action_space.shape
        kinds = "f" if shape else "biu"  # continuous actions are three numbers
        if chosen.shape != shape or chosen.dtype.kind not in kinds:
            allowed = f"{shape[0]} floats" if shape else "a whole number"
            raise EnvError(must_be("action", allowed, repr(action)))
        observations, (reward,), (over,), (cut,), _ = self._envs.step(chosen[None])
        return observations[0], float(reward), bool(over), bool(cut), self._info()

    def get_action_meanings(self) -> list[str]:
        """The names of the actions, as Gymnasium's Atari environments have them.

        >>> SingleEnv(actions="three").get_action_meanings()
        ['NOOP', 'RIGHT', 'LEFT']
        """
        return list(self._meanings)

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
        """What ale-py's environment tells, and for Pong the frames and points of the episode."""
        info: dict[str, Any] = {
            "lives": self.ale.lives(),
            "episode_frame_number": self.ale.getEpisodeFrameNumber(),
            "frame_number": self.ale.getFrameNumber(),
        }
        if self._envs.game == PONG:
            (game,) = self._envs.games
            won, lost = game["points"].tolist()
            info |= {"frames": int(game["num_frames"]), "points_won": won, "points_lost": lost}
        return info
