"""Plays a game here and on ale-py's AtariVectorEnv at once, and compares every byte they return.

Both get the same options, seeds and actions. In each step all is compared: observations, rewards,
ends, every entry of the infos, and of each array its type and its shape. Of the last observations
only the rows of games that started anew are: AtariVectorEnv leaves the others as the memory was.
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


class SideBySide:
    """A vector environment of ours beside one of ale-py's."""

    def __init__(self, game: str, num_envs: int, **options: Any) -> None:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.found, self._when, self._lives = Comparison(), "at first", np.zeros(num_envs)
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
        found = self.found
        found.steps += len(actions)
        self._when = f"step {found.steps // len(actions)}"
        results = [it.step(actions.copy()) for it in (self.ours, self.theirs)]
        names = ("observations", "rewards", "terminated", "truncated")
        self._compare(names, *results)
        _, rewards, terminated, truncated, infos = results[1]
        found.ends += int(np.sum(terminated | truncated))
        found.cuts += int(np.sum(truncated))
        found.rewarded += int(np.count_nonzero(rewards))
        found.lives_lost += int(np.sum(infos["lives"] < self._lives))
        self._lives = infos["lives"]

    def play(self, seed: int, *, episodes: int = 5, steps: int = 1000) -> Comparison:
        """Play until this many episodes have ended, so many steps at most, or to a difference."""
        self.reset(seed)
        for actions in itertools.islice(choose_actions(self.theirs, seed), steps):
            if self.found.differences or self.found.ends >= episodes:
                break
            self.step(actions)
        return self.found

    def close(self) -> None:
        """Close both."""
        self.ours.close()
        self.theirs.close()

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

    def _differ(self, what: str) -> None:
        self.found.differences.append(f"{self._when}: {what}")


def choose_actions(envs: gymnasium.vector.VectorEnv, seed: int) -> Iterator[NDArray[Any]]:
    """For ever, actions of an environment by which games end and points are made.

    For a while each game gets a new action in every step, then holds one, then presses the button
    in every other step while it holds one, in an order drawn by lot.
    """
    rng, size, space = np.random.default_rng(seed), envs.num_envs, envs.single_action_space
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
