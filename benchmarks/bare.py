"""A bare vector step of any cartridge beside ale_py's AtariVectorEnv, one thread each.

    python benchmarks/bare.py breakout qbert

A step is 4 frames, and the maximum of the last two in grey, 84 × 84, on a stack of 4. Ours is bare:
it has no rewards, ends or infos yet. First the pictures of one game are compared, up to its end or
300 steps; then games with random moves, which are held for three steps, take turns. Times are
processor time in microseconds per game and step, the lower quartile of the rounds: of
AtariVectorEnv, and of ours without pictures, with two drawn, and whole. Prints JSON.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from numba import njit
from records import made_by, to_text

from pixelpong.atari.cartridges import cartridge
from pixelpong.atari.game import Game
from pixelpong.atari.machine import DRAW_NOTHING, DRAW_PICTURE, FRAME_DONE, MACHINE
from pixelpong.atari.roms import read_rom
from pixelpong.atari.starting import start
from pixelpong.games.pictures import GREYS, make_shrinking
from pixelpong.kernels.intrinsics import call_play_frames, call_shrink

NAMES = (
    "breakout", "pong", "space_invaders", "ms_pacman", "qbert", "seaquest", "freeway",
    "montezuma_revenge", "asterix", "beam_rider", "enduro",
)  # fmt: skip
NUM_ENVS, FRAMES, HEIGHT, WIDTH, STACK = 8, 4, 84, 84, 4
MACHINES, PICTURES, ALL = range(3)  # what a step does: frames alone, two of them drawn, all
HELD = 3  # steps


@njit(nogil=True, error_model="numpy")
def step_all(games, actions, view, what):
    """Step each game with its action; return how many stopped with something not covered."""
    play, states, machines, held = games
    stacks, newest, pictures, shrink, scratch = view
    size = states.shape[1]
    draws = DRAW_NOTHING if what == MACHINES else DRAW_PICTURE
    stops = 0
    for i in range(len(states)):
        held[:] = actions[i]
        for which, count in enumerate((FRAMES - 1, 1)):
            machines[which, :size] = states[i]
            address = machines[which].ctypes.data
            stop = call_play_frames(play, address, held.ctypes.data, count, draws)[0]
            stops += stop != FRAME_DONE
            states[i] = machines[which, :size]
        if what == ALL:
            newest[i] = (newest[i] + 1) % STACK
            out = stacks[i, newest[i]].ctypes.data
            call_shrink(shrink, pictures[0], pictures[1], out, scratch.ctypes.data)
    return stops


class Bare:
    """Our games."""

    def __init__(self, name: str, num_envs: int) -> None:
        """Begin a game in each, as AtariVectorEnv does: with the second start after loading."""
        about = cartridge(name)
        self._game = game = Game(about, read_rom(about))  # keeps the machine code alive
        begin: Any = start(game, 1, start(game)["ram"].tobytes())
        begin["shades"] = GREYS
        self.machines = np.repeat(begin, 2).view(np.uint8).reshape(2, -1)
        self.start = self.machines[0, : about.kept_size].copy()
        self.states = np.repeat(self.start[None], num_envs, 0)
        self.stacks = np.zeros((num_envs, STACK, HEIGHT, WIDTH), np.uint8)
        self.newest = np.zeros(num_envs, np.int64)
        pictures = [each.ctypes.data + MACHINE.fields["picture"][1] for each in self.machines]
        self._shrinking = shrinking = make_shrinking(HEIGHT, WIDTH, about.rows)
        scratch = np.zeros(shrinking.scratch_size, np.float32)
        self._games = game.address, self.states, self.machines, np.zeros(FRAMES, np.uint8)
        self._view = self.stacks, self.newest, np.array(pictures), shrinking.address, scratch

    def step(self, actions: Any, what: int = ALL) -> int:
        """Step with actions of the console, [N]."""
        return step_all(self._games, actions, self._view, what)


def make_theirs(name: str, num_envs: int) -> Any:
    """Their games, under the rules that ours has."""
    return AtariVectorEnv(
        name, num_envs, num_threads=1, repeat_action_probability=0.0, noop_max=0,
        use_fire_reset=False, reward_clipping=False,
    )  # fmt: skip


def compare(name: str, numbers: Any, steps: int) -> tuple[int, int]:
    """The steps up to the end of a game, and those whose pictures were equal."""
    ours, theirs, rng = Bare(name, 1), make_theirs(name, 1), np.random.default_rng(5)
    theirs.reset(seed=0)
    equal = held = 0
    for step in range(steps):
        if rng.random() < 0.2:
            held = int(rng.integers(len(numbers)))
        observations, _, is_over, is_cut, _ = theirs.step(np.array([held]))
        stops = ours.step(numbers[[held]])
        if is_over[0] or is_cut[0]:
            return step, equal
        same = np.array_equal(observations[0, -1], ours.stacks[0, ours.newest[0]])
        equal += same and not stops
    return steps, equal


def took(play: Callable[[], None]) -> float:
    """Processor time."""
    begin = time.process_time()
    play()
    return time.process_time() - begin


def measure(name: str, rounds: int, steps: int) -> dict[str, Any]:
    """A row of the report."""
    numbers = np.array(cartridge(name).actions)
    compared, equal = compare(name, numbers, 300)
    ours, theirs, rng = Bare(name, NUM_ENVS), make_theirs(name, NUM_ENVS), np.random.default_rng(1)
    theirs.reset(seed=0)
    times: dict[str, list[float]] = {"ale": [], "machine": [], "pictures": [], "all": []}
    for _ in range(rounds + 1):
        chosen = rng.integers(len(numbers), size=(-(-steps // HELD), NUM_ENVS))
        moves, ended = np.repeat(chosen, HELD, 0)[:steps], []

        def step_theirs(moves=moves, ended=ended) -> None:
            for move in moves:
                ended.append(theirs.step(move)[2])

        times["ale"].append(took(step_theirs))
        before = ours.states.copy()
        for what, key in enumerate(("machine", "pictures", "all")):
            ours.states[:] = before

            def step_ours(moves=moves, ended=ended, what=what) -> None:
                for move, over in zip(moves, ended, strict=True):
                    assert ours.step(numbers[move], what) == 0, "a frame was not covered"
                    ours.states[over] = ours.start

            times[key].append(took(step_ours))
    per = {
        key: float(np.quantile(each[1:], 0.25)) / steps / NUM_ENVS * 1e6
        for key, each in times.items()
    }
    row = {key: round(each, 1) for key, each in per.items()}
    return row | {
        "ratio": round(per["ale"] / per["all"], 2),
        "compared": compared,
        "equal": equal,
    }


def measure_all(names: list[str], rounds: int, steps: int) -> dict[str, Any]:
    """The report."""
    games = {}
    for name in names:
        games[name] = measure(name, rounds, steps)
        sys.stderr.write(f"{name} {games[name]}\n")
    ratios = [row["ratio"] for row in games.values()]
    return {
        "rounds": rounds,
        "num_envs": NUM_ENVS,
        "slowest": min(ratios),
        "median": round(float(np.median(ratios)), 2),
        "games": games,
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES, help="games, as ale_py calls them")
    parser.add_argument("--rounds", type=int, default=11, help="measurements of each")
    parser.add_argument("--steps", type=int, default=60, help="of a measurement")
    return parser.parse_args(words)


if __name__ == "__main__":
    options = parse()
    report = measure_all(list(options.names), options.rounds, options.steps)
    sys.stdout.write(to_text(made_by() | report))
