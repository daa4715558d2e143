"""What a program gives to an environment: seeds of any size, masks and actions, checked."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.envs.errors import (
    EnvError,
    EnvIndexError,
    EnvOrderError,
    EnvTypeError,
    EnvValueError,
)
from pixelpong.atari.games.memory import read_array
from pixelpong.errors import did_you_mean, must_be, unknown

MOST_RADIUS = 90_000  # of a continuous action; beyond, ale-py's turn of a paddle overflows


def read_seed(seed: Any) -> int:
    """Check a seed, of any size, and return it as a Python number."""
    try:
        number = operator.index(seed.item() if hasattr(seed, "item") else seed)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(seed, bool | np.bool_):
        raise EnvValueError(must_be("seed", "a whole number of at least 0", repr(seed)))
    return number


def read_seeds(seed: Any, count: int, *, is_split: bool = False) -> list[int]:
    """Return the seeds of `count` games: consecutive from one number, or a number for each game.

    If they are split, the games get what ale-py's single environments make of these seeds.
    """
    if read_array("seed", seed, EnvValueError).ndim:
        seeds = [read_seed(each) for each in seed]
    else:
        first = read_seed(seed)
        seeds = [first + i for i in range(count)]
    if len(seeds) != count:
        what = f"{count} games need {count} seeds, not {len(seeds)}"
        raise EnvValueError(f"{what}: seed must have one entry per sub-environment to reset.")
    return [split_seed(each)[1] if is_split else _shorten(each) for each in seeds]


def _shorten(seed: int) -> int:
    """Return the seed itself, or, if it is longer, 63 bits that depend on all of it.

    >>> _shorten(3), _shorten(2**64 + 3) < 2**63
    (3, True)
    """
    if seed < 2**63:
        return seed
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))


def split_seed(seed: int) -> tuple[int, int]:
    """Return the two seeds that ale-py's single environments derive: Python's, and the game's.

    >>> split_seed(0)
    (2968811710, 3677149159)
    """
    own, its = np.random.SeedSequence(seed).generate_state(2).tolist()
    return own, its


def read_mask(options: Any, size: int, *, is_first: bool) -> NDArray[np.bool_]:
    """Read which games to reset from the `options` of `reset`; the first time it is all."""
    known = ("reset_mask",)
    if not isinstance(options, dict | None):
        raise EnvTypeError(must_be("options", "a dict", repr(options)))
    for name in (options or {}).keys() - set(known):
        advice = did_you_mean(name, known, "there is reset_mask alone")
        raise EnvError(unknown("option of reset", name, advice))
    given = (options or {}).get("reset_mask", np.ones(size, np.bool_))
    mask = read_array("reset_mask", given, EnvTypeError)
    if mask.dtype != np.bool_:
        raise EnvTypeError(must_be("reset_mask", "a boolean numpy array", repr(mask)))
    if mask.shape != (size,):
        raise EnvValueError(f"reset_mask must have shape ({size},), not {mask.shape}.")
    if is_first and not mask.all():
        raise EnvOrderError("The first reset() must reset every game. Leave out reset_mask.")
    return mask


def read_actions(
    actions: Any, shape: tuple[int, ...] | None, count: int, num_all: int
) -> NDArray[np.integer[Any]]:
    """Validate actions and return them as indices below `count`; the game has `num_all`."""
    numbers = read_array("actions", actions, EnvValueError)
    if numbers.dtype == np.bool_ or not numbers.dtype.isnative:
        numbers = numbers.astype(np.int64 if numbers.dtype.kind in "biu" else float)
    if numbers.shape != shape or numbers.dtype.kind not in "iu":
        allowed = f"an array of whole numbers, {list(shape or ())}"
        raise EnvValueError(must_be("actions", allowed, f"{numbers.dtype} {list(numbers.shape)}"))
    # A negative number is huge as one without a sign.
    if numbers.size and int(numbers.view(f"u{numbers.itemsize}").max()) >= count:
        is_left_out = count < num_all and 0 <= numbers.min() <= numbers.max() < num_all
        advice = f"leave out actions to have all {num_all}" if is_left_out else ""
        allowed = f"from 0 to {count - 1}"
        raise EnvIndexError(must_be("actions", allowed, numbers.tolist(), advice))
    return numbers


def read_continuous(actions: Any, shape: tuple[int, ...] | None) -> NDArray[np.float32]:
    """Validate continuous actions: radius, angle and button, which may be outside their space."""
    numbers = read_array("actions", actions, EnvValueError)
    if numbers.shape != shape or numbers.dtype.kind != "f":
        allowed = f"an array of floats, {list(shape or ())}"
        raise EnvValueError(must_be("actions", allowed, f"{numbers.dtype} {list(numbers.shape)}"))
    with np.errstate(over="ignore"):  # what is too large is refused
        numbers = numbers.astype(np.float32)
    if not (np.isfinite(numbers).all() and (abs(numbers[:, 0]) <= MOST_RADIUS).all()):
        allowed = f"finite numbers, with a radius of at most {MOST_RADIUS:,}"
        raise EnvIndexError(must_be("actions", allowed, numbers.tolist()))
    return numbers
