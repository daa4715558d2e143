"""The grid of a sweep: reading and checking its options, and making the configurations.

A TOML file has the options of ``pixelpong train --config``; any of them may be a list. The sweep is
the product of these lists, for each of the ``rows`` if there are any:

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

from pixelpong.atari.machine.cartridges import scored_names
from pixelpong.config import OPTIONS, Config, differences
from pixelpong.config.option import COMMAND_LINE
from pixelpong.config.presets import combine
from pixelpong.errors import MAX_GOT, ConfigError, number_of

MAX_RUNS = 10_000
MAX_NAME = 100  # characters in the name of a run and its folder
SAVE_EVERY = 20  # default number of updates between checkpoints; a killed run loses few seconds
NOT_SWEPT = (
    "engine",
    "workers",
    "ray_address",
    "ray_mode",
    "verbose",
)  # options that the sweep itself sets


def read_seeds(words: Iterable[Any]) -> list[int]:
    """Read seeds from words such as ``0-4``, ``0,3,7`` or 5; each seed counts once.

    >>> read_seeds(["0-2,7", 1])
    [0, 1, 2, 7]
    """
    text = ",".join(map(str, words))
    parts = [re.fullmatch(r" *([0-9]{1,18})(?:-([0-9]{1,18}))? *", it) for it in text.split(",")]
    ranges = [range(int(it[1]), int(it[2] or it[1]) + 1) for it in parts if it]
    if all(parts) and all(ranges) and sum(map(len, ranges)) <= MAX_RUNS:
        return list(dict.fromkeys(itertools.chain(*ranges)))
    allowed = f"numbers such as 0-4 or 0,3,7, at most {MAX_RUNS:,} of them"
    raise ConfigError(f"seeds must be {allowed}, not {text[:MAX_GOT]!r}", options=["seeds"])


def read_games(text: str) -> list[str]:
    """Read games from a text such as ``breakout,seaquest``; ``all`` are those that can be learned.

    >>> read_games("breakout, seaquest")
    ['breakout', 'seaquest']
    """
    return scored_names() if text.strip() == "all" else [it.strip() for it in text.split(",")]


def make_grid(content: Mapping[str, Any], given: Mapping[str, Any], origin: str) -> list[Config]:
    """Make the configuration of every run; the runs of a setting, one per seed, are adjacent.

    The unchecked `content` of the file `origin` may also have the keys ``seeds`` and ``rows``. The
    `given` options replace those of the file.
    """
    axes = {
        name: values if isinstance(values, list) else [values] for name, values in content.items()
    }
    rows = axes.pop("rows", [{}])
    if not all(isinstance(row, dict) for row in rows):
        got = str(rows)[:MAX_GOT]
        raise ConfigError(f"{origin}: rows must be a list such as [{{hidden = 32}}, …], not {got}")
    if wrong := {*axes, *itertools.chain(*rows)}.intersection(NOT_SWEPT):
        problem = f"{', '.join(sorted(wrong))} cannot be swept"
        advice = "use engine, threads_each and ray_address of the sweep"
        raise ConfigError(f"{origin}: {problem}; {advice}", options=["threads_each", "ray_address"])
    seeds = [*axes.pop("seed", []), *axes.pop("seeds", [])]
    axes["seed"] = read_seeds(seeds or [0])  # last, so that a setting's runs are adjacent
    count = math.prod(map(len, (rows, *axes.values())))
    if not 0 < count <= MAX_RUNS:
        problem = f"the grid has {number_of(count, 'run')}, not 1 to {MAX_RUNS:,}"
        raise ConfigError(f"{origin}: {problem}; change its lists")
    configs = []
    for row, *values in itertools.product(rows, *axes.values()):
        point = {"save_every": SAVE_EVERY} | row | dict(zip(axes, values, strict=True))
        configs.append(combine(given.get("preset"), point, given, (origin, COMMAND_LINE)))
    return list(dict.fromkeys(configs))


def varied(configs: Iterable[Config]) -> list[str]:
    """List the options that differ among `configs`, except the seed and the engine's options.

    Games differ in many options, which follow from the game. So only those that differ within a
    game count, and the game.
    """
    by_game: dict[str, list[Config]] = {}
    for config in configs:
        by_game.setdefault(config.game, []).append(config)
    different = {"game"} if len(by_game) > 1 else set()
    for group in by_game.values():
        for one, other in itertools.pairwise(group):
            different.update(differences(one, other, with_free=True))
    return [name for name in OPTIONS if name in different and name not in ("seed", *NOT_SWEPT)]


def label_of(config: Config, names: Sequence[str]) -> str:
    """Describe a setting by these options.

    >>> label_of(Config(), ["preset", "seed"])
    'preset fast, seed 0'
    """
    return ", ".join(f"{name} {getattr(config, name)}" for name in names)


def name_runs(configs: Sequence[Config]) -> list[str]:
    """Make unique folder names for runs from the options that differ and the seed."""
    names = varied(configs)
    taken: dict[str, str] = {}
    for number, config in enumerate(configs):
        label = label_of(config, [*names, "seed"]).replace("_", "-")
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", label)
        if len(name) > MAX_NAME or name.lower() in taken:
            name = f"{name[: MAX_NAME - 6]}-{number:05d}"
        taken[name.lower()] = name  # some file systems ignore case
    return list(taken.values())
