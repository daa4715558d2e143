"""A worker: one is really made, in a thread, and says how it is; kernels and their cache."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pixelpong import kernels
from pixelpong.config import Config
from pixelpong.doctor.records import FAILURE, NOTE, OK, WARNING, Case, Check, can_write, trouble
from pixelpong.engines.threads import ThreadEngine
from pixelpong.errors import Interrupted
from pixelpong.worker import make_worker

SECONDS = 40.0
"""Until a worker that has everything to compile, on a machine with other work, must have answered;
that takes 5 of an idle core."""


class Probe:
    """A worker that gets ready as those of a training do, and tells how that went."""

    def __init__(self, config: Config) -> None:
        """Load the emulator, and compile the kernels if nobody has."""
        begin = time.monotonic()
        make_worker(config)
        self._seconds = time.monotonic() - begin

    def play(self, item: int, params: None) -> dict[str, Any]:
        """What there is to tell."""
        return {"ready_seconds": round(self._seconds, 2), **describe_cache()}


def describe_cache() -> dict[str, Any]:
    """Where numba keeps this process's kernels: None for nowhere; how many it found there."""
    known = [getattr(kernels, name) for name in kernels.__all__]
    stats = [each.stats for each in known if hasattr(each, "stats")]
    return {
        "folder": stats[0].cache_path,
        "loaded": sum(sum(each.cache_hits.values()) for each in stats),
        "compiled": sum(sum(each.cache_misses.values()) for each in stats),
    }


def check_workers(case: Case) -> Iterator[Check]:
    """Make a worker, have it answer, and look at what it says of the cache."""
    begin = time.monotonic()
    end = begin + SECONDS
    try:
        engine = ThreadEngine(
            partial(Probe, case.config), 1, SECONDS, lambda: time.monotonic() > end
        )
        with contextlib.closing(engine):
            (answer,) = engine.run([0], None)
    except Interrupted:
        advice = "see what else the machine does, and try again"
        got = f"none within {SECONDS:.0f} seconds"
        yield trouble(FAILURE, "workers", "an answer of a worker", got, advice)
        return
    seconds = time.monotonic() - begin
    text = f"one was made and answered, all in {seconds:.1f} s"
    yield Check("workers", OK, text, {"seconds": round(seconds, 2)})
    yield judge_cache(answer)


def judge_cache(answer: dict[str, Any]) -> Check:
    """Where compiled kernels are kept, whether they were there, whether they can be.

    Args:
        answer: of a `Probe`.
    """
    folder, compiled = answer["folder"], answer["compiled"]
    seconds = answer["ready_seconds"]
    facts = {name: answer[name] for name in ("folder", "loaded", "compiled", "ready_seconds")}
    facts["is_writable"] = folder is not None and can_write(Path(folder))
    advice = "set NUMBA_CACHE_DIR to a folder that can be written to"
    wanted = "a folder for compiled kernels"
    if folder is None:
        got = f"none, so each process compiles them anew ({seconds:.1f} s)"
        return trouble(WARNING, "numba_cache", wanted, got, advice, facts=facts)
    if compiled and not facts["is_writable"]:
        got = f"{folder}, which cannot be written to: each process compiles anew ({seconds:.1f} s)"
        return trouble(WARNING, "numba_cache", wanted, got, advice, facts=facts)
    if compiled:
        text = f"was cold: {compiled} kernels compiled in {seconds:.1f} s and kept in {folder}"
        return Check("numba_cache", NOTE, text, facts)
    text = f"warm: {answer['loaded']} kernels loaded in {seconds:.1f} s from {folder}"
    return Check("numba_cache", OK, text, facts)
