"""Writes to TIA registers that are known at translation time, as typed Python.

They have the effect of `atari.machine.tia.write_tia`, but need not look up the register, and make
no call if the value does not change.
"""

from __future__ import annotations

from pixelpong.atari.machine import registers as r

# The code for a write to each register; {0} is the register, {1} the value.
_SETTERS = {
    **dict.fromkeys((r.NUSIZ0, r.NUSIZ1), "set_size(m, t, {0}, {1})"),
    **dict.fromkeys((r.RESP0, r.RESP1), f"set_player_position(m, t, {{0}} - {r.RESP0})"),
    **dict.fromkeys(range(r.RESP1 + 1, r.RESBL + 1), "set_bar_position(m, t, {0})"),
    r.CTRLPF: "set_control(m, t, {1})", r.HMOVE: "move_objects(m, t)",
    r.CXCLR: "clear_collisions(m, t)", r.HMP0 + 2: "set_motion(m, t, {0}, {1})",
    r.HMCLR: "; ".join(f"m.tia[{k}] = 0" for k in range(r.HMP0, r.HMBL + 1)),
}  # fmt: skip
# The code for a write that changes the value.
_CHANGERS = {
    **dict.fromkeys(range(r.COLUP0, r.COLUBK + 1), "set_register(m, t, {0}, {1})"),
    **dict.fromkeys(range(r.PF0, r.PF2 + 1), "set_register(m, t, {0}, {1})"),
    **dict.fromkeys(range(r.VDELP0, r.VDELBL + 1), "set_register(m, t, {0}, {1})"),
    **dict.fromkeys((r.REFP0, r.REFP0 + 1), "set_register(m, t, {0}, {1})"),
    **dict.fromkeys((r.ENAM0, r.ENAM1, r.ENABL), "set_switch(m, t, {0}, {1})"),
    **dict.fromkeys((r.RESMP0, r.RESMP1), "set_lock(m, t, {0}, {1})"),
    r.VBLANK: "set_blank(m, t, {1})",
}  # fmt: skip
_IGNORED = (r.RSYNC, *range(r.AUDC0, r.AUDV1 + 1), *range(r.CXCLR + 1, 0x40))


def write_register(register: int, value: str, after: int) -> str:
    """The lines that write a value to a register; the next instruction is at `after`."""
    kept = f"{value} & {r.MEANING[register]}"
    changes = f"if m.tia[{register}] != {kept}"
    if register == r.WSYNC:
        return "t = (t + 75) // 76 * 76"
    if register == r.VSYNC:
        return f"write_vsync(m, t, {value})\nif m.stop: pc = {after}; goto(out)"
    if register in _IGNORED:
        return ""
    if r.HMP0 <= register <= r.HMBL and register != r.HMP0 + 2:
        return f"m.tia[{register}] = {kept}"
    if register in _SETTERS:
        return _SETTERS[register].format(register, value)
    if register in _CHANGERS:
        return f"{changes}: {_CHANGERS[register].format(register, value)}"
    late = f"m.old_grp[1] != m.tia[{r.GRP1}]"
    if register == r.GRP1:
        late = f"m.old_grp[0] != m.tia[{r.GRP0}] or m.old_enabl != m.tia[{r.ENABL}]"
    return f"{changes} or {late}: set_player(m, t, {register}, {value})"
