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
import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from ale_py.vector_env import AtariVectorEnv
from numba import njit
from records import made_by, to_text

from pixelpong.atari.machine import DRAW_NOTHING, DRAW_PICTURE, FRAME_DONE, MACHINE, STATE
from pixelpong.env.games import NativeGame, load_ale
from pixelpong.faces.envs.picture import GREYS, make_shrinking
from pixelpong.kernels.intrinsics import call_shrink

NAMES = (
    "breakout", "pong", "space_invaders", "ms_pacman", "qbert", "seaquest", "freeway",
    "montezuma_revenge", "asterix", "beam_rider", "enduro",
)  # fmt: skip
NUM_ENVS, FRAMES, HEIGHT, WIDTH, STACK = 8, 4, 84, 84, 4
MACHINES, PICTURES, ALL = range(3)  # what a step does: frames alone, two of them drawn, all
HELD = 3  # steps
SIZE = STATE.itemsize


@njit(nogil=True, error_model="numpy")
def step_all(games, inputs, actions, view, what):
    """Step each game; return how many frames stopped with something not covered."""
    (play, states, machines, records), (swcha, fire, turns, ends) = games, inputs
    stacks, newest, pictures, shrink, scratch = view
    stops = 0
    for i in range(len(states)):
        machines[0, :SIZE] = states[i]
        for k in range(FRAMES):
            which = np.int64(k == FRAMES - 1)
            if which:
                machines[1, :SIZE] = machines[0, :SIZE]
            m, action = records[which, 0], actions[i]
            m.swcha = swcha[action]
            for j in range(2):
                m.fire[j] = fire[action, j]
            for j in range(4):
                if turns[action, j]:
                    m.resistance[j] = min(max(m.resistance[j] + turns[action, j], ends[0]), ends[1])
            m.draws = DRAW_PICTURE if what and k >= FRAMES - 2 else DRAW_NOTHING
            stops += play(machines[which].ctypes.data, 1) != FRAME_DONE
        states[i] = machines[1, :SIZE]
        if what == ALL:
            newest[i] = (newest[i] + 1) % STACK
            out = stacks[i, newest[i]].ctypes.data
            call_shrink(shrink, pictures[0], pictures[1], out, scratch.ctypes.data)
    return stops


class Bare:
    """Our games."""

    def __init__(self, name: str, num_envs: int) -> None:
        """Begin a game in each."""
        self._game = game = NativeGame(name)  # keeps the machine code alive
        start: Any = game.start.copy()
        game.make_controller().press(start[0], 0)
        start["shades"] = GREYS
        self.machines = np.repeat(start, 2).view(np.uint8).reshape(2, -1)
        self.start = self.machines[0, :SIZE].copy()
        self.states = np.repeat(self.start[None], num_envs, 0)
        self.stacks = np.zeros((num_envs, STACK, HEIGHT, WIDTH), np.uint8)
        self.newest = np.zeros(num_envs, np.int64)
        play = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)(
            game.code.address("play")
        )
        pictures = [each.ctypes.data + MACHINE.fields["picture"][1] for each in self.machines]
        shrinking = make_shrinking(HEIGHT, WIDTH, game.rows)
        scratch = np.zeros(shrinking.scratch_size, np.float32)
        self._games = play, self.states, self.machines, self.machines.view(MACHINE)
        self._inputs = list_inputs(game, start)
        self._view = self.stacks, self.newest, np.array(pictures), shrinking.address, scratch

    def step(self, actions: Any, what: int = ALL) -> int:
        """Step with actions of the console, [N]."""
        return step_all(self._games, self._inputs, actions, self._view, what)


def list_inputs(game: NativeGame, start: Any) -> tuple[Any, ...]:
    """What each of the console's actions does to the inputs, and the ends of a paddle's turn."""
    pressed = np.repeat(start, 18)
    for action, m in enumerate(pressed):
        controller = game.make_controller()
        controller.press(m, action)
    turns = pressed["resistance"].astype(np.int64) - start["resistance"]
    ends = np.array([controller.lowest, controller.highest])
    return pressed["swcha"].copy(), pressed["fire"].copy(), turns, ends


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
    numbers = np.array([each.value for each in load_ale(name).getMinimalActionSet()])
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
