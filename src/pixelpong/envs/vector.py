"""Many Atari games as one environment; a step of all games is one compiled call per thread.

A game is a row in a few arrays, so a state is a copy of them.

Ctrl-C may come at any moment. Before its round starts, a call changes only data that is recomputed
from the state. Once the round has started, it is played to its end, if necessary by the next call.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.atari.cartridges import cartridge
from pixelpong.atari.machine import WIDTH
from pixelpong.atari.palette import PALETTES
from pixelpong.config.protocols import FrameLimit, FrameSkip
from pixelpong.env.duel import MODE
from pixelpong.env.field import FIELD_SIZE
from pixelpong.envs.actions import find_moves
from pixelpong.envs.coins import BLOCK, Coins
from pixelpong.envs.opponents import Opponents
from pixelpong.envs.options import (
    Actions,
    Autoreset,
    CoinsName,
    EnvOptions,
    Height,
    Noops,
    Observation,
    Stack,
    Threads,
    Width,
    check_options,
    hash_rules,
    unknown_option,
)
from pixelpong.envs.seeds import read_seeds
from pixelpong.errors import ConfigError, did_you_mean, must_be, unknown
from pixelpong.games.console import FIRE, PONG, Rules
from pixelpong.games.games import Games
from pixelpong.games.memory import State
from pixelpong.games.pictures import View
from pixelpong.games.turns import Workers
from pixelpong.items import BUILTIN, SELF
from pixelpong.kernels.stepping import Results
from pixelpong.machine import count_cores
from pixelpong.schema import Count, Number, Share

Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]


class VectorEnv(gymnasium.vector.VectorEnv[NDArray[Any], NDArray[Any], NDArray[Any]]):
    """Many games of one cartridge, as a replacement for ale-py's ``AtariVectorEnv``.

    The options have the same names and defaults; the same seed and actions give the same bytes.

    Args:
        num_envs: number of games.
        observation: ``"atari"``, [4, 84, 84] uint8, the last four pictures, each the maximum of two
            grey frames, reduced in size; or ``"frame"``, and for Pong alone ``"pixels"`` or
            ``"field"``, as in `pixelpong.make_env`.
        game: the cartridge, by ale-py's name, such as ``"ms_pacman"``.
        actions, opponent: for Pong alone, as in `pixelpong.make_env`. With the opponent ``"self"``,
            actions [N, 2] play the right and the left side.
        coins: what decides which frames are sticky. ``"ale"``: ale-py's generator, the default.
            ``"pixelpong"``: the generators of `pixelpong.evaluate`; the default with an opponent or
            `max_frameskip`, which ale-py does not have.
        num_threads: number of threads; 0 or None: one per core. It does not affect the results.
        thread_affinity_offset: the core of the first thread, which is the caller's and stays free;
            the others stay on the cores after it. −1: all are free.
        batch_size: must be 0 or `num_envs`.
        copy: False reuses one array, so each step overwrites the observations of the last one.
        render_mode: ``"rgb_array"`` for `render`, or None.
        autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
        frameskip, max_frameskip: frames per step, drawn from this range if both are given.
        repeat_action_probability: the probability that a frame keeps the held action.
        max_num_frames_per_episode: frames after which an episode is cut off.
        noop_max: an episode starts with fewer than this many frames without a press, which do not
            count. If a game ends in them, they continue in another one.
        use_fire_reset: press the button in the first frame of an episode, if the game uses it.
        episodic_life: a lost life ends the episode, and the next one starts with a new game.
        life_loss_info: a lost life is reported as an end, but the game goes on.
        reward_clipping: limit rewards to −1, 0 and 1.
        full_action_space: use all actions of the console.
        img_height, img_width, grayscale, stack_num, maxpool: only for ``"atari"``.

    Raises:
        ConfigError: an option is unknown, its value out of range, or it would change nothing.
        EmulatorError: there is no such game, it is not covered, or its ROM is not installed.

    >>> envs = VectorEnv(3, num_threads=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.array([0, 2, 3]))
    >>> observations.shape, rewards.tolist()
    ((3, 4, 84, 84), [0, 0, 0])
    """

    maker: ClassVar = "make_vec"  # the name of the called function, for messages

    def __init__(  # noqa: PLR0913 - most are AtariVectorEnv's
        self,
        num_envs: Number = 1,
        observation: Observation = "atari",
        *,
        game: str = PONG,
        actions: Actions | None = None,
        opponent: str = BUILTIN,
        coins: CoinsName | None = None,
        num_threads: Threads = None,
        thread_affinity_offset: int = -1,
        batch_size: Count = 0,
        copy: bool = True,
        render_mode: Literal["rgb_array"] | None = None,
        autoreset_mode: Autoreset | AutoresetMode = "NextStep",
        frameskip: FrameSkip = 4,
        max_frameskip: FrameSkip | None = None,
        repeat_action_probability: Share = 0.0,
        max_num_frames_per_episode: FrameLimit = 108_000,
        noop_max: Noops = 30,
        use_fire_reset: bool = True,
        episodic_life: bool = False,
        life_loss_info: bool = False,
        reward_clipping: bool = True,
        full_action_space: bool = False,
        img_height: Height = 84,
        img_width: Width = 84,
        grayscale: bool = True,
        stack_num: Stack = 4,
        maxpool: bool = True,
        **unknown_options: Any,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "unknown_options")}
        for name in unknown_options:
            raise unknown_option(name, self.maker)
        self._options = options = check_options(given, self.maker)
        self.num_envs, self.observation = options.num_envs, options.observation
        self.game = options.game
        self.autoreset_mode = AutoresetMode(options.autoreset_mode)
        self.render_mode = options.render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / options.most_frames}
        self.metadata["autoreset_mode"] = self.autoreset_mode
        self._opponents = Opponents(options.opponent, options.num_envs)
        self.moves = find_moves(options)  # the console's action for each index
        self._view = _make_view(options)
        self._make_spaces()
        self._make_games()

    def _make_spaces(self) -> None:
        options, rows = self._options, self._view.rows
        colours = () if options.grayscale else (3,)
        field, frame = (FIELD_SIZE, FIELD_SIZE), (rows, WIDTH, 3)
        picture = options.stack_num, options.img_height, options.img_width, *colours
        boxes: dict[str, tuple[Any, ...]] = {
            "atari": (0, 255, picture, np.uint8), "frame": (0, 255, frame, np.uint8),
            "field": (0, 1, field, np.uint8), "pixels": (-1, 1, field, np.float32),
        }  # fmt: skip
        self.single_observation_space = gymnasium.spaces.Box(*boxes[self.observation])
        self.single_action_space: gymnasium.spaces.Space[Any] = (
            gymnasium.spaces.MultiDiscrete([len(self.moves)] * 2)
            if options.opponent == SELF
            else gymnasium.spaces.Discrete(len(self.moves))
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _make_games(self) -> None:
        """Make the games and the arrays of their next orders."""
        options, size, mode = self._options, self.num_envs, self.autoreset_mode
        self._games = games = Games(
            size,
            _make_rules(options, self.moves),
            self._view,
            workers=Workers(options.num_threads or count_cores(), options.thread_affinity_offset),
            num_uniforms=BLOCK if options.coins_name == "pixelpong" else 1,
            autoresets=_AUTORESETS[mode],
            rules_hash=hash_rules(options, self._opponents.fingerprint.encode()),
            has_opponents=bool(self._opponents),
        )
        self.games, self._orders, self._turns = games.rows, games.orders, games.turns
        self._moves = self._orders.moves
        self._opponents.sit_down(games)
        sticky = options.repeat_action_probability > 0
        needs_coins = sticky or options.max_frameskip is not None or self._opponents
        is_ours = options.coins_name == "pixelpong"
        self._coins = Coins(games) if needs_coins and is_ours else None
        self._env_ids = np.arange(size, dtype=np.int32)
        self._observations = self._empty(size)
        # The last observations of episodes whose next episode started in the same step.
        self._final = self._empty(size if mode == AutoresetMode.SAME_STEP else 0)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode in all games, or in those marked by ``options["reset_mask"]``, [N] bool.

        `seed` is one number, from which the games' seeds are consecutive, or one number for each
        game that is reset. A seed starts its first episode; without one, the next episode starts.
        """
        with self._turns.lock:
            self._turns.settle()
            mask = self._read_mask(options)
            which = np.flatnonzero(mask)
            if seed is None and not self._is_seeded:
                seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
            self._orders.seeds[which] = -1 if seed is None else read_seeds(seed, len(which))
            self._moves[:, 0] = np.where(mask, kernels.RESET, kernels.LEAVE)
            results = self._play()
            return self._observations, self._info(results)

    def step(self, actions: NDArray[Any]) -> Step:
        """Play a step of each game with an action, [N] indices; with ``opponent="self"`` [N, 2].

        Returns the observations, the rewards [N] int32, whether each episode is over and whether
        the frame limit cut it off, [N] bool each, and infos.
        """
        with self._turns.lock:
            self._turns.settle()
            numbers = self._read_actions(actions)
            mode = self.autoreset_mode
            if not self._is_seeded or (
                mode == AutoresetMode.DISABLED and not self.games["is_on"].all()
            ):
                raise ConfigError("No episode is in progress: call reset() before step().")
            if self._coins:
                self._coins.draw()
            moves = self._moves[:, 0] if numbers.ndim == 1 else self._moves
            np.take(self.moves, numbers, out=moves, mode="clip")
            if self._opponents:
                self._opponents.decide(self._games, self.games["is_on"] != 0)
            self._orders.seeds[:] = -1
            results = self._play()
            infos = self._info(results)
            if mode == AutoresetMode.SAME_STEP:
                infos |= self._final_info(results)
            ends = results.is_over, results.is_cut
            return self._observations, results.rewards, *ends, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The newest frames, [rows, 160, 3] uint8 each, if ``render_mode`` is ``"rgb_array"``.

        A game has 210 rows; a European one has 250.
        """
        with self._turns.lock:
            self._turns.settle()
            return (
                tuple(PALETTES[self._view.palette][self._games.frames])
                if self.render_mode
                else None
            )

    def clone_state(self) -> State:
        """The state on which the future of all games depends, for `restore_state`."""
        with self._turns.lock:
            self._turns.settle()
            return self._games.clone()

    def restore_state(self, state: State) -> None:
        """Continue from a state of these games, or of the same number with the same options.

        Raises:
            ConfigError: the state does not fit these games; nothing has changed.
        """
        with self._turns.lock:
            self._turns.settle()
            self._games.restore(state)

    def close_extras(self, **_: Any) -> None:
        """End the threads."""
        with self._turns.lock:
            self._turns.close()

    def __getstate__(self) -> tuple[Any, ...]:
        return self._options, self.clone_state()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        options, memory = state
        self.__init__(**vars(options))  # type: ignore[misc]
        self.restore_state(memory)

    def _play(self) -> Results:
        """Carry out the orders."""
        if self.closed:
            raise ConfigError("The environment is closed; make a new one.")
        if self._options.copy:
            self._observations = self._empty(self.num_envs)
        return self._games.play(self._observations, self._final)

    # --- orders ---

    @property
    def _is_seeded(self) -> bool:
        return bool(self.games["episode"][0] >= 0)

    def _read_mask(self, options: Any) -> NDArray[np.bool_]:
        """Which games to reset, from the `options` of `reset`."""
        size, known = self.num_envs, ("reset_mask",)
        if not isinstance(options, dict | None):
            raise ConfigError(must_be("options", "a dict", repr(options)))
        for name in (options or {}).keys() - set(known):
            advice = did_you_mean(name, known, "there is reset_mask alone")
            raise ConfigError(unknown("option of reset", name, advice))
        mask = np.asarray((options or {}).get("reset_mask", np.ones(size, np.bool_)))
        if mask.dtype != np.bool_ or mask.shape != (size,):
            raise ConfigError(must_be("reset_mask", f"{size} booleans", repr(mask)))
        if not (self._is_seeded or mask.all()):
            raise ConfigError("The first reset() must start all games. Leave out reset_mask.")
        return mask

    def _read_actions(self, actions: Any) -> NDArray[np.integer[Any]]:
        """The actions as an array of valid indices."""
        numbers, count = np.asarray(actions), len(self.moves)
        if numbers.dtype == np.bool_:
            numbers = numbers.astype(np.int64)
        if numbers.shape != self.action_space.shape or numbers.dtype.kind not in "iu":
            allowed = f"an array of whole numbers, {list(self.action_space.shape or ())}"
            raise ConfigError(must_be("actions", allowed, f"{numbers.dtype} {list(numbers.shape)}"))
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
            is_agents = self.game == PONG and count < 6 and 0 <= numbers.min() <= numbers.max() < 6
            advice = "pixelpong's agents need actions='six'" if is_agents else ""
            allowed = f"from 0 to {count - 1}"
            raise ConfigError(must_be("actions", allowed, numbers.tolist(), advice))
        return numbers

    def _empty(self, size: int) -> NDArray[Any]:
        space = self.single_observation_space
        return np.empty((size, *(space.shape or ())), space.dtype)

    def _final_info(self, results: Results) -> dict[str, Any]:
        """The last observations of the ended episodes, if there are any."""
        ended = results.is_over | results.is_cut
        if not ended.any():
            return {}
        final = self._observations.copy()
        final[ended] = self._final[ended]
        return {"final_obs": final, "_final_obs": ended}

    def _info(self, results: Results) -> dict[str, Any]:
        return {
            "env_id": self._env_ids.copy(),
            "lives": results.lives,
            "frame_number": results.total_frames,
            "episode_frame_number": results.episode_frames,
        }


# When the next episode starts, for `Games`.
_AUTORESETS = {
    AutoresetMode.DISABLED: kernels.NEVER,
    AutoresetMode.NEXT_STEP: kernels.NEXT_STEP,
    AutoresetMode.SAME_STEP: kernels.SAME_STEP,
}


def _make_rules(options: EnvOptions, moves: NDArray[np.int64]) -> Rules:
    sticky, is_duel = options.repeat_action_probability, options.opponent != BUILTIN
    is_ale = options.coins_name == "ale"
    if is_ale:  # it keeps the probability in single precision
        sticky = float(np.float32(sticky))
    return Rules(
        (options.frameskip, options.most_frames),
        options.max_num_frames_per_episode,
        sticky=(sticky, sticky),
        num_sides=1 + is_duel,
        mode=MODE if is_duel else 0,
        game=options.game,
        fires_first=options.use_fire_reset and not is_duel and FIRE in moves,
        max_noops=options.noop_max,
        tosses_coins=is_ale and sticky > 0,
        ends_at_lost_life=options.episodic_life,
        tells_lost_life=options.life_loss_info,
        clips_rewards=options.reward_clipping,
    )


def _make_view(options: EnvOptions) -> View:
    facts = cartridge(options.game)
    keeps_frames = options.observation == "frame" or options.render_mode is not None
    has_opponents = options.opponent not in (BUILTIN, SELF)
    return View(
        options.observation,
        keeps_frames=keeps_frames or has_opponents,
        height=options.img_height,
        width=options.img_width,
        channels=1 if options.grayscale else 3,
        stack=options.stack_num,
        takes_two=options.observation == "atari" and options.maxpool,
        rows=facts.rows,
        palette=facts.palette,
    )
