"""The ROM: where it is, and whether it is the one that all figures are of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from pixelpong.disk import read_bytes
from pixelpong.doctor.records import FAILURE, OK, Case, Check, trouble
from pixelpong.env.rom import ROM_SHA256, read_rom, rom_advice, rom_path

ROM_LIMIT = 1 << 20


def check_rom(case: Case) -> Iterator[Check]:
    """The ROM: where it is, and whether it is the one that was measured with."""
    path = rom_path()
    facts: dict[str, Any] = {"path": str(path), "sha256": None, "md5": None}
    wanted, advice = f"Pong's ROM in {path.parent}", rom_advice()
    try:
        content = read_bytes(path, ROM_LIMIT)
    except OSError as error:
        got = error.strerror or str(error)
        yield trouble(FAILURE, "rom", wanted, got, advice, facts=facts)
        return
    facts["sha256"] = hashlib.sha256(content).hexdigest()
    facts["md5"] = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if facts["sha256"] != ROM_SHA256:
        got = f"another file: SHA-256 {facts['sha256'][:16]}… instead of {ROM_SHA256[:16]}…"
        yield trouble(FAILURE, "rom", wanted, got, advice, facts=facts)
        return
    read_rom()  # raises what a training would
    text = f"SHA-256 {ROM_SHA256[:16]}…, MD5 {facts['md5'][:16]}…: the one all figures are of"
    yield Check("rom", OK, text, facts)
