"""Plays a game here and in ale-py at once, and compares every byte that a program receives.

`SideBySide` plays many games beside ale-py's AtariVectorEnv, `OneSideBySide` one game beside its
single environment. Both get the same options, seeds and actions. In each step all is compared:
observations, rewards, ends, every entry of the infos, and of each value its type and its shape; of
one game also what ``env.ale`` says. Of the last observations only the rows of games that started
anew are: AtariVectorEnv leaves the others as the memory was.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ale_py
import gymnasium
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from numpy.typing import NDArray

import pixelpong
from pixelpong.atari.envs.gym import id_of, make_theirs
from pixelpong.atari.machine.cartridges import cartridge

LONGEST = 60  # steps for which a game is played in one way
FIRE = 1  # its index in almost every set of actions


@dataclass
class Comparison:
    """What was compared, and the first differences; nothing is played after one."""

    steps: int = 0  # of all games together, like everything here
    ends: int = 0
    cuts: int = 0  # by the limit of frames
    rewarded: int = 0  # steps with a reward
    lives_lost: int = 0
    differences: list[str] = field(default_factory=list)

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(*(a + b for a, b in zip(*map(_values, (self, other)), strict=True)))


def _values(found: Comparison) -> list[Any]:
    return list(vars(found).values())


class _Both:
    """An environment of ours beside one of ale-py's."""

    ours: Any
    theirs: Any

    def __init__(self) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.found, self._when = Comparison(), "at first"

    def close(self) -> None:
        """Close both."""
        self.ours.close()
        self.theirs.close()

    def _differ(self, what: str) -> None:
        self.found.differences.append(f"{self._when}: {what}")

    def _count(self, rewards: Any, terminated: Any, truncated: Any, is_lost: Any) -> None:
        """Count what a step of some games was like."""
        found = self.found
        found.steps += np.size(rewards)
        found.ends += int(np.sum(terminated | truncated))
        found.cuts += int(np.sum(truncated))
        found.rewarded += int(np.count_nonzero(rewards))
        found.lives_lost += int(np.sum(is_lost))


class SideBySide(_Both):
    """A vector environment of ours beside one of ale-py's."""

    def __init__(self, game: str, num_envs: int, **options: Any) -> None:
        super().__init__()
        self._lives = np.zeros(num_envs)
        self._goes_on = options.get("life_loss_info") and not options.get("episodic_life")
        self.theirs = AtariVectorEnv(game, num_envs, **{"num_threads": 1} | options)
        self.ours = pixelpong.make_vec(num_envs, game=game, **{"num_threads": 2} | options)
        for space in ("action_space", "observation_space"):
            for name in (space, f"single_{space}"):
                if getattr(self.ours, name) != getattr(self.theirs, name):
                    self._differ(name)

    def reset(self, seed: Any = None, mask: Any = None) -> None:
        """Start episodes in all games or in those of a mask."""
        options = None if mask is None else {"reset_mask": mask}
        self._when = f"reset after {self.found.steps} steps"
        results = [it.reset(seed=seed, options=options) for it in (self.ours, self.theirs)]
        self._compare(("observations",), *results)
        self._lives = results[1][-1]["lives"]

    def step(self, actions: NDArray[Any]) -> None:
        """Play a step of all games."""
        self._when = f"step {self.found.steps // len(actions) + 1}"
        results = [it.step(actions.copy()) for it in (self.ours, self.theirs)]
        names = ("observations", "rewards", "terminated", "truncated")
        self._compare(names, *results)
        _, rewards, terminated, truncated, infos = results[1]
        self._count(rewards, terminated, truncated, infos["lives"] < self._lives)
        self._lives = infos["lives"]

    def play(self, seed: int, *, episodes: int = 5, steps: int = 1000) -> Comparison:
        """Play until this many episodes have ended, so many steps at most, or to a difference."""
        self.reset(seed)
        space, size = self.theirs.single_action_space, self.theirs.num_envs
        for actions in itertools.islice(choose_actions(space, size, seed), steps):
            if self.found.differences or self.found.ends >= episodes:
                break
            self.step(actions)
        return self.found

    def _compare(self, names: tuple[str, ...], ours: Any, theirs: Any) -> None:
        for name, our, their in zip(names, ours, theirs, strict=False):
            self._compare_arrays(name, our, their)
        our_infos, their_infos = ours[-1], theirs[-1]
        if our_infos.keys() != their_infos.keys():
            self._differ(f"infos has {sorted(our_infos)}, not {sorted(their_infos)}")
        for name in our_infos.keys() & their_infos.keys():
            which = self._find_new(*theirs[2:]) if name == "final_obs" else slice(None)
            self._compare_arrays(name, our_infos[name], their_infos[name], which)

    def _find_new(self, terminated: Any, truncated: Any, infos: dict[str, Any]) -> NDArray[Any]:
        """Which games have ended and started anew, not only lost a life."""
        is_lost = (infos["lives"] > 0) & (infos["lives"] < self._lives) & ~truncated
        return (terminated | truncated) & ~(is_lost & bool(self._goes_on))

    def _compare_arrays(self, name: str, our: Any, their: Any, which: Any = slice(None)) -> None:
        kinds = [(type(it), it.dtype, it.shape, it.flags.c_contiguous) for it in (our, their)]
        if kinds[0] != kinds[1]:
            self._differ(f"{name} is {our.dtype} {our.shape}, not {their.dtype} {their.shape}")
        elif not np.array_equal(our[which], their[which]):
            is_wrong = (our[which] != their[which]).reshape(len(our[which]), -1)
            games = np.flatnonzero(is_wrong.any(axis=1)).tolist()
            self._differ(f"{name} of games {games}, {is_wrong.sum()} values")


# What both say of a game, besides the results of a step.
_SAID = ("lives", "game_over", "game_truncated", "getFrameNumber", "getEpisodeFrameNumber")
_DRAWN = ("getRAM", "getScreen", "getScreenGrayscale", "getScreenRGB")
_OURS = {"frames", "points_won", "points_lost", "ram"}  # what we say besides; three of Pong


class OneSideBySide(_Both):
    """`make_env` beside the same game of ale-py's in Gymnasium."""

    def __init__(self, game: str, *, by_id: bool = False, **options: Any) -> None:
        """Make both; ours by its id if `by_id`."""
        super().__init__()
        self._lives = 0
        self._has_pictures = options.get("obs_type") != "ram" or bool(options.get("render_mode"))
        own = options | {"ram_info": True} | ({"coins": "ale"} if game == "pong" else {})
        if by_id:
            self.ours = gymnasium.make(f"pixelpong.envs:{id_of(game)}", **own).unwrapped
        else:
            self.ours = pixelpong.make_env(game=game, **own)
        self.theirs = make_theirs(game, disable_env_checker=True, **options).unwrapped
        for space in ("action_space", "observation_space"):
            if getattr(self.ours, space) != getattr(self.theirs, space):
                self._differ(space)
        if self.ours.get_action_meanings() != self.theirs.get_action_meanings():
            self._differ("get_action_meanings")
        for name in ("getMinimalActionSet", "getLegalActionSet"):
            our, their = (getattr(it.ale, name)() for it in self._each)
            if our != [each.value for each in their]:
                self._differ(name)

    @property
    def _each(self) -> tuple[Any, Any]:
        return self.ours, self.theirs

    def reset(self, seed: int | None = None) -> None:
        """Start an episode."""
        self._when = f"reset after {self.found.steps} steps"
        (our, info), (their, their_info) = (it.reset(seed=seed) for it in self._each)
        self._compare((our,), (their,), info, their_info)
        if len({int(it.np_random.integers(2**31)) for it in self._each}) > 1:
            self._differ("np_random")

    def step(self, action: Any) -> bool:
        """Play a step; return whether the episode has ended."""
        self._when = f"step {self.found.steps + 1}"
        (*ours, info), (*theirs, their_info) = (it.step(action) for it in self._each)
        self._compare(ours, theirs, info, their_info)
        _, reward, terminated, truncated = theirs
        self._count(reward, terminated, truncated, their_info["lives"] < self._lives)
        self._lives = their_info["lives"]
        return bool(terminated or truncated)

    def play(self, seed: int, *, episodes: int = 5, steps: int = 1000) -> Comparison:
        """As `SideBySide.play`; some episodes begin with a seed, and some before the last ends."""
        self.reset(seed)
        rng = np.random.default_rng(seed)
        for (action,) in itertools.islice(choose_actions(self.theirs.action_space, 1, seed), steps):
            if self.found.differences or self.found.ends >= episodes:
                break
            if self.step(action) or rng.random() < 0.002:
                self.reset(int(rng.integers(2**40)) if rng.random() < 0.3 else None)
        return self.found

    def _compare(self, ours: Any, theirs: Any, info: Any, their_info: Any) -> None:
        names = ("observation", "reward", "terminated", "truncated")
        for name, our, their in zip(names, ours, theirs, strict=False):
            self._compare_values(name, our, their)
        if info.keys() - _OURS != their_info.keys():
            self._differ(f"info has {sorted(info)}, not {sorted(their_info)}")
        for name in info.keys() & their_info.keys():
            self._compare_values(name, info[name], their_info[name])
        if "ram" in info:
            self._compare_values("info's ram", info["ram"], self.theirs.ale.getRAM())
        for name in _SAID + (_DRAWN if self._has_pictures else ("getRAM",)):
            self._compare_values(name, *(getattr(it.ale, name)() for it in self._each))
        self._compare_values("game_over", *(it.ale.game_over(False) for it in self._each))
        self._compare_values("render", *(it.render() for it in self._each if it.render_mode))

    def _compare_values(self, name: str, our: Any = None, their: Any = None) -> None:
        kinds = [(type(it), getattr(it, "dtype", 0), np.shape(it)) for it in (our, their)]
        if kinds[0] != kinds[1]:
            self._differ(f"{name} is {kinds[0]}, not {kinds[1]}")
        elif not np.array_equal(our, their):
            self._differ(f"{name}, {np.sum(our != their)} values")


def choose_actions(space: gymnasium.Space, size: int, seed: int) -> Iterator[NDArray[Any]]:
    """For ever, actions of `size` games by which games end and points are made.

    For a while each game gets a new action in every step, then holds one, then presses the button
    in every other step while it holds one, in an order drawn by lot.
    """
    rng = np.random.default_rng(seed)
    left, ways = np.zeros(size, int), np.zeros(size, int)
    held = _draw_actions(space, size, rng)
    for step in itertools.count():
        is_new, drawn = left == 0, _draw_actions(space, size, rng)
        left[is_new], ways[is_new] = rng.integers(1, LONGEST, (2, size))[:, is_new]
        ways[is_new] %= 3
        held[is_new | (ways == 0)] = drawn[is_new | (ways == 0)]
        actions = held.copy()
        actions[(ways == 2) & (step % 2 == 0)] = _fire(space)
        left -= 1
        yield actions


def _draw_actions(space: Any, size: int, rng: np.random.Generator) -> NDArray[Any]:
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(space.n, size=size)
    return rng.uniform(space.low, space.high, (size, *space.shape)).astype(space.dtype)


def _fire(space: Any) -> Any:
    return FIRE if isinstance(space, gymnasium.spaces.Discrete) else space.high


def compare(game: str, seed: int, *, episodes: int = 5, steps: int = 1000, **options: Any) -> Any:
    """Compare two games at once, see `SideBySide.play`."""
    both = SideBySide(game, options.pop("num_envs", 2), **options)
    found = both.play(seed, episodes=episodes, steps=steps)
    both.close()
    return found


def compare_one(
    game: str, seed: int, *, episodes: int = 5, steps: int = 1000, **options: Any
) -> Any:
    """Compare one game, see `OneSideBySide.play`."""
    both = OneSideBySide(game, **options)
    found = both.play(seed, episodes=episodes, steps=steps)
    both.close()
    return found


def is_refused(game: str, options: dict[str, Any], *, is_alone: bool = False) -> bool:
    """Whether the combination is one that is refused, because it would not be the same."""
    known = cartridge(game)
    limit = options.get("max_num_frames_per_episode", 108_000)
    return bool(
        (options.get("continuous") and len(known.legal_actions) < 18)
        or (is_alone and known.counted_frames and limit < known.counted_frames)
    )


_SIZES = [(84, 84), (210, 160), (64, 64), (97, 31), (210, 84), (100, 160), (83, 160), (20, 150)]


def draw_options(rng: np.random.Generator) -> dict[str, Any]:
    """Options of an environment, each with another value now and then."""

    def one_of(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    height, width = one_of(*_SIZES)
    return {
        "repeat_action_probability": one_of(0.0, 0.25, 0.25, 0.7),
        "autoreset_mode": one_of("NextStep", "SameStep"),
        "frameskip": one_of(1, 2, 3, 4, 4, 4, 5, 7),
        "max_num_frames_per_episode": one_of(108_000, 108_000, 300, 5001),
        "noop_max": one_of(0, 1, 30, 30, 300),
        "use_fire_reset": one_of(True, True, False),
        "episodic_life": one_of(False, False, True),
        "life_loss_info": one_of(False, False, True),
        "reward_clipping": one_of(True, False),
        "full_action_space": one_of(False, True),
        "img_height": height,
        "img_width": width,
        "grayscale": one_of(True, True, False),
        "stack_num": one_of(1, 2, 4, 4, 5),
        "maxpool": one_of(True, True, False),
        "num_threads": one_of(1, 2),
    }


def draw_options_of_one(rng: np.random.Generator) -> dict[str, Any]:
    """Options of a single environment, each with another value now and then."""

    def one_of(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    continuous = {"continuous": True, "continuous_action_threshold": one_of(0.5, 0.1, 0.9)}
    return {
        "by_id": one_of(True, False),
        "obs_type": one_of("rgb", "rgb", "grayscale", "ram"),
        "repeat_action_probability": one_of(0.0, 0.25, 0.25, 0.7),
        "frameskip": one_of(1, 2, 3, 4, 4, 5, 7),
        "max_num_frames_per_episode": one_of(108_000, 108_000, 1, 7, 200, 999),
        "render_mode": one_of(None, "rgb_array"),
        **one_of({}, {"full_action_space": True}, {"full_action_space": False}, continuous),
    }
