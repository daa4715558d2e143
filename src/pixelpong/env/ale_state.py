"""ALE's serialised state as the console's record, and back.

ALE writes a state as a row of little-endian int32, truth values as one of two patterns of 32 bits,
and texts as their length and their letters. `_PARTS` names them all. Between two frames of Pong
there are four kinds of them:

- What the record holds, though in another form: ALE counts times from the beginning of the last
  frame, has four bits of a motion, one number for the playfield, and the paddles the other way
  round.
- What follows from it: which objects have pixels, the points, whether the game is over.
- What never varies. These are checked.
- What the future does not depend on: the random generator that fills the memory when the console
  is switched on, the sound, the frame counters, the clocks of the picture that has been drawn.

What was read is written once more and compared with the original. So a state of another form (from
another version of ale-py, or of a console that got lost) is refused, and never misread.

Covered: both directions, the layout and its check. Not covered: ALE itself (`pixelpong.env.ale`).

Source: ALE 0.12, the ``save`` and ``load`` of its parts; the tests hold this file to ale-py.
"""

from __future__ import annotations

import functools
import itertools
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.check import fault_in
from pixelpong.atari.machine import PADDLE_HIGHEST, PADDLE_LOWEST, STATE
from pixelpong.errors import EmulatorError, expected

_TRUE, _FALSE = np.array([0xFAB1FAB2, 0xBAD1BAD2], "<u4").view("<i4").tolist()

_GENERATOR = "generator"
"""A text of any length."""

_PARTS: tuple[str | bytes, ...] = (
    "left_paddle right_paddle frames episode_frames mode difficulty size",
    b"60e0ea3cbe0913d39803477945e9e5ec",  # the ROM's MD5
    b"System", "cycles", _GENERATOR,
    b"M6502Low", "a x y s opcode pc n v b d i not_z c status",
    b"M6532", "ram_size ram:128 timer timer_shift timer_set timer_ran_out",
    "timer_was_read directions:2",
    b"TIA", "frame_start clocks:6 vsync_end objects",
    "vsync vblank nusiz:2 colup:2 colupf colubk ctrlpf priority refp:2 pf grp:2 old_grp:2",
    "enam:2 enabl old_enabl hm:5 vdelp:2 vdelbl resmp:2 collisions position:5",
    "shown_grp:2 hmove_clock blanks stars star emptied emptied_until",
    b"TIASound", "sound:7",
    b"Cartridge2K",
    "reward score is_over has_generator paddle_min paddle_max",
)  # fmt: skip
"""Texts, and the names of numbers, with their count if there are several."""

_SIZE_AT, _GENERATOR_AT = 24, 78
"""Where the number of bytes that follow lies (less the paddles' limits); where that text begins."""

_NUM_REGISTERS = 45

_PLAIN = ("a", "x", "y", "s", "ram", "timer", "timer_shift", "old_grp", "position")
"""Fields that hold the same numbers in both forms."""

_TRUTHS = {"emptied": 1, "old_enabl": 2, "blanks": 1}
"""Fields that are true or false in ALE; in the record, the bit that stands for true."""

_PLAIN_REGISTERS = {"vsync": 0x00, "vblank": 0x01, "nusiz": 0x04, "ctrlpf": 0x0A, "grp": 0x1B}
_COLOURS = {"colup": 0x06, "colupf": 0x08, "colubk": 0x09}
_TRUE_REGISTERS = {
    "refp": (0x0B, 0x08), "enam": (0x1D, 0x02), "enabl": (0x1F, 0x02), "vdelp": (0x25, 0x01),
    "vdelbl": (0x27, 0x01), "resmp": (0x28, 0x02),
}  # fmt: skip
_PF, _HM = slice(0x0D, 0x10), slice(0x20, 0x25)
"""Registers of the TIA, by address; if there are several, of the first."""

_FLAGS = {"n": 0x80, "v": 0x40, "b": 0x10, "d": 0x08, "i": 0x04, "not_z": 0x02, "c": 0x01}
"""Of the processor. The bit of Z is set if `not_z` is false; bit 5 is always set."""

_THE_SAME = {
    "mode": [0], "difficulty": [0], "ram_size": [128], "timer_was_read": [_FALSE],
    "directions": [0, 0],
    "status": [1],  # the processor was halted at the frame's end, and not lost
    "vsync_end": [0x7FFFFFFF],  # VSYNC is over
    "stars": [_FALSE], "star": [0],  # a fault of the TIA that Cosmic Ark lives on
    "has_generator": [_FALSE], "paddle_min": [PADDLE_LOWEST], "paddle_max": [PADDLE_HIGHEST],
}  # fmt: skip

_MIRRORED = [int(f"{byte:08b}"[::-1], 2) for byte in range(256)]

_ROM_BASE = 0xF000
"""Where Pong runs; the cartridge can be seen at other addresses as well."""

_COLOUR_COPIES = 0x01010101
"""ALE has a colour four times in one number."""

_Numbers = dict[str, list[int]]


def read_state(data: bytes) -> NDArray[np.void]:
    """The console's record in a state that ALE serialised between two frames.

    Args:
        data: what ``cloneState().serialize()`` returned.

    Returns:
        [1] STATE.

    Raises:
        EmulatorError: it is no such state, or one that Pong never reaches.
    """
    ale = _numbers_in(data)
    fields = _fields_of(ale)
    if _with_fields(ale, fields) != ale:
        raise _other_state("numbers that Pong never has")
    state = np.zeros(1, STATE)
    try:
        for name, numbers in fields.items():
            state[name] = numbers
    except OverflowError as error:
        raise _other_state(str(error)) from error
    if fault := fault_in(state):
        raise _other_state(fault)
    return state


def write_state(state: NDArray[np.void], base: bytes) -> bytes:
    """A state for ALE.

    Args:
        state: [1] STATE, without a fault.
        base: a state that ALE serialised; what the record does not determine is taken from it.

    Raises:
        EmulatorError: `base` has another layout.
    """
    fields: _Numbers = {name: state[name].ravel().tolist() for name in STATE.names or ()}
    changed = bytearray(base)
    numbers = _with_fields(_numbers_in(base), fields)
    for run in _runs_in(base):
        values = itertools.chain.from_iterable(map(numbers.__getitem__, run.names))
        run.form.pack_into(changed, run.place, *values)
    return bytes(changed)


def is_between_frames(data: bytes) -> bool:
    """Whether the frame before had an end: whether the processor was halted and not lost."""
    return _numbers_in(data)["status"] == _THE_SAME["status"]


def _fields_of(ale: _Numbers) -> _Numbers:
    """The record's fields."""
    fields = {name: ale[name] for name in _PLAIN}
    for name, bit in _TRUTHS.items():
        fields[name] = [bit if number == _TRUE else 0 for number in ale[name]]
    flags = sum(bit for name, bit in _FLAGS.items() if ale[name] == [_TRUE])
    fields["p"] = [0x20 | flags ^ _FLAGS["not_z"]]
    fields["pc"] = [ale["pc"][0] & 0x7FF]
    cycle, line = _beam_of(ale)
    fields["cycle"] = [cycle]
    fields["timer_set"] = [ale["timer_set"][0] - line]
    fields["emptied_until"] = [ale["emptied_until"][0] - line]
    fields["resistance"] = [*ale["right_paddle"], *ale["left_paddle"], 0, 0]
    latches = ale["collisions"][0]
    fields["collisions"] = [latches & 0x1FFF | (latches & 0x6000) << 1]
    fields["tia"] = _registers_of(ale)
    return fields


def _registers_of(ale: _Numbers) -> list[int]:
    tia = [0] * _NUM_REGISTERS
    for name, at in _PLAIN_REGISTERS.items():
        tia[at : at + len(ale[name])] = ale[name]
    for name, at in _COLOURS.items():
        tia[at : at + len(ale[name])] = [number & 0xFF for number in ale[name]]
    for name, (at, bit) in _TRUE_REGISTERS.items():
        bits = [bit if number == _TRUE else 0 for number in ale[name]]
        tia[at : at + len(bits)] = bits
    playfield = ale["pf"][0]
    tia[_PF] = playfield << 4 & 0xF0, playfield >> 4 & 0xFF, playfield >> 12 & 0xFF
    tia[_HM] = [number << 4 & 0xF0 for number in ale["hm"]]
    return tia


def _with_fields(base: _Numbers, fields: _Numbers) -> _Numbers:
    """ALE's numbers: `base`, changed where the record's fields determine it."""
    ale = base | _THE_SAME
    for name in _PLAIN:
        ale[name] = fields[name]
    for name in _TRUTHS:
        ale[name] = [_TRUE if number else _FALSE for number in fields[name]]
    flags = fields["p"][0] ^ _FLAGS["not_z"]
    for name, bit in _FLAGS.items():
        ale[name] = [_TRUE if flags & bit else _FALSE]
    ale["pc"] = [_ROM_BASE | fields["pc"][0]]
    _, line = _beam_of(ale)
    ale["cycles"] = [line + fields["cycle"][0]]
    ale["timer_set"] = [line + fields["timer_set"][0]]
    ale["emptied_until"] = [line + fields["emptied_until"][0]]
    ale["right_paddle"], ale["left_paddle"] = fields["resistance"][:1], fields["resistance"][1:2]
    latches = fields["collisions"][0]
    ale["collisions"] = [latches & 0x1FFF | (latches & 0xC000) >> 1]
    _set_registers(ale, fields["tia"])
    _derive(ale, fields)
    return ale


def _set_registers(ale: _Numbers, tia: list[int]) -> None:
    for name, at in _PLAIN_REGISTERS.items():
        ale[name] = tia[at : at + len(ale[name])]
    for name, at in _COLOURS.items():
        copies = [number * _COLOUR_COPIES for number in tia[at : at + len(ale[name])]]
        ale[name] = [number - (number >> 31 << 32) for number in copies]
    for name, (at, _) in _TRUE_REGISTERS.items():
        bits = tia[at : at + len(ale[name])]
        ale[name] = [_TRUE if bit else _FALSE for bit in bits]
    first, second, third = tia[_PF]
    ale["pf"] = [first >> 4 | second << 4 | third << 12]
    ale["hm"] = [number >> 4 for number in tia[_HM]]


def _derive(ale: _Numbers, fields: _Numbers) -> None:
    """Fill in what follows from the record: ALE keeps it, instead of working it out."""
    tia = fields["tia"]
    shown = [fields["old_grp"][k] if tia[0x25 + k] else tia[0x1B + k] for k in range(2)]
    shown = [_MIRRORED[shown[k]] if tia[0x0B + k] else shown[k] for k in range(2)]
    missiles = [tia[0x1D + k] & ~tia[0x28 + k] for k in range(2)]
    ball = fields["old_enabl"][0] if tia[0x27] else tia[0x1F]
    objects = (shown[0], missiles[0], shown[1], missiles[1], ball, ale["pf"][0])
    ale["shown_grp"] = shown
    ale["objects"] = [sum(1 << k for k, pixels in enumerate(objects) if pixels)]
    ale["priority"] = [(tia[0x0A] & 6) << 5]
    left, right = fields["ram"][13:15]
    ale["score"] = [right - left]
    ale["is_over"] = [_TRUE if 21 in (left, right) else _FALSE]


def _beam_of(ale: _Numbers) -> tuple[int, int]:
    """Where the frame ended: in which cycle of its line, and the cycle in which that line began.

    ALE's cycles are counted from the frame's beginning, which lay somewhere in a line.
    """
    (start,), (cycles,) = ale["frame_start"], ale["cycles"]
    if start % 3:
        raise _other_state("a frame that began between two cycles")
    cycle = (cycles - start // 3) % 76
    return cycle, cycles - cycle


# The layout.


@dataclass(frozen=True)
class _Run:
    """Numbers that lie side by side.

    Attributes:
        place: of the first, in bytes.
        form: of all.
        names: of each, with the numbers that have it.
    """

    place: int
    form: struct.Struct
    names: dict[str, slice]


def _numbers_in(data: bytes) -> _Numbers:
    """All numbers of a serialised state, by name.

    Raises:
        EmulatorError: its parts are not the expected ones.
    """
    numbers: _Numbers = {}
    for run in _runs_in(data):
        values = list(run.form.unpack_from(data, run.place))
        for name, which in run.names.items():
            numbers[name] = values[which]
    return numbers


def _runs_in(data: bytes) -> tuple[_Run, ...]:
    """Where a serialised state has its numbers, after a look at its texts and lengths."""
    length = int.from_bytes(data[_GENERATOR_AT : _GENERATOR_AT + 4], "little")
    size, runs, texts = _lay_out(min(length, len(data)))
    if size != len(data):
        raise _other_state(f"one of {len(data)} bytes")
    for place, text in texts:
        if not data.startswith(text, place):
            raise _other_state(f"other parts, at byte {place}")
    return runs


@functools.lru_cache(8)
def _lay_out(generator: int) -> tuple[int, tuple[_Run, ...], list[tuple[int, bytes]]]:
    """The layout for a generator's text of so many bytes: size, numbers, texts at their places."""
    runs: list[_Run] = []
    texts: list[tuple[int, bytes]] = []
    place = 0
    for part in _PARTS:
        if isinstance(part, bytes):
            texts.append((place, len(part).to_bytes(4, "little") + part))
            place += 4 + len(part)
        elif part is _GENERATOR:
            place += 4 + generator
        else:
            words = [word.partition(":")[::2] for word in part.split()]
            ends = [0, *itertools.accumulate(int(count or 1) for _, count in words)]
            names = {name: slice(*ends[k : k + 2]) for k, (name, _) in enumerate(words)}
            runs.append(_Run(place, struct.Struct(f"<{ends[-1]}i"), names))
            place += 4 * ends[-1]
    texts.append((_SIZE_AT, (place - 8 - _SIZE_AT - 4).to_bytes(4, "little")))
    return place, tuple(runs), texts


def _other_state(got: str) -> EmulatorError:
    advice = "install ale-py 0.12.1, and take the state between two frames"
    return EmulatorError(expected("a state of Pong as ale-py 0.12.1 writes it", got, advice))
