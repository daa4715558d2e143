"""What each thread of an environment needs of its own to play its share of the games."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pixelpong import kernels
from pixelpong.atari.machine import ROWS, WIDTH
from pixelpong.atari.palette import PALETTE
from pixelpong.env.field import PONG_MACHINE
from pixelpong.env.native import NativeGame
from pixelpong.env.preprocess import IS_ACTIVE
from pixelpong.faces.envs.cartridge import PONG
from pixelpong.faces.envs.picture import make_shrinking
from pixelpong.faces.envs.state import Memory
from pixelpong.items import BUILTIN


def make_start(
    machine: NDArray[np.void], colours: NDArray[np.uint8], memory: Memory
) -> NDArray[np.uint8]:
    """A machine at the start of a game, as bytes, that draws levels if that is what is kept."""
    machine = machine.copy()
    if memory.has_levels:
        machine["shades"], machine["picture"] = colours, colours[0][machine["picture"]]
    return machine.view(np.uint8)


def make_scratch(
    options: dict[str, Any],
    most_frames: int,
    memory: Memory,
    game: NativeGame,
    start: NDArray[np.uint8],
    no_move: int,
    colours: NDArray[np.uint8],
    share: tuple[int, int, int],
) -> tuple[Any, ...]:
    """Make a kernel's argument `thread`, see `pixelpong.kernels.stepping`.

    `start` is a machine at the start of a game, as bytes; `colours` are levels by palette index;
    `share` is the thread's, with its first game and the one after its last.
    """
    it, at = options, PONG_MACHINE.fields["picture"][1]  # type: ignore[index]
    kind, is_duel = it["observation"], it["opponent"] != BUILTIN
    rooms = [kernels.unshared(64 + PONG_MACHINE.itemsize, dtype=np.uint8) for _ in range(2)]
    begin = -at % 64  # pictures are read as vectors
    machines = tuple(room[begin : begin + PONG_MACHINE.itemsize] for room in rooms)
    for machine in machines:
        machine[:] = start
    pictures = tuple(each[at : at + ROWS * WIDTH].reshape(ROWS, WIDTH) for each in machines)
    actions = kernels.unshared(max(most_frames, it["noop_max"], 1), dtype=np.uint8)
    rules = np.zeros(1, kernels.GAMES)
    rules[0] = (
        game.address, [each.ctypes.data for each in machines], actions.ctypes.data,
        *share,
        it["frameskip"], most_frames, it["max_num_frames_per_episode"],
        it["repeat_action_probability"],
        PONG.fire if it["use_fire_reset"] and not is_duel else -1, no_move,
        1 + is_duel, kind == "atari" or len(memory.frames) > 0,
        kind == "atari" and it["maxpool"],
        it["autoreset_mode"] == "SameStep",
    )  # fmt: skip
    atari = _make_view(memory, pictures, colours, it) if kind == "atari" else ()
    view = {"atari": atari, "frame": memory.frames.view(np.uint64)}.get(kind, IS_ACTIVE)
    field = machines[0].view(PONG_MACHINE)["field"][0]
    seen = pictures, field, memory.fields, memory.frames, PALETTE
    return rules, machines, actions, seen, view


def _make_view(
    memory: Memory,
    pictures: tuple[NDArray[np.uint8], ...],
    colours: NDArray[np.uint8],
    options: dict[str, Any],
) -> tuple[Any, ...]:
    """Make what the observation "atari" is made of."""
    height, width = options["img_height"], options["img_width"]
    shrinking = make_shrinking(height, width)
    scratch = kernels.unshared(shrinking.scratch_size, dtype=np.float32)
    small = kernels.unshared(height, width, dtype=np.uint8)
    shape = len(colours), ROWS, WIDTH
    if memory.has_levels:
        planes, colours = tuple(each[None] for each in pictures), colours[:0]
    else:
        planes = tuple(kernels.unshared(*shape, dtype=np.uint8) for _ in pictures)
    return memory.stacks, memory.kept, colours, planes, shrinking.address, scratch, small


def play_share(
    kernel: Any,
    games: Any,
    orders: Any,
    start: NDArray[np.uint8],
    threads: list[tuple[Any, ...]],
    results: tuple[NDArray[Any], ...],
    done: NDArray[np.bool_],
    share: int,
) -> None:
    """Play a share of the games."""
    kernel(games, orders, start, threads[share], results, done)
