"""The emulators: whether ours plays here, where its machine code is kept, if ALE agrees."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pixelpong.atari.machine import DRAW_PICTURE
from pixelpong.atari.native import cache_folder
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Case, Check, can_write, trouble
from pixelpong.env.native import NativeConsole, NotCoveredError, load_game
from pixelpong.env.pong import ALE, make_console
from pixelpong.seeding import make_rng

FRAMES = 400
"""Compared with ALE; they take it 20 ms."""


def check_emulator(case: Case) -> Iterator[Check]:
    """Whether the native emulator plays, and what it takes to start it."""
    begin = time.perf_counter()
    try:
        game = load_game()
        NativeConsole()
    except NotCoveredError as error:
        advice = "nothing need be done: ALE plays in its place, to the same bits, and slowly"
        reason = {"plays": ALE, "reason": str(error)}
        wanted = "the native emulator to play"
        yield trouble(WARNING, "emulator", wanted, error, advice, facts=reason)
        return
    seconds, folder = time.perf_counter() - begin, cache_folder()
    facts: dict[str, Any] = {
        "plays": case.config.engine.emulator,
        "folder": str(folder),
        "was_kept": game.was_kept,
        "ready_seconds": round(seconds, 3),
    }
    if not game.was_kept and not (folder and can_write(folder)):
        place = folder or "none"
        got = f"{place}, which cannot be written to: each process compiles anew ({seconds:.1f} s)"
        wanted, advice = "a folder for the game's machine code", "set PIXELPONG_CACHE_DIR to one"
        yield trouble(WARNING, "emulator", wanted, got, advice, facts=facts)
        return
    how = f"loaded in {seconds:.2f} s from" if game.was_kept else f"compiled in {seconds:.1f} s to"
    text = f"native {how} {folder}"
    if case.config.engine.emulator == ALE:
        text += "; the configuration asks for ale"
    yield Check("emulator", OK, text, facts)


def check_ale(case: Case) -> Iterator[Check]:
    """Whether both emulators play the same game: states, pictures, points."""
    consoles = make_console("native"), make_console(ALE)
    if consoles[0].name == ALE:
        yield trouble(NOTE, "ale", "two emulators to compare", "ALE alone", "see above: emulator")
        return
    actions = make_rng(0, "bench", 9).integers(0, 6, FRAMES).astype("u1").tobytes()
    for frame in range(FRAMES):
        one, other = (each.run(actions[frame : frame + 1], DRAW_PICTURE) for each in consoles)
        states = {each.get_state().tobytes() for each in consoles}
        pictures = {each.picture.tobytes() for each in consoles}
        if one != other or len(states) + len(pictures) > 2:
            wanted, got = "the same game on both emulators", f"another one at frame {frame + 1}"
            advice = "train with --emulator ale, and tell of it"
            yield trouble(FAILURE, "ale", wanted, got, advice, facts={"frames": frame})
            return
    text = f"both emulators play the same {FRAMES} frames: states, pictures and points"
    yield Check("ale", OK, text, {"frames": FRAMES})
