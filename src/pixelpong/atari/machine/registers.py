"""The TIA's registers and objects by name, and the effects of writes to them.

Source: the TIA's hardware manual ("Stella Programmer's Guide", Steve Wright 1979); the delays were
measured on ALE (``docs/emulator.md``).
"""

from __future__ import annotations

from pixelpong.atari.machine.typed import make_table

# The addresses of registers (only the first and the last of the sound registers).
VSYNC, VBLANK, WSYNC, RSYNC, NUSIZ0, NUSIZ1 = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05
COLUP0, COLUP1, COLUPF, COLUBK, CTRLPF, REFP0 = 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B
PF0, PF1, PF2, RESP0, RESP1, RESBL = 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x14
AUDC0, AUDV1, GRP0, GRP1, ENAM0, ENAM1, ENABL = 0x15, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F
HMP0, HMM0, HMBL, VDELP0, VDELP1, VDELBL = 0x20, 0x22, 0x24, 0x25, 0x26, 0x27
RESMP0, RESMP1, HMOVE, HMCLR, CXCLR = 0x28, 0x29, 0x2A, 0x2B, 0x2C

# The objects, which are bit numbers in `objects` and `dirty`.
PLAYFIELD, PLAYER0, PLAYER1, MISSILE0, MISSILE1, BALL = 0, 1, 2, 3, 4, 5
ALL_OBJECTS = 0b111111

CLOCKS = 228  # colour clocks in a line
BLANK_CLOCKS = 68  # colour clocks before the first pixel of a line

# The meaningful bits of each register.
MEANING = make_table(
    64, 0xFF,
    {
        COLUP0: 0xFE, COLUP1: 0xFE, COLUPF: 0xFE, COLUBK: 0xFE, REFP0: 0x08, REFP0 + 1: 0x08,
        PF0: 0xF0, ENAM0: 2, ENAM1: 2, ENABL: 2, VDELP0: 1, VDELP1: 1, VDELBL: 1,
        RESMP0: 2, RESMP1: 2, **dict.fromkeys(range(HMP0, HMBL + 1), 0xF0),
    },
)  # fmt: skip

# Registers to which writing the same value again has no effect, and is skipped.
IS_PLAIN = make_table(
    64, 0,
    dict.fromkeys(
        (
            VBLANK, *range(COLUP0, COLUBK + 1), REFP0, REFP0 + 1, PF0, PF1, PF2, ENAM0, ENAM1,
            ENABL, *range(VDELP0, RESMP1 + 1),
        ),
        1,
    ),
)  # fmt: skip

# The objects whose pixels a write to a register may change.
CHANGES_OBJECTS = make_table(
    64, 0,
    {
        NUSIZ0: 1 << PLAYER0 | 1 << MISSILE0, NUSIZ1: 1 << PLAYER1 | 1 << MISSILE1,
        CTRLPF: 1 << PLAYFIELD | 1 << BALL, REFP0: 1 << PLAYER0, REFP0 + 1: 1 << PLAYER1,
        ENAM0: 1 << MISSILE0, ENAM1: 1 << MISSILE1, ENABL: 1 << BALL,
        **dict.fromkeys((PF0, PF1, PF2), 1 << PLAYFIELD), VDELBL: 1 << BALL,
        VDELP0: 1 << PLAYER0, VDELP1: 1 << PLAYER1, RESMP0: 1 << MISSILE0, RESMP1: 1 << MISSILE1,
        **{RESP0 + k: 1 << PLAYER0 + k for k in range(5)},
    },
)  # fmt: skip

# Those of them that it may move or resize, so that they reach other columns. The playfield reaches
# no more columns than it has pixels.
MOVES_OBJECTS = tuple(
    objects if register in (NUSIZ0, NUSIZ1, CTRLPF, PF0, PF1, PF2) else 0
    for register, objects in enumerate(CHANGES_OBJECTS)
)

# Registers that switch objects other than the playfield on or off.
SWITCHES = make_table(64, 0, dict.fromkeys((ENAM0, ENAM1, ENABL, VDELP0, VDELP1, VDELBL), 1))

# The clocks until a write takes effect; for PF0, PF1 and PF2, they depend on the cycle's low bits.
DELAY = make_table(
    64, 0,
    {
        VBLANK: 1, NUSIZ0: 8, NUSIZ1: 8, REFP0: 1, REFP0 + 1: 1, RESP0 + 2: 8, RESP0 + 3: 8,
        GRP0: 1, GRP1: 1,
    },
)  # fmt: skip
PLAYFIELD_DELAY = (4, 5, 2, 3)
