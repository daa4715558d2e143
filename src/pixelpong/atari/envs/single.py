"""One game as a Gymnasium environment, Pong by default: the game of training and evaluation.

With ``coins="ale"``, or without sticky frames, it is ale-py's own environment, byte for byte,
cut off at the same frame. Other people's wrappers find what they ask of that one: `Ale`, the names
of actions, the frame skip.

By default, the k-th episode after ``reset(seed=S)`` has the sticky frames of the k-th episode of
``pixelpong.evaluate(..., seed=S)``, so you can compare an agent's results game by game.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from pixelpong.atari.envs.actions import find_numbers
from pixelpong.atari.envs.ale import ACTION_NAMES, KEYS, Ale
from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.envs.inputs import read_seed, split_seed
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.options import CoinsName, check_option
from pixelpong.atari.envs.vector import Actions, Observation, VectorEnv
from pixelpong.atari.games.memory import read_array
from pixelpong.atari.games.rules import PONG
from pixelpong.config.protocols import Name, Protocol, find_protocol
from pixelpong.errors import ConfigError, must_be, unknown
from pixelpong.items import BUILTIN
from pixelpong.schema import FrameLimit, FrameSkip, Share

Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]

DEFAULT: Name = "ALE/Pong-v5"
# Our words for options of `make_vec`, which ale-py and `make_vec` call otherwise.
_OUR_WORDS = {
    "frame_skip": "frameskip", "sticky": "repeat_action_probability",
    "max_frames": "max_num_frames_per_episode",
}  # fmt: skip
_ONE_GAME = {"num_envs": 1, "games": None, "batch_size": 0, "autoreset_mode": "Disabled"}
MAKE_ENV = Maker(
    "make_env",
    _ONE_GAME | {"num_threads": 1, "thread_affinity_offset": -1},
    ("environment", *_OUR_WORDS),
    {theirs: ours for ours, theirs in _OUR_WORDS.items()},
)
# An id names one game. Gymnasium's make_vec makes many of it.
OF_ID = Maker("gymnasium.make_vec", {"games": None}, MAKE_ENV.others, MAKE_ENV.words)
# Names of ale-py's that are not a protocol's, by the way to say the same.
_SYNONYMS = {
    "Pong-v4": "'Pong-v0' with sticky=0.0",
    "PongNoFrameskip-v0": "'PongNoFrameskip-v4' with sticky=0.25",
    "PongDeterministic-v0": "'ALE/Pong-v5'",
}


def vector_options(maker: Maker, **options: Any) -> dict[str, Any]:
    """The options of `VectorEnv` for those of `pixelpong.make_env`."""
    return _read_options(options, maker)[1]


def _read_options(options: dict[str, Any], maker: Maker) -> tuple[Protocol, dict[str, Any]]:
    """The protocol of an environment with these options, and those of the same games at once."""
    rules = (*_OUR_WORDS, *_OUR_WORDS.values(), "max_frameskip")  # None: as the protocol says
    options = {name: it for name, it in options.items() if it is not None or name not in rules}
    options = maker.complete(options)
    words = {}
    for ours, theirs in _OUR_WORDS.items():
        if {ours, theirs} <= options.keys():
            raise EnvError(f"{theirs} is {ours}; leave out one of the two.")
        if theirs in options:
            words[theirs] = theirs
        elif ours in options:
            options[theirs] = options.pop(ours)
    protocol = find_protocol(_read_name(options.pop("environment", DEFAULT), maker))
    low, high = protocol.frame_skips
    if "max_frameskip" not in options and "frameskip" not in options and low < high:
        options["max_frameskip"], words["max_frameskip"] = high, "environment"
    is_like_ale = options.get("game", PONG) != PONG and "max_frameskip" not in options
    coins = options.pop("coins", None) or ("ale" if is_like_ale else "pixelpong")
    options = {
        "noop_max": 0, "use_fire_reset": False, "reward_clipping": False, "frameskip": low,
        "repeat_action_probability": protocol.sticky,
        "max_num_frames_per_episode": protocol.max_frames,
        "coins": "ale_env" if coins == "ale" else coins,
    } | options  # fmt: skip
    return protocol, options | {"_maker": maker.spelling(words)}


def _read_name(name: Any, maker: Maker) -> Name:
    """Check the name of a protocol."""
    if isinstance(name, str) and name in _SYNONYMS:
        advice = f"its rules are those of {_SYNONYMS[name]}"
        raise EnvError(f"{maker.name}: {unknown('environment', name, advice)}")
    checked: Name = check_option("environment", Name, name, maker)
    return checked


class SingleEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """One exact game as a Gymnasium environment.

    Args:
        observation: ``"frame"``, [210, 160, 3] uint8, which our agents need; some games have more
            rows; ``"atari"``, as in `pixelpong.make_vec`; and for Pong alone ``"pixels"``, [80, 80]
            float32 of −1, 0 and 1, the changes in the field since the previous step, which the
            classic network sees; or ``"field"``, [80, 80] uint8, 1 where something is drawn.
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
        others: options of `pixelpong.make_vec`, such as ``noop_max`` or ``max_frameskip``; and
            ``frameskip``, ``repeat_action_probability`` and ``max_num_frames_per_episode``,
            ale-py's names for three of the above.

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
        named, options = _read_options(given | others, MAKE_ENV)
        self._envs = VectorEnv(observation=observation, **options)
        self.ale = Ale(self._envs)
        checked = self._envs._options
        low, high = skips = checked.frameskip, checked.most_frames
        self.protocol = replace(
            named, frame_skips=skips, sticky=checked.repeat_action_probability,
            max_frames=checked.max_num_frames_per_episode,
        )  # fmt: skip
        self._frameskip = low if low == high else (low, high + 1)  # for wrappers that look there
        self._numbers = find_numbers(checked, game)
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
        is_continuous = isinstance(self.action_space, gymnasium.spaces.Box)
        if chosen.shape != shape or chosen.dtype.kind not in ("f" if is_continuous else "biu"):
            allowed = "a whole number"
            if shape:
                allowed = f"{shape[0]} floats" if is_continuous else f"{shape[0]} whole numbers"
            raise EnvError(must_be("action", allowed, repr(action)))
        observations, (reward,), (over,), (cut,), _ = self._envs.step(chosen[None])
        return observations[0], float(reward), bool(over), bool(cut), self._info()

    def get_action_meanings(self) -> list[str]:
        """The names of the actions, as Gymnasium's Atari environments have them.

        >>> SingleEnv(actions="three").get_action_meanings()
        ['NOOP', 'RIGHT', 'LEFT']
        """
        return [ACTION_NAMES[number] for number in self._numbers]

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """The action for the keys that are held, by which `gymnasium.utils.play` plays.

        As in ale-py: w, a, s, d, the space bar for the button, and e for no action.

        >>> SingleEnv(actions="two").get_keys_to_action()
        {('d',): 0, ('a',): 1}
        """
        if isinstance(self.action_space, gymnasium.spaces.Box):
            raise EnvError("Continuous actions have no keys; leave out continuous.")
        return {KEYS[number]: index for index, number in enumerate(self._numbers)}

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
