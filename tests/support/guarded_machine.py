"""Plays any bytes as states on a record with forbidden pages before and behind it.

Run as a process of its own, because compiled code that reads or writes a byte outside the record
ends it: ``python guarded_machine.py SEED COUNT`` prints how often the game played on and stopped.
With ``short`` behind, the record has a byte less than it should: that must end the process.
"""

from __future__ import annotations

import collections
import ctypes
import json
import mmap
import sys

import numpy as np
from machines import made_up_state

from pixelpong.atari.machine import MACHINE, STATE
from pixelpong.env.native import NativeConsole, load_game

PAGE = mmap.PAGESIZE
PROT_NONE = 0


class Guarded:
    """Bytes that touch a forbidden page, behind them or before them."""

    def __init__(self, size: int, is_before: bool):
        pages = -(-size // PAGE)
        self._memory = mmap.mmap(-1, (pages + 2) * PAGE)
        whole = np.frombuffer(self._memory, np.uint8)
        start = PAGE if is_before else (pages + 1) * PAGE - size
        self.bytes = whole[start : start + size]
        libc = ctypes.CDLL(None, use_errno=True)
        for page in (0, pages + 1):
            place = ctypes.c_void_p(whole.ctypes.data + page * PAGE)
            if libc.mprotect(place, ctypes.c_size_t(PAGE), PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")


def main(seed: int, count: int, missing: int) -> None:
    rng = np.random.default_rng(seed)
    play_frames = load_game().play_frames
    console = NativeConsole()
    console.run(b"\2" * 300, 0)
    good = console.get_state()
    guards = [Guarded(MACHINE.itemsize, is_before) for is_before in (False, True)]
    buttons = [Guarded(3, is_before) for is_before in (False, True)]
    seen = collections.Counter()
    for number in range(count):
        guard, held = guards[number % 2], buttons[number // 2 % 2]
        guard.bytes[:] = rng.integers(0, 256, dtype=np.uint8)
        state = state_for(rng, number, good).view(np.uint8)
        guard.bytes[missing : missing + state.size] = state
        if not missing:
            guard.bytes.view(MACHINE)["swchb"] = rng.choice([0x3F, rng.integers(256)])
        held.bytes[:] = rng.integers(0, 256, 3)
        result = play_frames(
            guard.bytes.ctypes.data + missing, held.bytes.ctypes.data, 3, int(rng.integers(3))
        )
        seen["played" if result >= 0 else f"stop {-result}"] += 1
    print(json.dumps(seen))


def state_for(rng: np.random.Generator, number: int, good: np.ndarray) -> np.ndarray:
    """Any bytes; real ones with bits flipped; or any bytes where Pong goes on."""
    if number % 3 == 0:
        return np.frombuffer(rng.bytes(STATE.itemsize), STATE)
    state = good.copy() if number % 3 == 1 else made_up_state(rng)
    raw = state.view(np.uint8)
    if number % 3 == 1:
        for _ in range(int(rng.integers(1, 40))):
            raw[rng.integers(STATE.itemsize)] ^= 1 << rng.integers(8)
    elif number % 4:
        raw[:] = np.frombuffer(rng.bytes(STATE.itemsize), np.uint8)
    state["pc"] = good["pc"]
    if number % 2:
        for name in ("timer", "timer_shift", "timer_set", "s", "cycle"):
            state[name] = good[name]
    return state


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), missing=int("short" in sys.argv))
