"""Which trainings a sweep has: the grid of its options, read, counted, checked and named.

A TOML file has the options of ``pixelpong train --config``; any of them may be a list. The sweep is
their product, for each of the ``rows`` if there are any:

    seeds = "0-4"
    learning_rate = [1e-3, 2e-3]
    rows = [{hidden = 32, num_steps = 128}, {hidden = 64, num_steps = 64}]
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pixelpong.config import OPTIONS, Config, differences
from pixelpong.config.options import COMMAND_LINE
from pixelpong.config.presets import combine
from pixelpong.errors import ConfigError, expected

MAX_TRAININGS = 10_000

MAX_NAME = 100  # letters of a training's name, which is that of its folder
SAVE_EVERY = 20  # updates, by default: a killed training loses a few seconds
NOT_SWEPT = ("engine", "workers", "ray_address", "ray_mode", "verbose")  # set by the sweep

_SEEDS = "seeds as 0-4 or 0,3,7"


def read_seeds(text: str, name: str = "--seeds") -> list[int]:
    """``0-4`` or ``0,3,7`` as numbers, each once.

    >>> read_seeds("0-2,7,1")
    [0, 1, 2, 7]
    """
    what = _SEEDS.replace("seeds", name, 1)
    found: dict[int, None] = {}
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            if high - low >= MAX_TRAININGS or len(found) > MAX_TRAININGS:
                more = f", at most {MAX_TRAININGS:,} of them"
                raise ConfigError(expected(what + more, repr(text), "give fewer"))
            found |= dict.fromkeys(range(low, high + 1))
    except ValueError:
        found = {}
    if not found:
        raise ConfigError(expected(what, repr(text), "see --help"))
    return list(found)


def make_grid(content: Mapping[str, Any], given: Mapping[str, Any], origin: str) -> list[Config]:
    """The configuration of every training, the seeds of a setting one after the other.

    The unchecked content of the file `origin` may also have the keys ``seeds`` and ``rows``. The
    `given` options replace those of the file.
    """
    axes = {name: it if isinstance(it, list) else [it] for name, it in content.items()}
    for name in (name for name, values in axes.items() if not values):
        what = expected(f"a value of {name}", "an empty list", "give one")
        raise ConfigError(f"{origin}: {what}")
    rows = axes.pop("rows", [{}])
    if "seeds" in axes:
        if "seed" in axes or not isinstance(content["seeds"], str):
            got = "seed as well" if "seed" in axes else repr(content["seeds"])
            raise ConfigError(f"{origin}: " + expected('seeds = "0-4"', got, "give one of them"))
        axes["seed"] = read_seeds(content["seeds"], "seeds")
        del axes["seeds"]
    axes["seed"] = axes.pop("seed", [0])  # last, so that the seeds of a setting are neighbours
    for name in given.keys() & axes.keys():
        axes[name] = [given[name]]
    count = math.prod(map(len, (rows, *axes.values())))
    if count > MAX_TRAININGS:
        what = f"{origin}: expected at most {MAX_TRAININGS:,} trainings"
        raise ConfigError(f"{what}, got {count:,}; make the lists shorter")
    _check(axes, rows, origin)
    points = (
        {**row, **dict(zip(axes, values, strict=True))}
        for row in rows
        for values in itertools.product(*axes.values())
    )
    saving, origins = {"save_every": SAVE_EVERY}, (origin, COMMAND_LINE)
    configs = (combine(given.get("preset"), saving | point, given, origins) for point in points)
    return list(dict.fromkeys(configs))


def _check(axes: Mapping[str, Sequence[Any]], rows: Sequence[Any], origin: str) -> None:
    """Refuse names and values that cannot be used, before any combination is made."""
    for row in rows:
        if not isinstance(row, dict):
            what = f"{origin}: " + expected("rows = [{hidden = 32}, …]", repr(row), "change it")
            raise ConfigError(what)
    named = [(name, value) for name, values in axes.items() for value in values]
    for name, value in itertools.chain(named, *(row.items() for row in rows)):
        if name in NOT_SWEPT:
            advice = "leave it out: --engine, --threads-each and --ray-address decide it"
            what = expected("options of a training", repr(name), advice)
            raise ConfigError(f"{origin}: {what}")
        Config().updated({name: value}, origin)


def varied(configs: Iterable[Config]) -> list[str]:
    """The options that differ among `configs`, except the seed and who carries them out."""
    found: set[str] = set()
    for first, each in itertools.pairwise(configs):
        found.update(differences(first, each, with_free=True))
    return [name for name in OPTIONS if name in found and name not in ("seed", *NOT_SWEPT)]


def label_of(config: Config, names: Sequence[str]) -> str:
    """A setting in words, by these options.

    >>> label_of(Config(), ["preset", "seed"])
    'preset fast, seed 0'
    """
    flat = config.to_flat()
    return ", ".join(f"{name} {flat[name]}" for name in names)


def name_trainings(configs: Sequence[Config]) -> list[str]:
    """The folder names of trainings: what differs, and the seed; no two are the same."""
    names = varied(configs)
    taken: dict[str, str] = {}
    for number, config in enumerate(configs):
        label = label_of(config, [*names, "seed"]).replace("_", "-")
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", label)
        if len(name) > MAX_NAME or name.lower() in taken:
            name = f"{name[: MAX_NAME - 6]}-{number:05d}"
        taken[name.lower()] = name  # some file systems know no capitals
    return list(taken.values())
