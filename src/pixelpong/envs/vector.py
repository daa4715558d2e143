"""Many games of Pong as one environment; a step of all games is one compiled call per thread.

A game is a row in a few arrays, so a state is a copy of them. Its sticky frames are drawn as in
`pixelpong.evaluate`: game i has the seed S + i, whose k-th episode has generator k.

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
from pixelpong.agent.choice import open_agent
from pixelpong.atari.machine import ROWS, WIDTH
from pixelpong.atari.palette import PALETTE
from pixelpong.config.protocols import FrameLimit, FrameSkip
from pixelpong.env.duel import MODE
from pixelpong.env.field import FIELD_SIZE
from pixelpong.env.preprocess import mirror
from pixelpong.envs.actions import ACTION_SETS, ALL_ACTIONS, DUEL_ACTIONS, SOLO_ACTIONS
from pixelpong.envs.options import (
    Actions,
    Autoreset,
    Height,
    Observation,
    Stack,
    Waits,
    Width,
    check_options,
    hash_rules,
)
from pixelpong.envs.seeds import find_wait, read_seeds
from pixelpong.errors import ConfigError, did_you_mean, must_be, unknown
from pixelpong.games.console import Rules
from pixelpong.games.games import Games
from pixelpong.games.memory import State
from pixelpong.games.pictures import View
from pixelpong.items import BUILTIN, SELF
from pixelpong.kernels.stepping import Results
from pixelpong.machine import count_cores
from pixelpong.run.arrays import fingerprint
from pixelpong.schema import Number, Share
from pixelpong.seeding import make_rng

Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]

_BLOCK = 128  # number of steps for which a game's random numbers are drawn at once


class PongVectorEnv(gymnasium.vector.VectorEnv[NDArray[Any], NDArray[Any], NDArray[Any]]):
    """Many games of Pong, as a replacement for ale-py's ``AtariVectorEnv("pong", num_envs)``.

    The options have the same names and defaults, and the same actions give the same bytes. Only
    sticky frames differ, because they come from our own generators.

    Args:
        num_envs: number of games.
        observation: ``"atari"``, [4, 84, 84] uint8, the last four pictures, each the maximum of two
            grey frames, reduced in size; or ``"pixels"``, ``"field"`` or ``"frame"``, as in
            `pixelpong.make_env`.
        actions, opponent: as in `pixelpong.make_env`. With the opponent ``"self"``, actions [N, 2]
            play the right and the left side.
        num_threads: number of threads, by default one per core. It does not affect the results.
        copy: False reuses one array, so each step overwrites the observations of the last one.
        render_mode: ``"rgb_array"`` for `render`, or None.
        autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
        frameskip, max_frameskip: frames per step, drawn from this range if both are given.
        repeat_action_probability: the probability that a frame keeps the held action.
        max_num_frames_per_episode: frames after which an episode is cut off.
        noop_max: an episode starts with fewer than this many frames without a press, which do not
            count. If a game ends in them, they continue in another one.
        use_fire_reset: press the button in the first frame of an episode.
        reward_clipping: has no effect, because a step has at most one point.
        full_action_space: use all eighteen actions of the console.
        img_height, img_width, grayscale, stack_num, maxpool: only for ``"atari"``.
        unused: options of AtariVectorEnv that have no effect on Pong; only their defaults are
            accepted.

    Raises:
        ConfigError: an option is unknown, its value out of range, or it would change nothing.
        EmulatorError: the emulator or its game is not installed.

    >>> envs = PongVectorEnv(3, num_threads=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.array([0, 2, 3]))
    >>> observations.shape, rewards.tolist()
    ((3, 4, 84, 84), [0.0, 0.0, 0.0])
    """

    maker: ClassVar = "make_vec"  # the name of the called function, for messages

    def __init__(  # noqa: PLR0913 - most are AtariVectorEnv's
        self,
        num_envs: Number = 1,
        observation: Observation = "atari",
        *,
        actions: Actions = "six",
        opponent: str = BUILTIN,
        num_threads: Number | None = None,
        copy: bool = True,
        render_mode: Literal["rgb_array"] | None = None,
        autoreset_mode: Autoreset | AutoresetMode = "NextStep",
        frameskip: FrameSkip = 4,
        max_frameskip: FrameSkip | None = None,
        repeat_action_probability: Share = 0.0,
        max_num_frames_per_episode: FrameLimit = 108_000,
        noop_max: Waits = 30,
        use_fire_reset: bool = True,
        reward_clipping: bool = True,
        full_action_space: bool = False,
        img_height: Height = 84,
        img_width: Width = 84,
        grayscale: bool = True,
        stack_num: Stack = 4,
        maxpool: bool = True,
        **unused: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "unused")}
        self._options = options = check_options(given, unused, self.maker)
        self.num_envs, self.observation = options.num_envs, options.observation
        self.autoreset_mode = AutoresetMode(options.autoreset_mode)
        self.render_mode, self._is_duel = options.render_mode, options.opponent != BUILTIN
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / options.most_frames}
        self.metadata["autoreset_mode"] = self.autoreset_mode
        numbers = DUEL_ACTIONS if self._is_duel else SOLO_ACTIONS
        chosen = ALL_ACTIONS if options.full_action_space else ACTION_SETS[options.actions]
        self.moves = np.array([numbers[k] for k in chosen])  # the console's action for each index
        agent = None if opponent in (BUILTIN, SELF) else open_agent(opponent)[1]
        self._opponents = [agent.make_network() for _ in range(num_envs)] if agent else []
        opposing = fingerprint(agent.params) if agent else opponent
        self._make_spaces()
        self._make_games(hash_rules(options, opposing.encode()))

    def _make_spaces(self) -> None:
        options = self._options
        colours = () if options.grayscale else (3,)
        field, frame = (FIELD_SIZE, FIELD_SIZE), (ROWS, WIDTH, 3)
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

    def _make_games(self, rules_hash: bytes) -> None:
        """Make the games and the arrays of their next orders."""
        options, size = self._options, self.num_envs
        sticky, has_opponents = options.repeat_action_probability, bool(self._opponents)
        is_same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        rules = Rules(
            (options.frameskip, options.most_frames),
            options.max_num_frames_per_episode,
            sticky=(sticky, sticky),
            num_sides=1 + self._is_duel,
            mode=MODE if self._is_duel else 0,
            fires_first=options.use_fire_reset and not self._is_duel,
            max_waits=options.noop_max,
        )
        keeps_frames = self.observation == "frame" or self.render_mode is not None
        view = View(
            self.observation,
            keeps_frames=keeps_frames or has_opponents,
            height=options.img_height,
            width=options.img_width,
            channels=1 if options.grayscale else 3,
            stack=options.stack_num,
            takes_two=self.observation == "atari" and options.maxpool,
        )
        self._games = games = Games(
            size,
            rules,
            view,
            num_threads=options.num_threads or count_cores(),
            num_uniforms=_BLOCK,
            autoresets=is_same_step,
            rules_hash=rules_hash,
            has_opponents=has_opponents,
        )
        self.games, self._orders, self._turns = games.rows, games.orders, games.turns
        self._is_on, self._episodes = self.games["is_on"], self.games["episode"]
        self._drawn = np.full((size, 3), -1)  # seed, episode and block of the current uniforms
        draws_frames = options.frameskip < options.most_frames
        self._needs_uniforms = sticky > 0 or draws_frames or has_opponents
        for i, network in enumerate(self._opponents):
            network.stream = games.remembered[i : i + 1]
        self._observations = self._empty(size)
        # The last observations of episodes whose next episode started in the same step.
        self._final = self._empty(size if is_same_step else 0)

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
            if seed is None:
                self._plan(which)
            else:
                for i, each in zip(which, read_seeds(seed, len(which)), strict=True):
                    self._orders.begins[i] = each, 0, find_wait(each, 0, self._options.noop_max)
            self._orders.moves[:, 0] = np.where(mask, kernels.RESET, kernels.LEAVE)
            results = self._play()
            return self._observations, self._info(results)

    def step(self, actions: NDArray[Any]) -> Step:
        """Play a step of each game with an action, [N] indices; with ``opponent="self"`` [N, 2].

        Returns the observations, the rewards [N] float64, whether each episode is over and whether
        the frame limit cut it off, [N] bool each, and infos.
        """
        with self._turns.lock:
            self._turns.settle()
            numbers = self._read_actions(actions)
            is_on, mode = self._is_on != 0, self.autoreset_mode
            are_on = np.count_nonzero(is_on) == self.num_envs  # takes a third of the time of `all`
            if not self._is_seeded or (mode == AutoresetMode.DISABLED and not are_on):
                raise ConfigError("No episode is in progress: call reset() before step().")
            if self._needs_uniforms:
                self._draw()
            self._orders.moves[:, : numbers.ndim] = self.moves[numbers].reshape(self.num_envs, -1)
            self._decide(is_on)
            if not are_on:
                self._orders.moves[~is_on, 0] = kernels.RESET
                self._plan(np.flatnonzero(~is_on))
            if mode == AutoresetMode.SAME_STEP:
                self._plan(np.flatnonzero(self.games["may_end"]))
            results = self._play()
            infos = self._info(results)
            if mode == AutoresetMode.SAME_STEP:
                infos |= self._final_info(results)
            ends = results.is_over, results.is_cut
            return self._observations, results.rewards, *ends, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The newest frames, [210, 160, 3] uint8 each, if ``render_mode`` is ``"rgb_array"``."""
        with self._turns.lock:
            self._turns.settle()
            return tuple(PALETTE[self._games.frames]) if self.render_mode else None

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
        return bool(self._episodes[0] >= 0)

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
        if np.count_nonzero((numbers >= 0) & (numbers < count)) < numbers.size:
            is_agents = count < len(SOLO_ACTIONS) and 0 <= numbers.min() <= numbers.max() < 6
            advice = "pixelpong's agents need actions='six'" if is_agents else ""
            allowed = f"from 0 to {count - 1}"
            raise ConfigError(must_be("actions", allowed, numbers.tolist(), advice))
        return numbers

    def _decide(self, is_on: NDArray[np.bool_]) -> None:
        """Let the opponents choose their moves."""
        if self._opponents:
            self._games.remembered[:] = self._games.streams
        for i, network in enumerate(self._opponents):
            if is_on[i]:
                row = self.games["steps"][i] % _BLOCK
                uniform = self._orders.uniforms[i, row, self._orders.uniforms.shape[2] // 2]
                action = network.act(mirror(self._games.frames[i]), uniform)
                self._orders.moves[i, 1] = DUEL_ACTIONS[action]

    def _plan(self, which: NDArray[np.intp]) -> None:
        """Prepare the next episodes of these games."""
        for i in which:
            seed, episode = int(self.games["seed"][i]), int(self.games["episode"][i]) + 1
            if self._orders.begins[["seed", "episode"]][i].item() != (seed, episode):
                self._orders.begins[i] = (
                    seed,
                    episode,
                    find_wait(seed, episode, self._options.noop_max),
                )

    def _draw(self) -> None:
        """Draw random numbers for the games that have used up theirs."""
        games, uniforms = self.games, self._orders.uniforms
        wanted = np.stack([games["seed"], games["episode"], games["steps"] // _BLOCK], axis=1)
        is_on = (wanted != self._drawn).any(axis=1) & (games["is_on"] > 0)
        for i in np.flatnonzero(is_on):
            seed, episode, block = wanted[i].tolist()
            rng = make_rng(seed, "evaluate", 0, episode)
            rng.bit_generator.advance(block * uniforms[i].size)  # type: ignore[attr-defined]
            self._drawn[i] = -1
            rng.random(out=uniforms[i])
            self._drawn[i] = wanted[i]

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
            "env_id": np.arange(self.num_envs, dtype=np.int32),
            "lives": np.zeros(self.num_envs, np.int32),
            "frame_number": results.total_frames,
            "episode_frame_number": results.episode_frames,
        }
