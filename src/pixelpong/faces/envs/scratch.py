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
from pixelpong.faces.envs.picture import make_tables
from pixelpong.faces.envs.state import Memory
from pixelpong.items import BUILTIN


def make_scratch(
    options: dict[str, Any],
    most_frames: int,
    memory: Memory,
    game: NativeGame,
    start: NDArray[np.uint8],
    no_move: int,
    colours: NDArray[np.float32],
    share: tuple[int, int, int],
) -> tuple[Any, ...]:
    """Make a kernel's argument `thread`, see `pixelpong.kernels.stepping`.

    `start` is a machine at the start of a game, as bytes; `colours` are levels by palette index;
    `share` is the thread's, with its first game and the one after its last.
    """
    it, at = options, PONG_MACHINE.fields["picture"][1]  # type: ignore[index]
    kind, is_duel = it["observation"], it["opponent"] != BUILTIN
    rooms = [kernels.unshared(8 + PONG_MACHINE.itemsize, dtype=np.uint8) for _ in range(2)]
    begin = -at % 8  # pictures are read as words
    machines = tuple(room[begin : begin + PONG_MACHINE.itemsize] for room in rooms)
    for machine in machines:
        machine[:] = start
    pictures = tuple(each[at : at + ROWS * WIDTH].reshape(ROWS, WIDTH) for each in machines)
    words = tuple(each.view(np.uint64) for each in pictures)
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
    height, width = it["img_height"], it["img_width"]
    sums = (kernels.unshared(size, dtype=np.float32) for size in (WIDTH, width, width))
    scratch = kernels.unshared(ROWS, dtype=np.uint8), *sums
    plane = kernels.unshared(height, width, dtype=np.uint8)
    levels = colours, np.arange(256, dtype=np.float32)
    kept = memory.kept.view(np.uint64), memory.kept
    tables = make_tables(height, width)
    atari = memory.stacks, kept, words, levels, tables, scratch, plane
    view = {"atari": atari, "frame": memory.frames.view(np.uint64)}.get(kind, IS_ACTIVE)
    field = machines[0].view(PONG_MACHINE)["field"][0]
    seen = pictures, field, memory.fields, memory.frames, PALETTE
    return rules, machines, actions, seen, view


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
