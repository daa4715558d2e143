"""The game: its ROM, and whether our emulator plays it here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from pixelpong.atari.native import cache_folder
from pixelpong.env.native import NotCoveredError, load_game
from pixelpong.env.rom import ROM_SHA256, read_rom, rom_path
from pixelpong.faces.doctor import OK, WARNING, Check, problem


def check_rom() -> Iterator[Check]:
    """Whether the ROM is there, and is the one that all figures were measured with."""
    read_rom()  # raises what a training would
    text = f"SHA-256 {ROM_SHA256[:16]}…: the one that all figures were measured with"
    yield Check("rom", OK, text, {"path": str(rom_path()), "sha256": ROM_SHA256})


def check_emulator() -> Iterator[Check]:
    """Whether the native emulator plays, how long it took to start, and where it is kept."""
    begin = time.perf_counter()
    try:
        game = load_game()
    except NotCoveredError as error:
        advice = "ALE plays instead, to the same bits, some forty times slower"
        wanted = "the native emulator to play"
        yield problem("emulator", WARNING, wanted, error, advice, plays="ale")
        return
    seconds, folder = time.perf_counter() - begin, cache_folder()
    facts = {
        "plays": "native",
        "folder": None if folder is None else str(folder),
        "was_kept": game.was_kept,
        "ready_seconds": round(seconds, 3),
    }
    if not game.was_kept and not (folder and os.access(folder, os.W_OK)):
        got = f"{folder or 'none'}, so each process compiles it anew ({seconds:.1f} s)"
        wanted, advice = "a writable folder for machine code", "set PIXELPONG_CACHE_DIR to one"
        yield problem("emulator", WARNING, wanted, got, advice, **facts)
        return
    how = "loaded" if game.was_kept else "compiled"
    yield Check("emulator", OK, f"native, {how} in {seconds:.2f} s, kept in {folder}", facts)
