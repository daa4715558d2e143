"""All cartridges beside ALE, frame by frame: memory, rewards, lives, ends, every eighth picture.

    nice python benchmarks/games.py --frames 20000 --jobs 2 > benchmarks/games.json

Each is played with random, held and purposeful moves, so many frames of each, from one game into
the next; and once more with held moves, while now and then a random byte is written to both
memories. A program that loses its way by that may stop our machine, which is counted; then the
cartridge is loaded again. Takes ten minutes of two cores. Prints JSON.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from typing import Any

from records import made_by, to_text

from pixelpong.atari.lockstep import STYLES, Comparison, Lockstep
from pixelpong.atari.machine import cartridges
from pixelpong.atari.machine.compiled import load_game
from pixelpong.seeding import make_rng

POKES = 0.01
"""The chance that a byte is written before a frame."""


def compare(name: str, frames: int) -> dict[str, Any]:
    """Compare a game; zeros and empty texts are left out."""
    game = load_game(name)
    played = Lockstep(game)
    for number, style in enumerate(STYLES):
        played.run(style, frames, make_rng(0, "bench", number))
    poked = Lockstep(game)
    poked.run("held", frames, make_rng(0, "bench", len(STYLES)), pokes=POKES)
    print(name, played.result, poked.result, file=sys.stderr, flush=True)
    return {**_brief(played.result), "poked": _brief(poked.result)}


def _brief(found: Comparison) -> dict[str, Any]:
    return {key: value for key, value in vars(found).items() if value}


def compare_all(names: list[str], frames: int, jobs: int) -> dict[str, Any]:
    """Compare games, several at once."""
    names = names or cartridges.names()
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        found = dict(zip(names, pool.map(compare, names, [frames] * len(names)), strict=True))
    return {"versions": {"ale-py": version("ale-py")}, "frames": frames, "games": found}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="games; all by default")
    parser.add_argument("--frames", type=int, default=20_000, help="of each kind of moves")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    return parser.parse_args(words)


if __name__ == "__main__":
    options = parse()
    report = compare_all(options.names, options.frames, options.jobs)
    sys.stdout.write(to_text(made_by() | report))
