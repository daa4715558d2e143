"""The first use of each cartridge: exploring, translating and compiling it, into an empty cache.

    python benchmarks/first_use.py

Times are seconds of processor time of one process. The console and the interpreter, which serve for
all cartridges, are compiled with the first one, whose time then is ``with_console``. Prints JSON.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from records import made_by, to_text

from pixelpong.atari.machine import cartridges
from pixelpong.atari.machine.compiled import Game
from pixelpong.atari.machine.roms import read_rom


def use(name: str, folder: Path) -> float:
    """The seconds that a cartridge takes with this cache."""
    facts = cartridges.cartridge(name)
    rom, begin = read_rom(facts), time.process_time()
    game = Game(facts, rom, folder)
    assert not game.was_kept
    return time.process_time() - begin


def measure(names: list[str]) -> dict[str, Any]:
    """The report."""
    names = names or cartridges.names()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        with_console = use(names[0], Path(one))
        use(names[-1], Path(other))
        seconds = {name: use(name, Path(other)) for name in names[:-1]}
        seconds[names[-1]] = use(names[-1], Path(one))
    worst = max(seconds, key=seconds.__getitem__)
    return {
        "with_console": round(with_console, 2),
        "console": round(with_console - seconds[names[0]], 2),
        "median": round(float(np.median(list(seconds.values()))), 2),
        "worst": [worst, round(seconds[worst], 2)],
        "seconds": {name: round(each, 2) for name, each in seconds.items()},
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="at least two games; all by default")
    return parser.parse_args(words)


if __name__ == "__main__":
    report = measure(list(parse().names))
    sys.stdout.write(to_text(made_by() | report))
