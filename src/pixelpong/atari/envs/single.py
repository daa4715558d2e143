"""One game as a Gymnasium environment.

With ``coins="ale"``, or without sticky frames, it is ale-py's own environment, byte for byte,
cut off at the same frame. Other people's wrappers find what they ask of that one: `Ale`, the names
of actions, the frame skip.

With ``coins="pixelpong"``, the k-th episode after ``reset(seed=S)`` has the sticky frames of the
k-th episode of ``pixelpong.evaluate(..., seed=S)``, so you can compare an agent's results game by
game.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from pixelpong.atari.action import ACTION_NAMES, Action
from pixelpong.atari.envs.actions import find_numbers
from pixelpong.atari.envs.ale import KEYS, Ale
from pixelpong.atari.envs.ale_state import AleState
from pixelpong.atari.envs.errors import EnvError
from pixelpong.atari.envs.generator import Kept, OwnGenerator
from pixelpong.atari.envs.inputs import read_seed, split_seed
from pixelpong.atari.envs.maker import Maker
from pixelpong.atari.envs.options import CoinsName, check_option
from pixelpong.atari.envs.plug import ActionsName, ObservationName
from pixelpong.atari.envs.vector import VectorEnv
from pixelpong.atari.games.memory import read_array
from pixelpong.atari.sides import BUILTIN
from pixelpong.errors import ConfigError, must_be, unknown
from pixelpong.schema import MAX_FRAMES, FrameLimit, FrameSkip, Share

ObsType = Literal["rgb", "grayscale", "ram"]
Step = tuple[NDArray[Any], float, bool, bool, dict[str, Any]]
EnvironmentName = TypeVar("EnvironmentName", bound=str)  # for type checkers

# Our words for options of `make_vec`, which ale-py and `make_vec` call otherwise.
_OUR_WORDS = {
    "frame_skip": "frameskip", "sticky": "repeat_action_probability",
    "max_frames": "max_num_frames_per_episode",
}  # fmt: skip
# ale-py's words for observations, with ours.
OBS_TYPES = {"rgb": "frame", "grayscale": "grayscale", "ram": "ram"}
_ONE_GAME = {"num_envs": 1, "games": None, "batch_size": 0, "autoreset_mode": "Disabled"}
MAKE_ENV = Maker(
    "make_env",
    _ONE_GAME | {"num_threads": 1, "thread_affinity_offset": -1},
    ("environment", "obs_type", *_OUR_WORDS),
    draws_frames=True,
    words={theirs: ours for ours, theirs in _OUR_WORDS.items()},
)
# An id names one game. Gymnasium's make_vec makes many of it.
OF_ID = Maker("gymnasium.make_vec", {"games": None}, MAKE_ENV.others, words=MAKE_ENV.words)


class Environments(NamedTuple):
    """Names under which results are published, with the rules that they stand for."""

    rules: Mapping[str, Mapping[str, Any]]  # options of `VectorEnv`; the first name is the default
    advice: Mapping[str, str]  # for other names: how to say the same


_V5 = {
    "frameskip": 4, "repeat_action_probability": 0.25, "max_num_frames_per_episode": MAX_FRAMES,
}  # fmt: skip


class SingleEnv(
    OwnGenerator,
    gymnasium.Env[NDArray[Any], np.int64],
    Generic[ObservationName, ActionsName, EnvironmentName],
):
    """One exact game as a Gymnasium environment.

    Args:
        observation: ``"frame"``, the default, [210, 160, 3] uint8; some games have more rows;
            ``"grayscale"``, the same in grey, [210, 160]; ``"ram"``, the console's memory, [128]
            uint8; ``"atari"``, as in `pixelpong.make_vec`; or one that the game brings.
        game: the cartridge, by ale-py's name, such as ``"ms_pacman"``; by default that of
            `vector_env`.
        mode, difficulty: the game on the cartridge and the console's switches, by ale-py's numbers;
            `pixelpong.games` lists them.
        actions, opponent: as in `pixelpong.make_vec`, if the game brings them.
        coins: what decides which frames are sticky. ``"ale"``: ale-py's, for the same bytes as
            ``gymnasium.make("ALE/Breakout-v5")`` from the same seed; the default, unless the game
            brings another. ``"pixelpong"``: the generators of `pixelpong.evaluate`.
        environment: the rules, by a name under which results are published; by default those of
            ale-py's newest version, v5.
        frame_skip: frames per step; by default that of `environment`. ``frameskip=(2, 5)`` are 2
            to 4 frames, as in ale-py; with its coins they are drawn from `np_random`, as there.
        sticky: probability that a frame keeps the held action; the same.
        max_frames: frames after which an episode is cut off; the same.
        full_action_space: use all actions of the console.
        obs_type: ale-py's word for `observation`: ``"rgb"``, ``"grayscale"`` or ``"ram"``.
        ram_info: ``info["ram"]`` is the console's memory, [128] uint8.
        render_mode: ``"rgb_array"`` for `render`, or None.
        others: options of `pixelpong.make_vec`, such as ``noop_max`` or ``max_frameskip``; and
            ``frameskip``, ``repeat_action_probability`` and ``max_num_frames_per_episode``,
            ale-py's names for three of the above.

    Raises:
        ConfigError: an option's value is unknown or out of range.
        EmulatorError: there is no such game, it is not covered, or its ROM is not installed.

    >>> env = SingleEnv(game="breakout")
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> observation.shape, reward, info["lives"]
    ((210, 160, 3), 0.0, 5)
    """

    # The environment of many games that this one makes for one, and the names of rules.
    vector_env: ClassVar[type[VectorEnv[Any, Any]]] = VectorEnv
    environments: ClassVar[Environments] = Environments({"v5": _V5}, {})
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(  # noqa: PLR0913 - see `make_vec`
        self,
        observation: ObservationName | None = None,
        *,
        game: str | None = None,
        actions: ActionsName | None = None,
        opponent: str = BUILTIN,
        coins: CoinsName | None = None,
        environment: EnvironmentName | None = None,
        frame_skip: FrameSkip | None = None,
        sticky: Share | None = None,
        max_frames: FrameLimit | None = None,
        full_action_space: bool = False,
        obs_type: ObsType | None = None,
        ram_info: bool = False,
        render_mode: Literal["rgb_array"] | None = None,
        **others: Any,
    ) -> None:
        given: dict[str, Any] = {
            "game": game, "actions": actions, "opponent": opponent, "coins": coins,
            "environment": environment, "frame_skip": frame_skip, "sticky": sticky,
            "max_frames": max_frames, "full_action_space": full_action_space,
            "observation": observation, "obs_type": obs_type, "ram_info": ram_info,
            "render_mode": render_mode,
        }  # fmt: skip
        options = self.vector_options(MAKE_ENV, **given | others)
        self.environment = environment or next(iter(self.environments.rules))
        self._envs = envs = self.vector_env(**options)
        self.ale = Ale(envs)
        checked = envs._options
        low, high = checked.frameskip, checked.most_frames
        self._frameskip = low if low == high else (low, high + 1)  # for wrappers that look there
        self._draws_frames = checked.coins == "ale_env" and checked.max_frameskip is not None
        self._numbers = find_numbers(checked, checked.game, envs.plugs)
        self._action_set = list(map(Action, self._numbers))  # the same
        self.metadata = self.metadata | {"render_fps": envs.metadata["render_fps"]}
        self.render_mode = render_mode
        self.action_space = envs.single_action_space
        self.observation_space = envs.single_observation_space

    @classmethod
    def vector_options(cls, maker: Maker, **options: Any) -> dict[str, Any]:
        """Convert the options of this environment to those of `vector_env`."""
        rules = (*_OUR_WORDS, *_OUR_WORDS.values(), "max_frameskip")  # None: as the name says
        options = {name: it for name, it in options.items() if it is not None or name not in rules}
        options, words = _spell_as_ale(maker.complete(options))
        options |= _split_range(options, words)
        options["observation"] = _choose_observation(options, maker)
        named = dict(cls._find_rules(options.pop("environment", None), maker))
        if {"frameskip", "max_frameskip"} & options.keys():
            named.pop("max_frameskip", None)
        elif "max_frameskip" in named:
            words["max_frameskip"] = "environment"
        plain = {"noop_max": 0, "use_fire_reset": False, "reward_clipping": False}
        options = plain | named | options
        if options.get("coins") is None:
            options["coins"] = cls._choose_coins(options)
        # ale-py's single environment makes something else of a seed.
        if options["coins"] in ("ale", "ale_linux"):
            options["coins"] = "ale_env"
        return options | {"_maker": maker.spelling(words)}

    @classmethod
    def _choose_coins(cls, options: dict[str, Any]) -> str:
        game = options.get("game") or cls.vector_env.default_game
        plug = cls.vector_env.plugs.get(str(game))
        if options.get("opponent", BUILTIN) != BUILTIN:
            return "pixelpong"
        return plug.coins if plug else "ale"

    @classmethod
    def _find_rules(cls, name: Any, maker: Maker) -> Mapping[str, Any]:
        """Return the rules behind a published name, by default the first."""
        names, advice = cls.environments
        if isinstance(name, str) and name in advice:
            text = unknown("environment", name, f"its rules are those of {advice[name]}")
            raise EnvError(f"{maker.name}: {text}")
        default = next(iter(names))
        type_: Any = Literal.__getitem__(tuple(names))
        return names[check_option("environment", type_, default if name is None else name, maker)]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start the first episode of `seed`; without a seed, start the next episode.

        Until you give a seed, the system supplies one. With ale-py's coins, ``info["seeds"]`` has
        the two numbers that ale-py makes of a seed: for the generator that wrappers draw from, and
        for the game. There are no `options`.
        """
        for name in options or {}:
            raise ConfigError(f"reset() has no option {name!r}. Leave it out.")
        seed = None if seed is None else read_seed(seed)
        if seed is None:
            observations, _ = self._envs.reset()
        else:  # wrappers draw their no-ops from the same numbers as with ale-py
            generator, _ = seeding.np_random(split_seed(seed)[0])
            observations, _ = self._envs._reset(seed, None, Kept(generator, seed))
        info = self._info()
        if seed is not None and self._envs._options.coins == "ale_env":
            info["seeds"] = tuple(map(np.uint32, split_seed(seed)))
        return observations[0], info

    def step(self, action: Any) -> Step:
        """Play one step with an index of `actions`, or with a continuous action, [3] float32."""
        chosen, shape = read_array("action", action, EnvError), self.action_space.shape
        is_continuous = isinstance(self.action_space, gymnasium.spaces.Box)
        if chosen.shape != shape or chosen.dtype.kind not in ("f" if is_continuous else "biu"):
            allowed = "a whole number"
            if shape:
                allowed = f"{shape[0]} floats" if is_continuous else f"{shape[0]} whole numbers"
            raise EnvError(must_be("action", allowed, repr(action)))
        with self._envs._turns.lock:
            drawn = self._draw_below(*self._frameskip) if self._draws_frames else ()
            observations, (reward,), (over,), (cut,), _ = self._envs._step(chosen[None], *drawn)
        return observations[0], float(reward), bool(over), bool(cut), self._info()

    def get_action_meanings(self) -> list[str]:
        """Return the names of the actions, as Gymnasium's Atari environments do.

        >>> SingleEnv(game="breakout").get_action_meanings()
        ['NOOP', 'FIRE', 'RIGHT', 'LEFT']
        """
        return [ACTION_NAMES[number] for number in self._numbers]

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """Return the action for each combination of keys, for `gymnasium.utils.play`.

        As in ale-py: w, a, s, d, the space bar for the button, and e for no action.

        >>> SingleEnv(game="breakout").get_keys_to_action()
        {('e',): 0, (' ',): 1, ('d',): 2, ('a',): 3}
        """
        if isinstance(self.action_space, gymnasium.spaces.Box):
            raise EnvError("Continuous actions have no keys; leave out continuous.")
        return {KEYS[number]: index for index, number in enumerate(self._numbers)}

    def render(self) -> NDArray[np.uint8] | None:
        """Return the newest frame, [210, 160, 3] uint8, if ``render_mode`` is ``"rgb_array"``."""
        frames = self._envs.render()
        return frames[0] if frames else None

    def clone_state(self, include_rng: bool = True) -> AleState:
        """Return the state on which the game's future depends, for `restore_state`.

        `np_random` is no part of it, from which ale-py's coins draw a range of frames.

        Args:
            include_rng: with the generators and the held action, so that the same frames will be
                sticky. Without them, ale-py's default, it is ``ale.cloneState()``, and the game
                keeps those that it has when it continues from the state.
        """
        if not include_rng:
            return self.ale.cloneState()
        return AleState(self._envs.clone_state(), self._envs._options.all_flavours[0])

    def restore_state(self, state: Any) -> None:
        """Continue from a state of this game, or of another game with the same options.

        Raises:
            ConfigError: the state does not fit this game; nothing has changed.
        """
        self.ale.restoreState(state)

    def _info(self) -> dict[str, Any]:
        """Return what ale-py's environment reports, and what the game's `Plug` adds."""
        info: dict[str, Any] = {
            "lives": self.ale.lives(),
            "episode_frame_number": self.ale.getEpisodeFrameNumber(),
            "frame_number": self.ale.getFrameNumber(),
        }
        if self._envs._options.ram_info:
            info["ram"] = self.ale.getRAM()
        if plug := self._envs.plugs.get(self._envs.game_names[0]):
            info |= plug.describe(self._envs.games[0])
        return info


def _choose_observation(options: dict[str, Any], maker: Maker) -> Any:
    """Take ale-py's word for the observation out of the options; return ours."""
    ours, theirs = options.get("observation"), options.pop("obs_type", None)
    if theirs is None:
        return "frame" if ours is None else ours
    if ours is not None:
        raise EnvError(f"{maker.name}: obs_type is observation; leave out obs_type or observation.")
    return OBS_TYPES[check_option("obs_type", ObsType, theirs, maker)]


def _split_range(options: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    """Return the options for a `frameskip` of two numbers, as ale-py has it, the end left out."""
    pair = options.get("frameskip")
    if not isinstance(pair, tuple) or "frameskip" not in words:
        return {}
    if "max_frameskip" in options:
        raise EnvError("frameskip has a range already; leave out max_frameskip.")
    is_sound = len(pair) == 2 and all(
        isinstance(it, int | np.integer) and not isinstance(it, bool) for it in pair
    )
    if not is_sound or not 0 < pair[0] < pair[1]:
        allowed = "a whole number, or two: the fewest frames, and one more than the most"
        raise EnvError(must_be("frameskip", allowed, pair))
    return {"frameskip": pair[0], "max_frameskip": pair[1] - 1}


def _spell_as_ale(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the options in ale-py's words, and those of these words that the caller has used."""
    words = {}
    for ours, theirs in _OUR_WORDS.items():
        if {ours, theirs} <= options.keys():
            raise EnvError(f"{theirs} is {ours}; leave out one of the two.")
        if theirs in options:
            words[theirs] = theirs
        elif ours in options:
            options[theirs] = options.pop(ours)
    return options, words
