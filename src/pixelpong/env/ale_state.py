"""Converts ALE's serialised state to the console's record, and back.

ALE writes a state as a row of little-endian int32, truth values as one of two patterns of 32 bits,
and texts as their length and their characters. `_PARTS` names them all. Between two frames of Pong
there are four kinds of values:

- Those that the record holds in another form: ALE counts times from the start of the last frame,
  has four bits of a motion, one number for the playfield, and the paddles in reverse order.
- Those that follow from the record: which objects have pixels, the points, the end of the game.
- Those that never vary. These are checked.
- Those that do not affect the future: the random generator that fills the memory when the console
  is switched on, the sound, the frame counters, the clocks of the picture already drawn.

A state that was read is written again and compared with the original. So a state of another form
(from another version of ale-py, or a console that went astray) is refused, and never misread.

Covered: both directions, the layout and its check. Not covered: ALE itself (`pixelpong.env.ale`).

Source: ALE 0.12, the ``save`` and ``load`` of its parts; tests compare this file with ale-py.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable
from typing import NamedTuple

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
"""The place of the number of bytes that follow (less the paddles' limits), and of the text."""

_ROM_BASE = 0xF000
"""The address where Pong runs; the cartridge is visible at other addresses too."""


class _Kind(NamedTuple):
    """How to convert numbers of ALE to numbers of the record, and back."""

    read: Callable[[int], int]
    write: Callable[[int], int]


def _truth(bit: int) -> _Kind:
    """True or false; in the record, a bit for true."""
    return _Kind(lambda n: bit if n == _TRUE else 0, lambda n: _TRUE if n else _FALSE)


def _four_times(colour: int) -> int:
    """A colour in ALE's form: four times in one signed number."""
    return colour * 0x01010101 - (colour >> 7 << 32)


_SAME = _Kind(int, int)
_COLOUR = _Kind(lambda n: n & 0xFF, _four_times)
_MOTION = _Kind(lambda n: n << 4 & 0xF0, lambda n: n >> 4)
_LATCHES = _Kind(lambda n: n & 0x1FFF | (n & 0x6000) << 1, lambda n: n & 0x1FFF | (n & 0xC000) >> 1)

_LINKS: dict[str, tuple[str, int, _Kind]] = {
    **{
        name: (name, 0, _SAME)
        for name in ("a", "x", "y", "s", "ram", "timer", "timer_shift", "old_grp", "position")
    },
    "pc": ("pc", 0, _Kind(lambda n: n & 0x7FF, lambda n: n | _ROM_BASE)),
    "right_paddle": ("resistance", 0, _SAME), "left_paddle": ("resistance", 1, _SAME),
    "emptied": ("emptied", 0, _truth(1)), "old_enabl": ("old_enabl", 0, _truth(2)),
    "blanks": ("blanks", 0, _truth(1)), "collisions": ("collisions", 0, _LATCHES),
    "vsync": ("tia", 0x00, _SAME), "vblank": ("tia", 0x01, _SAME), "nusiz": ("tia", 0x04, _SAME),
    "colup": ("tia", 0x06, _COLOUR), "colupf": ("tia", 0x08, _COLOUR),
    "colubk": ("tia", 0x09, _COLOUR), "ctrlpf": ("tia", 0x0A, _SAME),
    "refp": ("tia", 0x0B, _truth(0x08)), "grp": ("tia", 0x1B, _SAME),
    "enam": ("tia", 0x1D, _truth(0x02)), "enabl": ("tia", 0x1F, _truth(0x02)),
    "hm": ("tia", 0x20, _MOTION), "vdelp": ("tia", 0x25, _truth(0x01)),
    "vdelbl": ("tia", 0x27, _truth(0x01)), "resmp": ("tia", 0x28, _truth(0x02)),
}  # fmt: skip
"""Values in both: ALE's name; the record's field, the place of the first number; the kind."""

_PF = slice(0x0D, 0x10)
"""The playfield's three registers; ALE has one number for them."""

_FLAGS = {"n": 0x80, "v": 0x40, "b": 0x10, "d": 0x08, "i": 0x04, "not_z": 0x02, "c": 0x01}
"""The processor's flags. The bit of Z is set if `not_z` is false; bit 5 is always set."""

_THE_SAME = {
    "mode": [0], "difficulty": [0], "ram_size": [128], "timer_was_read": [_FALSE],
    "directions": [0, 0],
    "status": [1],  # the processor halted at the frame's end, and did not go astray
    "vsync_end": [0x7FFFFFFF],  # VSYNC is over
    "stars": [_FALSE], "star": [0],  # a fault of the TIA that the game Cosmic Ark uses
    "has_generator": [_FALSE], "paddle_min": [PADDLE_LOWEST], "paddle_max": [PADDLE_HIGHEST],
}  # fmt: skip

_MIRRORED = [int(f"{byte:08b}"[::-1], 2) for byte in range(256)]

_Numbers = dict[str, list[int]]


def read_state(data: bytes) -> NDArray[np.void]:
    """The console's record in a state that ALE serialised between two frames.

    Args:
        data: what ``cloneState().serialize()`` returned.

    Returns:
        [1] STATE.

    Raises:
        EmulatorError: it is not such a state, or Pong never reaches it.
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
    """Make a state for ALE.

    Args:
        state: [1] STATE, without a fault.
        base: a state that ALE serialised; it supplies what the record does not determine.

    Raises:
        EmulatorError: `base` has an unknown layout.
    """
    changed = bytearray(base)
    numbers = _with_fields(_numbers_in(base), _numbers_of(state))
    for run in _runs_in(base):
        values = itertools.chain.from_iterable(map(numbers.__getitem__, run.names))
        run.form.pack_into(changed, run.place, *values)
    return bytes(changed)


def is_between_frames(data: bytes) -> bool:
    """Whether the last frame ended: the processor halted, and did not go astray."""
    return _numbers_in(data)["status"] == _THE_SAME["status"]


def _numbers_of(state: NDArray[np.void]) -> _Numbers:
    return {name: state[name].ravel().tolist() for name in STATE.names or ()}


def _fields_of(ale: _Numbers) -> _Numbers:
    """The record's fields."""
    fields = _numbers_of(np.zeros(1, STATE))
    for name, (field, at, kind) in _LINKS.items():
        fields[field][at : at + len(ale[name])] = map(kind.read, ale[name])
    flags = sum(bit for name, bit in _FLAGS.items() if ale[name] == [_TRUE])
    fields["p"] = [0x20 | flags ^ _FLAGS["not_z"]]
    cycle, line = _beam_of(ale)
    fields["cycle"] = [cycle]
    fields["timer_set"] = [ale["timer_set"][0] - line]
    fields["emptied_until"] = [ale["emptied_until"][0] - line]
    playfield = ale["pf"][0]
    fields["tia"][_PF] = playfield << 4 & 0xF0, playfield >> 4 & 0xFF, playfield >> 12 & 0xFF
    return fields


def _with_fields(base: _Numbers, fields: _Numbers) -> _Numbers:
    """ALE's numbers: `base`, with those that the record's fields determine."""
    ale = base | _THE_SAME
    for name, (field, at, kind) in _LINKS.items():
        ale[name] = list(map(kind.write, fields[field][at : at + len(base[name])]))
    flags = fields["p"][0] ^ _FLAGS["not_z"]
    for name, bit in _FLAGS.items():
        ale[name] = [_TRUE if flags & bit else _FALSE]
    _, line = _beam_of(ale)
    ale["cycles"] = [line + fields["cycle"][0]]
    ale["timer_set"] = [line + fields["timer_set"][0]]
    ale["emptied_until"] = [line + fields["emptied_until"][0]]
    first, second, third = fields["tia"][_PF]
    ale["pf"] = [first >> 4 | second << 4 | third << 12]
    _derive(ale, fields)
    return ale


def _derive(ale: _Numbers, fields: _Numbers) -> None:
    """Fill in the values that follow from the record, which ALE stores."""
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
    """Where the frame ended: the cycle of its line, and the cycle in which that line began.

    ALE counts cycles from the frame's start, which may be anywhere in a line.
    """
    (start,), (cycles,) = ale["frame_start"], ale["cycles"]
    if start % 3:
        raise _other_state("a frame that began between two cycles")
    cycle = (cycles - start // 3) % 76
    return cycle, cycles - cycle


# The layout.


class _Run(NamedTuple):
    """Adjacent numbers.

    Attributes:
        place: of the first number, in bytes.
        form: of all numbers, for `struct`.
        names: each name, with the count of its numbers.
    """

    place: int
    form: struct.Struct
    names: dict[str, slice]


def _numbers_in(data: bytes) -> _Numbers:
    """All numbers of a serialised state, by name.

    Raises:
        EmulatorError: it has unexpected parts.
    """
    numbers: _Numbers = {}
    for run in _runs_in(data):
        values = list(run.form.unpack_from(data, run.place))
        for name, which in run.names.items():
            numbers[name] = values[which]
    return numbers


def _runs_in(data: bytes) -> tuple[_Run, ...]:
    """Find the numbers of a serialised state, after checking its texts and lengths."""
    length = int.from_bytes(data[_GENERATOR_AT : _GENERATOR_AT + 4], "little")
    size, runs, texts = _lay_out(min(length, len(data)))
    if size != len(data):
        raise _other_state(f"{len(data)} bytes")
    for place, text in texts:
        if not data.startswith(text, place):
            raise _other_state(f"other parts, at byte {place}")
    return runs


@functools.lru_cache(8)
def _lay_out(generator: int) -> tuple[int, tuple[_Run, ...], list[tuple[int, bytes]]]:
    """The layout, by the length of the generator's text: size, numbers, texts at their places."""
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
