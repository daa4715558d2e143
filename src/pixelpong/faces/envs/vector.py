"""Many games of Pong as one environment: a step of all of them is one compiled call per thread.

A game is a row in a few arrays, so a state is a copy of them. Its sticky frames are drawn as in
`pixelpong.evaluate`: game i has the seed S + i, whose k-th episode has generator k.
"""

from __future__ import annotations

import functools
import threading
from queue import SimpleQueue
from typing import Annotated, Any, Literal, get_type_hints

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.agent.choice import open_agent
from pixelpong.atari.machine import FIELD_SIZE, MACHINE, ROWS, STATE, WIDTH
from pixelpong.atari.palette import PALETTE
from pixelpong.config import Option
from pixelpong.config.protocols import FrameLimit, FrameSkip
from pixelpong.env.native import not_covered
from pixelpong.env.preprocess import IS_ACTIVE, mirror
from pixelpong.errors import ConfigError, did_you_mean, expected
from pixelpong.faces.envs.cartridge import ACTION_SETS, PONG
from pixelpong.faces.envs.picture import COLOURS, GREYS, make_tables
from pixelpong.items import BUILTIN, SELF
from pixelpong.machine import count_cores
from pixelpong.schema import Count, Meta, Number, Share
from pixelpong.seeding import make_rng

Observation = Literal["atari", "pixels", "frame", "field"]
Actions = Literal["six", "three", "two"]
Autoreset = Literal["NextStep", "SameStep", "Disabled"]  # the values of `AutoresetMode`
Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]

# Options of AtariVectorEnv that Pong has no use for, with the values that change nothing.
_UNUSED = {
    "batch_size": 0, "thread_affinity_offset": -1, "continuous": False,
    "continuous_action_threshold": 0.5, "episodic_life": False, "life_loss_info": False,
}  # fmt: skip
_BLOCK = 128  # steps of a game whose numbers are drawn at once


class PongVectorEnv(gymnasium.vector.VectorEnv[NDArray[Any], NDArray[Any], NDArray[Any]]):
    """Many games of Pong, in place of ale-py's ``AtariVectorEnv("pong", num_envs)``.

    Its options have their names and defaults here, and on the same actions all bytes are the same,
    except for sticky frames, which come from generators of our own.

    Args:
        num_envs: number of games.
        observation: ``"atari"``, [4, 84, 84] uint8, the last four pictures, each the maximum of two
            frames in grey, made smaller; or ``"pixels"``, ``"field"`` or ``"frame"``, as in
            `pixelpong.make_env`.
        actions, opponent: as in `pixelpong.make_env`. With the opponent ``"self"``, actions [N, 2]
            play the right and the left side.
        num_threads: by default one per core. The results do not depend on it.
        copy: False reuses the array of observations, so a step overwrites those of the last one.
        render_mode: ``"rgb_array"`` for `render`, or None.
        autoreset_mode: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"``, as in Gymnasium.
        frameskip, max_frameskip: frames per step, drawn from this range if there are two.
        repeat_action_probability: that a frame keeps the held action.
        max_num_frames_per_episode: frames after which an episode is cut off.
        noop_max: an episode begins with fewer frames without a press than this.
        use_fire_reset: the first frame of an episode has a press.
        reward_clipping: makes no difference, as a step has one point at most.
        full_action_space: all eighteen actions of the console.
        img_height, img_width, grayscale, stack_num, maxpool: of ``"atari"``.
        unused: options of AtariVectorEnv that Pong has no use for; only their defaults are
            accepted.

    Raises:
        ConfigError: an option is unknown, its value out of range, or Pong has no use for it.
        EmulatorError: the emulator or its game is not installed.

    >>> envs = PongVectorEnv(3, num_threads=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.array([0, 2, 3]))
    >>> observations.shape, rewards.tolist()
    ((3, 4, 84, 84), [0.0, 0.0, 0.0])
    """

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
        noop_max: Annotated[int, Meta(ge=0, le=10_000)] = 30,
        use_fire_reset: bool = True,
        reward_clipping: bool = True,
        full_action_space: bool = False,
        img_height: Annotated[int, Meta(ge=1, le=ROWS)] = 84,
        img_width: Annotated[int, Meta(ge=1, le=WIDTH)] = 84,
        grayscale: bool = True,
        stack_num: Annotated[int, Meta(ge=1, le=64)] = 4,
        maxpool: bool = True,
        **unused: Any,
    ) -> None:
        self._options = options = _check(dict(locals()))
        self.num_envs, self.kind = options["num_envs"], observation
        self.autoreset_mode = AutoresetMode(options["autoreset_mode"])
        self.render_mode, self._is_duel = render_mode, opponent != BUILTIN
        most = max(frameskip, max_frameskip or 0)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 60 / most}
        self.metadata["autoreset_mode"] = self.autoreset_mode
        numbers = PONG.duel_actions if self._is_duel else PONG.actions
        chosen = PONG.all_actions if full_action_space else ACTION_SETS[actions]
        self.moves = np.array([numbers[k] for k in chosen])  # the console's action of each
        self._no_move = numbers[0]
        _, agent = open_agent(opponent) if opponent not in (BUILTIN, SELF) else (None, None)
        self._opponents = [agent.make_network() for _ in range(num_envs)] if agent else []
        self._streams = np.zeros(len(self._opponents), kernels.STREAM)  # their memory
        for i, network in enumerate(self._opponents):
            network.stream = self._streams[i : i + 1]
        self._make_spaces()
        self._make_games(most)
        self._is_seeded = False

    def _make_spaces(self) -> None:
        it = self._options
        colours = () if it["grayscale"] else (3,)
        field, frame = (FIELD_SIZE, FIELD_SIZE), (ROWS, WIDTH, 3)
        picture = it["stack_num"], it["img_height"], it["img_width"], *colours
        boxes: dict[str, tuple[Any, ...]] = {
            "atari": (0, 255, picture, np.uint8), "frame": (0, 255, frame, np.uint8),
            "field": (0, 1, field, np.uint8), "pixels": (-1, 1, field, np.float32),
        }  # fmt: skip
        self.single_observation_space = gymnasium.spaces.Box(*boxes[self.kind])
        self.single_action_space: gymnasium.spaces.Space[Any] = (
            gymnasium.spaces.MultiDiscrete([len(self.moves)] * 2)
            if it["opponent"] == SELF
            else gymnasium.spaces.Discrete(len(self.moves))
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _make_games(self, most_frames: int) -> None:
        """Make the games: all that they depend on, and what the threads need to play them."""
        it, size, sides, kind = self._options, self.num_envs, 1 + self._is_duel, self.kind
        self.places = np.zeros(size, kernels.PLACE)
        self._consoles = np.zeros((size, STATE.itemsize), np.uint8)
        self._fields = np.zeros((size, 2, FIELD_SIZE, 2), np.uint64)
        has_frames = kind == "frame" or self._opponents or self.render_mode is not None
        self._frames = np.zeros((size * bool(has_frames), ROWS, WIDTH), np.uint8)
        self._levels = GREYS if it["grayscale"] else COLOURS
        pixels = it["img_height"] * it["img_width"] * len(self._levels)
        is_atari = size * (kind == "atari")
        self._stacks = np.zeros((is_atari, it["stack_num"], pixels), np.uint8)
        self._kept = np.zeros((is_atari, len(self._levels), ROWS, WIDTH), np.uint8)

        self._draws = np.zeros((size, _BLOCK, sides * (2 + most_frames)))
        self._drawn = np.full((size, 3), -1)  # what these are for: seed, episode, block
        self._has_coins = it["repeat_action_probability"] > 0 or it["frameskip"] < most_frames
        self._game = PONG.load()
        self._start = PONG.start(self._game, PONG.modes[self._is_duel]).view(np.uint8)
        num_threads = min(it["num_threads"] or count_cores(), size)
        self._threads = [self._make_thread(most_frames) for _ in range(num_threads)]
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        self._answers: SimpleQueue[BaseException | None] = SimpleQueue()
        self._num_helpers = 0
        self._out = self._empty()
        self._next = np.zeros((size, sides), np.int64)

    def _make_thread(self, most_frames: int) -> tuple[Any, ...]:
        """Make what a kernel needs of its own in each thread."""
        it, at = self._options, MACHINE.fields["picture"][1]  # type: ignore[index]
        rooms = [kernels.unshared(8 + MACHINE.itemsize, dtype=np.uint8) for _ in range(2)]
        begin = -at % 8  # pictures are read as words
        machines = tuple(room[begin : begin + MACHINE.itemsize] for room in rooms)
        for machine in machines:
            machine[:] = self._start
        pictures = tuple(each[at : at + ROWS * WIDTH].reshape(ROWS, WIDTH) for each in machines)
        words = tuple(each.view(np.uint64) for each in pictures)
        actions = kernels.unshared(max(most_frames, it["noop_max"], 1), dtype=np.uint8)
        rules = np.zeros(1, kernels.GAMES)
        rules[0] = (
            self._game.address, [each.ctypes.data for each in machines], actions.ctypes.data,
            it["frameskip"], most_frames, it["max_num_frames_per_episode"],
            it["repeat_action_probability"],
            PONG.fire if it["use_fire_reset"] and not self._is_duel else -1, self._no_move,
            1 + self._is_duel, self.kind == "atari" or len(self._frames) > 0,
            self.kind == "atari" and it["maxpool"],
        )  # fmt: skip
        height, width = it["img_height"], it["img_width"]
        sums = (kernels.unshared(size, dtype=np.float32) for size in (WIDTH, width, width))
        scratch = kernels.unshared(ROWS, dtype=np.uint8), *sums
        plane = kernels.unshared(height, width, dtype=np.uint8)
        levels = self._levels, np.arange(256, dtype=np.float32)
        kept = self._kept.view(np.uint64), self._kept
        tables = make_tables(height, width)
        atari = self._stacks, kept, words, levels, tables, scratch, plane
        view = {"atari": atari, "frame": self._frames.view(np.uint64)}.get(self.kind, IS_ACTIVE)
        field = machines[0].view(MACHINE)["field"][0]
        seen = pictures, field, self._fields, self._frames, PALETTE
        return rules, machines, actions, seen, view

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin an episode in all games, or in those of ``options["reset_mask"]``, [N] bool.

        `seed` is a number, from which the games count on, or one for each game that is reset. The
        first episode of a seed begins; without one the next episode.
        """
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_)))
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ConfigError(expected(f"reset_mask to be {self.num_envs} booleans", repr(mask)))
        if not (self._is_seeded or mask.all()):
            raise ConfigError("The first reset() must begin all games: leave out reset_mask.")
        which = np.flatnonzero(mask)
        if seed is None and not self._is_seeded:
            seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        if seed is not None:
            is_one, count = np.ndim(seed) == 0, len(which)
            seeds = [Option("seed", Count, 0).check(it, "reset") for it in np.atleast_1d(seed)]
            seeds = [seeds[0] + i for i in range(count)] if is_one else seeds
            if len(seeds) != count:
                raise ConfigError(expected(f"{count} seeds, one per game", len(seeds)))
            self.places["seed"][which], self.places["episode"][which] = seeds, -1
            self.places["total_frames"][which] = 0
            self._wait(which)
            self._is_seeded = True
        self._next[:, 0] = np.where(mask, kernels.RESET, kernels.LEAVE)
        return self._play(), self._info()

    def step(self, actions: NDArray[Any]) -> Step:
        """Play a step of each game with an action, [N] indices; with ``opponent="self"`` [N, 2].

        Returns the observations, rewards [N] float64, whether episodes were over or cut off by the
        limit of frames, [N] bool each, and infos.
        """
        numbers, count = np.asarray(actions), len(self.moves)
        if numbers.shape != self.action_space.shape or numbers.dtype.kind not in "iu":
            what = f"actions as an array of whole numbers, {list(self.action_space.shape or ())}"
            raise ConfigError(expected(what, f"{numbers.dtype} {list(numbers.shape)}"))
        if numbers.min() < 0 or numbers.max() >= count:
            advice = "pixelpong's agents need actions='six'"
            raise ConfigError(expected(f"actions from 0 to {count - 1}", numbers.tolist(), advice))
        is_on, mode = self.places["is_on"] > 0, self.autoreset_mode
        if not (self._is_seeded and (mode != AutoresetMode.DISABLED or is_on.all())):
            raise ConfigError("No episode is in progress: call reset() before step().")
        if self._has_coins or self._opponents:
            self._draw()
        self._next[:, : numbers.ndim] = self.moves[numbers].reshape(self.num_envs, -1)
        for i, network in enumerate(self._opponents):
            steps = self.places["steps"][i]
            if steps == 0:
                network.reset()
            draw = self._draws[i, steps % _BLOCK, self._draws.shape[2] // 2]
            self._next[i, 1] = PONG.duel_actions[network.act(mirror(self._frames[i]), draw)]
        self._next[~is_on, 0] = kernels.RESET
        observations = self._play()
        rewards = self.places["reward"].astype(np.float64)
        is_over, is_cut = self.places["is_over"] > 0, self.places["is_cut"] > 0
        if mode == AutoresetMode.SAME_STEP and (ended := is_over | is_cut).any():
            final = observations.copy()
            self._next[:, 0] = np.where(ended, kernels.RESET, kernels.LEAVE)
            observations = self._play()
            infos = self._info() | {"final_obs": final, "_final_obs": ended}
            return observations, rewards, is_over, is_cut, infos
        return observations, rewards, is_over, is_cut, self._info()

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """The newest frames, [210, 160, 3] uint8 each, if ``render_mode`` is ``"rgb_array"``."""
        return tuple(PALETTE[self._frames]) if self.render_mode else None

    def clone_state(self) -> tuple[NDArray[Any], ...]:
        """Everything that the future of all games depends on, for `restore_state`."""
        return tuple(each.copy() for each in self._memory())

    def restore_state(self, state: tuple[NDArray[Any], ...]) -> None:
        """Continue from a state of these games, or of as many others with the same options."""
        for ours, theirs in zip(self._memory(), state, strict=True):
            ours[...] = theirs
        self._is_seeded = True

    def close_extras(self, **_: Any) -> None:
        """End the threads."""
        while self._num_helpers:
            self._tasks.put(None)
            self._num_helpers -= 1

    def __getstate__(self) -> tuple[Any, ...]:
        return self._options, self.clone_state(), self._is_seeded

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        options, memory, is_seeded = state
        self.__init__(**options)  # type: ignore[misc]
        self.restore_state(memory)
        self._is_seeded = is_seeded

    def _memory(self) -> tuple[NDArray[Any], ...]:
        shown = self._fields, self._frames, self._stacks, self._kept
        return self.places, self._consoles, self._streams, *shown

    def _play(self) -> NDArray[Any]:
        """Carry out the next moves; return the observations."""
        if self._options["copy"]:
            self._out = self._empty()
        form = {"atari": self._stacks.shape[1:], "frame": (ROWS, 3 * WIDTH)}
        form_of_one = form.get(self.kind, (FIELD_SIZE, FIELD_SIZE))
        out = self._out.reshape(self.num_envs, *form_of_one)
        games, kernel = (self.places, self._consoles), kernels.STEPS[self.kind]
        count = len(self._threads)
        bounds = [self.num_envs * k // count for k in range(count + 1)]

        def play(k: int) -> None:
            own, first, last = self._threads[k], bounds[k], bounds[k + 1]
            kernel(games, self._next, self._draws, self._start, own, out, first, last)

        while self._num_helpers < count - 1:
            helper = threading.Thread(target=_help, args=(self._tasks, self._answers), daemon=True)
            helper.start()
            self._num_helpers += 1
        for k in range(1, count):
            self._tasks.put(functools.partial(play, k))
        try:
            play(0)
        finally:
            errors = [self._answers.get() for _ in range(1, count)]
        for error in filter(None, errors):
            raise error
        if self.places["fault"].any():
            raise not_covered(-int(self.places["fault"].min()))
        which = np.flatnonzero(self._next[:, 0] == kernels.RESET)
        self.places["episode"][which] += 1
        self._wait(which)
        return self._out

    def _wait(self, which: NDArray[np.intp]) -> None:
        """Decide with how many frames without a press the next episodes of these games begin.

        As ale-py on Linux does: the k-th episode takes the k-th number of C++'s ``mt19937``.
        """
        if self._options["noop_max"]:
            for i in which:
                place = self.places[i]
                twister = np.random.RandomState(int(place["seed"]) & 0xFFFFFFFF)
                numbers = twister.randint(2**32, size=place["episode"] + 2, dtype=np.uint32)
                place["waits"] = int(numbers[-1]) * self._options["noop_max"] >> 32

    def _draw(self) -> None:
        """Draw the numbers for the next steps of the games that have none left."""
        places = self.places
        wanted = np.stack([places["seed"], places["episode"], places["steps"] // _BLOCK], axis=1)
        is_on = (wanted != self._drawn).any(axis=1) & (places["is_on"] > 0)
        for i in np.flatnonzero(is_on):
            seed, episode, block = wanted[i].tolist()
            rng = make_rng(seed, "evaluate", 0, episode)
            rng.bit_generator.advance(block * self._draws[i].size)  # type: ignore[attr-defined]
            rng.random(out=self._draws[i])
            self._drawn[i] = wanted[i]

    def _empty(self) -> NDArray[Any]:
        return np.empty(self.observation_space.shape or (), self.single_observation_space.dtype)

    def _info(self) -> dict[str, Any]:
        return {
            "env_id": np.arange(self.num_envs, dtype=np.int32),
            "lives": np.zeros(self.num_envs, np.int32),
            "frame_number": self.places["total_frames"].astype(np.int32),
            "episode_frame_number": self.places["episode_frames"].astype(np.int32),
        }


def _help(tasks: SimpleQueue[Any], answers: SimpleQueue[BaseException | None]) -> None:
    """Carry out tasks until one is None; cheaper than a `ThreadPoolExecutor`, see docs/log.md."""
    for task in iter(tasks.get, None):
        try:
            answers.put(task())
        except BaseException as error:
            answers.put(error)


def _check(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that are unknown or out of range."""
    types = get_type_hints(PongVectorEnv.__init__, include_extras=True)
    types |= {"autoreset_mode": Autoreset}
    for name, value in options.pop("unused").items():
        if name not in _UNUSED:
            advice = did_you_mean(name, types, "see help(pixelpong.make_vec)")
            raise ConfigError(expected("the name of an option", repr(name), advice))
        if value != _UNUSED[name]:
            raise ConfigError(f"Pong has no use for {name}; leave it out.")
    del options["self"]
    return {
        name: Option(name, types[name], None).check(getattr(value, "value", value), "Pong")
        for name, value in options.items()
    }
