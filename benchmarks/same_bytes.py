"""All games beside ale-py's environments: is every byte that a program receives the same?

    nice python benchmarks/same_bytes.py --games all --seeds 0,12345,2147483639 > same_bytes.json
    nice python benchmarks/same_bytes.py --alone --seeds 0 --steps 160 > same_bytes_alone.json

Each game is played on both with the same seeds and actions, with sticky frames and without, with
both ways to start the next episode, until the episodes have ended, or so many steps at most. In
every step all is compared: observations, rewards, ends, infos, last observations. With ``--alone``
it is one game of `make_env` beside ale-py's single environment, in other cases. Prints JSON, with a
line for each game: what was played, and the first differences. `tests/envs/test_same_bytes.py`
plays less of it, and other options. Takes hours of a core: ``--keep`` names a file that gets a line
for each case as soon as it is played, and what the file has is not played again; with ``--seconds``
no case begins later than that, and the report says how many of each game are missing. The file may
be carried on elsewhere, with the same limits: the report says what played how many of the cases.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from records import ROOT, made_by, to_text

sys.path.insert(0, str(ROOT / "tests/support"))

from atari_vector import Comparison, compare, compare_one

from pixelpong.atari.machine import cartridges
from pixelpong.errors import ConfigError

CASES = [
    {"repeat_action_probability": sticky, "autoreset_mode": mode}
    for sticky, mode in itertools.product((0.25, 0.0), ("NextStep", "SameStep"))
]
CASES_ALONE: list[dict[str, Any]] = [
    {"repeat_action_probability": 0.25},
    {"repeat_action_probability": 0.0, "max_num_frames_per_episode": 600},
    {"repeat_action_probability": 0.0, "full_action_space": True, "frameskip": 3},
    {"repeat_action_probability": 0.0, "continuous": True},
]
Case = tuple[str, int, int]  # a game, a seed, an index of the cases


def cases_of(*, alone: bool) -> list[dict[str, Any]]:
    """The options of each case, of one game alone or of many at once."""
    return CASES_ALONE if alone else CASES


def play(case: Case, episodes: int, steps: int, alone: bool = False) -> dict[str, Any]:
    """Compare a game in one case."""
    game, seed, index = case
    options, beside = cases_of(alone=alone)[index], compare_one if alone else compare
    try:
        found = vars(beside(game, seed, episodes=episodes, steps=steps, **options))
    except ConfigError as error:  # so no wrong byte is given
        found = {"refused": str(error)}
    return {"game": game, "seed": seed, "case": index} | found


def play_in_turn(cases: list[Case], until: float, keep: str, **limits: Any) -> list[dict[str, Any]]:
    """Compare in these cases, of one game, while there is time; write each down at once."""
    rows = []
    for case in cases:
        if time.time() > until:
            break
        rows.append(play(case, **limits))
        print(rows[-1], file=sys.stderr, flush=True)
        with open(keep, "a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    return rows


def play_all(cases: list[Case], jobs: int, **how: Any) -> list[dict[str, Any]]:
    """Compare in all these cases, several games at once, all games with a seed before the next."""
    groups = [list(group) for _, group in itertools.groupby(cases, lambda case: case[:2])]
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        return list(itertools.chain(*pool.map(partial(play_in_turn, **how), groups)))


def sum_up(rows: list[dict[str, Any]], due: int, options: list[dict[str, Any]]) -> dict[str, Any]:
    """A game's row of the report, of its cases; what is zero or empty is left out."""
    found = Comparison()
    played = [row for row in rows if "refused" not in row]
    for row in played:
        one = Comparison(**{name: row[name] for name in vars(found)})
        case = f"seed {row['seed']}, {options[row['case']]}"
        one.differences = [f"{case}: {text}" for text in one.differences]
        found += one
    entry = {
        "fewest_ends": min((row["ends"] for row in played), default=0),
        **vars(found),
        "refused": next((row["refused"] for row in rows if "refused" in row), ""),
        "missing": due - len(rows),
    }
    return {key: value for key, value in entry.items() if value}


def read_machine() -> dict[str, Any]:
    """What the comparison was made with."""
    processor = [line for line in _ask("cat", "/proc/cpuinfo") if line.startswith("model name")]
    return {
        "commit": "".join(_ask("git", "rev-parse", "HEAD")),
        "processor": processor[0].split(": ")[1] if processor else platform.machine(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("ale-py", "gymnasium", "numpy", "llvmlite")},
        },
    }


def _ask(*command: str) -> list[str]:
    """The lines that a program prints; none if it fails or is not there."""
    try:
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return told.stdout.splitlines()


def read_kept(keep: Path, limits: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What a file has: who made how many cases, and the cases."""
    makers: list[dict[str, Any]] = []
    rows = []
    for row in map(json.loads, keep.read_text().splitlines() if keep.exists() else []):
        if "game" in row:
            rows.append(row)
            makers[-1]["cases"] += 1
        elif {name: row.pop(name, False) for name in limits} == limits:
            makers.append(row | {"cases": 0})
        else:
            raise SystemExit(f"{keep} was made with other limits")
    return makers, rows


def compare_all(games: list[str], seeds: list[int], **how: Any) -> dict[str, Any]:
    """Compare games, several at once."""
    keep, until = Path(how["keep"]), time.time() + how.pop("seconds")
    limits = {name: how.get(name, False) for name in ("episodes", "steps", "alone")}
    options = cases_of(alone=limits["alone"])
    makers, rows = read_kept(keep, limits)
    done = {(row["game"], row["seed"], row["case"]) for row in rows}
    cases = [
        (game, seed, index) for seed in seeds for game in games for index in range(len(options))
    ]
    todo = [case for case in cases if case not in done]
    if todo and time.time() < until:
        maker = read_machine()
        with open(keep, "a") as file:
            file.write(json.dumps(maker | limits) + "\n")
        new = play_all(todo, until=until, **how)
        makers.append(maker | {"cases": len(new)})
        rows += new
    due = len(seeds) * len(options)
    found = {}
    for game in games:
        of_game = [row for row in rows if row["game"] == game and row["seed"] in seeds]
        found[game] = sum_up(of_game, due, options)
    unequal = {"differences", "refused", "missing"}
    equal = [each for each in found.values() if not each.keys() & unequal]
    return {
        "made_by": makers,
        "seeds": seeds,
        **limits,
        "equal": len(equal),
        "whole": sum(each.get("fewest_ends", 0) >= limits["episodes"] for each in equal),
        "steps_compared": sum(each.get("steps", 0) for each in found.values()),
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
    parser.add_argument("--alone", action="store_true", help="one game of make_env")
    parser.add_argument("--episodes", type=int, default=5, help="that end in each case")
    parser.add_argument("--steps", type=int, default=10_000, help="the most in each case")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--keep", default=os.devnull, help="a file for each case's line")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no case begins later")
    options = parser.parse_args(words)
    everything = cartridges.scored_names()
    options.games = everything if options.games == "all" else options.games.split(",")
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    return options


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    options = parse()
    sys.stdout.write(to_text(made_by() | compare_all(**vars(options))))
