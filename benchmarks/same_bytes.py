"""All games beside ale-py's AtariVectorEnv: is every byte that a program receives the same?

    nice python benchmarks/same_bytes.py --games all --seeds 0,12345,2147483639 > same_bytes.json

Each game is played on both with the same seeds and actions, with sticky frames and without, with
both ways to start the next episode, until the episodes have ended, or so many steps at most. In
every step all is compared: observations, rewards, ends, infos, last observations. Prints JSON, with
a line for each game: what was played, and the first differences. `tests/envs/test_same_bytes.py`
plays less of it, and other options. Takes hours of a core.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from typing import Any

from records import ROOT, made_by, to_text

sys.path.insert(0, str(ROOT / "tests/support"))

from atari_vector import Comparison, compare

from pixelpong.atari import cartridges
from pixelpong.errors import ConfigError

CASES = [
    {"repeat_action_probability": sticky, "autoreset_mode": mode}
    for sticky, mode in itertools.product((0.25, 0.0), ("NextStep", "SameStep"))
]


def compare_game(name: str, seeds: list[int], episodes: int, steps: int) -> dict[str, Any]:
    """Compare a game in all cases; what is zero or empty is left out."""
    found, fewest, refused = Comparison(), episodes, ""
    for options, seed in itertools.product(CASES, seeds):
        try:
            one = compare(name, seed, episodes=episodes, steps=steps, **options)
        except ConfigError as error:  # so no wrong byte is given
            refused = str(error)
            continue
        one.differences = [f"seed {seed}, {options}: {text}" for text in one.differences]
        found, fewest = found + one, min(fewest, one.ends)
    print(name, found, refused, file=sys.stderr, flush=True)
    row = {"fewest_ends": fewest} | vars(found) | {"refused": refused}
    return {key: value for key, value in row.items() if value}


def compare_all(games: list[str], seeds: list[int], **limits: Any) -> dict[str, Any]:
    """Compare games, several at once."""
    jobs = limits.pop("jobs")
    todo = [(name, seeds, limits["episodes"], limits["steps"]) for name in games]
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        found = dict(zip(games, pool.map(compare_game, *zip(*todo, strict=True)), strict=True))
    return {
        "versions": {"ale-py": version("ale-py")},
        "seeds": seeds,
        **limits,
        "equal": sum(not each.keys() & {"differences", "refused"} for each in found.values()),
        "steps_compared": sum(each["steps"] for each in found.values()),
        "ends_compared": sum(each.get("ends", 0) for each in found.values()),
        "games": found,
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", default="all", help="names with commas, or all")
    parser.add_argument("--seeds", default="0,12345,2147483639", help="numbers with commas")
    parser.add_argument("--episodes", type=int, default=5, help="that end in each case")
    parser.add_argument("--steps", type=int, default=10_000, help="the most in each case")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = parser.parse_args(words)
    everything = cartridges.scored_names()
    options.games = everything if options.games == "all" else options.games.split(",")
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    return options


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    options = parse()
    sys.stdout.write(to_text(made_by() | compare_all(**vars(options))))
