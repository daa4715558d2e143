"""Writes to TIA registers that are known at translation time, as typed Python.

Each is the case of `atari.machine.tia.write_tia` for that register. So the game need not look up
the register, and makes no call if the value does not change.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re

from pixelpong.atari.machine import registers as r
from pixelpong.atari.machine import tia


def write_register(register: int, value: str, after: int) -> str:
    """Return the lines that write a value to a register; the next instruction is at `after`."""
    if register == r.WSYNC:
        return "t = (t + 75) // 76 * 76"
    effect = re.sub(r"\bvalue\b", value, _find_case(register))
    if register == r.VSYNC:
        return f"{effect}\nif m.stop: pc = {after}; goto(out)"
    changes = f"m.tia[{register}] != {value} & {r.MEANING[register]}"
    if register == r.GRP0:
        return f"if {changes} or m.old_grp[1] != m.tia[GRP1]: {effect}"
    if register == r.GRP1:
        others = "m.old_grp[0] != m.tia[GRP0] or m.old_enabl != m.tia[ENABL]"
        return f"if {changes} or {others}: {effect}"
    return f"if {changes}: {effect}" if r.IS_PLAIN[register] else effect


@functools.cache
def _find_case(register: int) -> str:
    """Return what `write_tia` does in its case for a register; "" if a write has no effect."""
    (function,) = ast.parse(inspect.getsource(tia.write_tia)).body
    assert isinstance(function, ast.FunctionDef)
    code = function.body[-2:-1]  # all cases, before the result is returned
    while code and isinstance(case := code[0], ast.If):
        holds = eval(ast.unparse(case.test), vars(tia), {"register": register})
        code = case.body if holds else case.orelse
    return re.sub(r"\bregister\b", str(register), "\n".join(map(ast.unparse, code)))
