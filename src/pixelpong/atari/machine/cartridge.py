"""What the machine must know about a cartridge: facts as data, and hints as text.

A cartridge's own code is not here. It is in the ROM, on the user's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pixelpong.atari.machine.banks import LINE, NONE, QUARTERS, WHOLE
from pixelpong.atari.machine.disassembly import BankedRom, Spot, read_vector
from pixelpong.atari.machine.opcodes import ALWAYS_SET
from pixelpong.atari.machine.playing import (
    JOYSTICK,
    JOYSTICKS,
    PADDLE,
    RIGHT_JOYSTICK,
    SWAPPED_JOYSTICKS,
)
from pixelpong.atari.machine.record import (
    DRAW_BOTH,
    DRAW_PICTURE,
    KEPT_SIZE,
    MACHINE,
    MAX_LINES,
    MOST_ACTS,
    NO_PADDLE,
    PADDLE_CENTRE,
    PADDLE_HIGHEST,
    PADDLE_LOWEST,
    ROWS,
    STATE_SIZE,
    TOP,
    make_machine,
)
from pixelpong.atari.machine.resetting import NO_SWITCH, RESET, RESET_FRAMES, SELECT
from pixelpong.atari.machine.scoring import Scoring

_SCHEMES = {"2K": NONE, "4K": NONE, "F8": WHOLE, "F6": WHOLE, "E0": QUARTERS, "FE": LINE}
# The parts of the ROM, in kB, that are mapped when a cartridge is switched on.
_FIRST_BANKS = {"F8": (4, 5, 6, 7), "F6": (0, 1, 2, 3), "E0": (4, 5, 6, 7)}


SWITCH_ACTIONS = {40: RESET, 41: SELECT}  # start actions that hold a switch


@dataclass(frozen=True)
class Controls:
    """What is plugged into the console: the constants of `atari.machine.playing.press`."""

    kind: int = JOYSTICK
    turned: int = 0  # the paddle that the player turns
    others: int = NO_PADDLE  # resistance in ohm of the paddles in the second port


CONTROLS = {
    "joystick": Controls(),
    "joystick on the right": Controls(RIGHT_JOYSTICK),
    "joysticks": Controls(JOYSTICKS),
    "joysticks swapped": Controls(SWAPPED_JOYSTICKS),
    "paddles": Controls(PADDLE, others=0),
    "paddles swapped": Controls(PADDLE, turned=1, others=0),
    "four paddles": Controls(PADDLE, turned=1, others=PADDLE_CENTRE),
    "paddles and joystick": Controls(PADDLE),
}


class Flavour(NamedTuple):
    """Which game of a cartridge is played, and with which of the console's difficulties."""

    mode: int = 0  # its number in ale-py
    difficulty: int = 0  # as in ale-py: 1 if the left side's switch is on A, plus 2 if the right's


@dataclass(frozen=True)
class Select:
    """How to choose a game on the cartridge: press SELECT until memory shows it."""

    frames: int  # frames of each press
    until: str  # an expression, see `atari.machine.formulas`
    first: int = 0  # frames of a press before the others
    # Then a menu. An action is pressed and released, each for a step of ALE, until an expression is
    # true, in which ``old.`` is a byte's value before the first press. Or it is held for a number
    # of steps, or RESET (`SWITCH_ACTIONS`) for a number of frames.
    menu: tuple[tuple[int, str | int], ...] = ()


@dataclass(frozen=True, eq=False)
class Cartridge:
    """The facts about a cartridge."""

    name: str
    sha256: str  # of its ROM
    scheme: str  # of its banks: 2K, 4K, F8, F6, E0 or FE; with 128 bytes of memory F8SC or F6SC
    top: int = TOP  # the line of the first row of its picture
    rows: int = ROWS
    max_lines: int = MAX_LINES
    palette: str = "NTSC"  # or PAL
    has_combs: bool = True  # whether HMOVE blanks pixels
    controls: str = "joystick"  # one of CONTROLS
    highest_ohm: int = PADDLE_HIGHEST
    actions: tuple[int, ...] = tuple(range(18))  # those that do something in the game
    legal_actions: tuple[int, ...] = tuple(range(18))
    # The bytes that its `press` expects for ALE's eighteen actions; they differ if it has its own.
    codes: tuple[int, ...] = tuple(range(18))
    scoring: Scoring | None = None  # None if it has functions of its own
    # How a game starts, see `atari.machine.starting`.
    reset_frames: int = 12  # frames for which RESET is held
    # Pairs of an action, or a switch (`SWITCH_ACTIONS`), and a number of frames: before a game is
    # chosen, and after the last RESET. The second player's actions are multiples of `SECOND`.
    first_actions: tuple[tuple[int, int], ...] = ()
    start_actions: tuple[tuple[int, int], ...] = ()
    # ALE's numbers of its games, and of the difficulties that change something; the first are those
    # with which it is loaded.
    modes: tuple[int, ...] = (0,)
    difficulties: tuple[int, ...] = (0,)
    select: Select | None = None
    coin_frames: int = 0  # frames of a start in which ALE draws whether an action sticks
    # What a start of the first game depends on: "constant", nothing; "timer", the number that the
    # timer starts with; "memory", also on what the memory held before.
    start: str = "constant"
    # For a cartridge that is compiled as one module, with typed functions of its own: offsets of
    # code that is reached by jumps through memory; modules whose functions replace the machine's;
    # code to add in front of instructions, by offset in the ROM; constants; the record.
    entries: tuple[int, ...] = ()
    modules: tuple[ModuleType, ...] = ()
    hints: Mapping[int, str] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    record: np.dtype[Any] = MACHINE
    own_drawing: str = ""  # the field of its record that its `draw_own` draws to

    @property
    def first_flavour(self) -> Flavour:
        """The game with which the cartridge is loaded."""
        return Flavour(self.modes[0], self.difficulties[0])

    @property
    def has_past(self) -> bool:
        """Whether its pictures show parts of older frames (`atari.machine.past`)."""
        return not self.modules

    @property
    def is_scored(self) -> bool:
        """Whether its points, lives and end are known, from facts or by functions of its own."""
        return self.scoring is not None or bool(self.modules)

    @property
    def has_memory(self) -> bool:
        """Whether the cartridge has 128 bytes of memory of its own."""
        return self.scheme.endswith("SC")

    @property
    def kept_size(self) -> int:
        """The size of a snapshot: the first bytes of its record, which the future depends on."""
        return KEPT_SIZE if self.has_past else STATE_SIZE

    @property
    def counted_frames(self) -> int:
        """The frames of a start that ALE counts, except presses of SELECT; the most in a menu."""
        return self.coin_frames + (MOST_ACTS if self.has_menu else 0)

    @property
    def has_menu(self) -> bool:
        """Whether a game is chosen in a menu of the cartridge."""
        return bool(self.select and self.select.menu)

    def banked(self, content: bytes) -> BankedRom:
        """Return the cartridge's ROM with its bank scheme."""
        return BankedRom(content, _SCHEMES[self.scheme[:2]], self.has_memory)

    def spots(self, rom: BankedRom) -> list[Spot]:
        """List the entries of the code: reset, interrupt, and targets of jumps through memory."""
        size = len(rom.content)
        vectors = [read_vector(rom.content, size - k) for k in (4, 2)]
        others = [0xF000 | offset for offset in self.entries]
        return [(address % size, address) for address in (*vectors, *others)]

    def all_constants(self, rom: BankedRom) -> dict[str, Any]:
        """Return this cartridge's values for constants of the machine's modules."""
        controls = CONTROLS[self.controls]
        return {
            "SCHEME": rom.scheme,
            "ROM_SIZE": len(rom.content),
            "HOTSPOT": rom.hotspot,
            "HAS_RAM": int(rom.has_ram),
            "TOP": self.top,
            "ROWS": self.rows,
            "MAX_LINES": self.max_lines,
            "HAS_COMBS": int(self.has_combs),
            "HAS_PAST": int(self.has_past),
            "KEPT_SIZE": self.kept_size,
            "CONTROLS": controls.kind,
            "TURNED": controls.turned,
            "HIGHEST_OHM": self.highest_ohm,
            **self._start_constants(),
            **self._board_constants(),
            "START_DRAWS": DRAW_BOTH if self.own_drawing else DRAW_PICTURE,
            **self.constants,
        }

    def _start_constants(self) -> dict[str, Any]:
        """Return the constants for `atari.machine.resetting`."""
        first = [(0, RESET, RESET_FRAMES), *map(_hold, self.first_actions)]
        steps = [(0, RESET, self.reset_frames - RESET_FRAMES), *map(_hold, self.start_actions)]
        steps = [step for step in steps if step[2]]
        select = self.select or Select(0, "1")
        return {
            "FIRST_STEPS": tuple(first),
            "NUM_FIRST_STEPS": len(first),
            "STEPS": tuple(steps),
            "NUM_STEPS": len(steps),
            "COUNTED_FRAMES": self.coin_frames,
            "FIRST_PRESS": select.first,
            "PRESS": select.frames,
        }

    def _board_constants(self) -> dict[str, Any]:
        """Return the constants for `atari.machine.digits`."""
        board = self.scoring.board if self.scoring else ()
        return {"BOARD": board, "CELLS": len(board)} if board else {}

    def code_of(self, action: int) -> int:
        """Return the byte for an action; as in ALE, one that the game lacks is no action."""
        return self.codes[action if action in self.legal_actions else 0]

    def power_on(self, rom: bytes, flavour: Flavour | None = None) -> NDArray[np.void]:
        """Make a machine that was just switched on, with empty memory: [1] of its record."""
        mode, difficulty = flavour or self.first_flavour
        machine: Any = make_machine(self.record)
        machine["mode"], machine["s"], machine["p"] = mode, 0xFF, ALWAYS_SET
        machine["swcha"], machine["fire"] = 0xFF, 0x80
        machine["swchb"] = NO_SWITCH | difficulty << 6
        controls = CONTROLS[self.controls]
        middle = (PADDLE_LOWEST + self.highest_ohm) // 2 if controls.kind == PADDLE else NO_PADDLE
        machine["resistance"] = [middle, middle, controls.others, controls.others]
        machine["banks"] = banks = _FIRST_BANKS.get(self.scheme[:2], (0,) * 4)
        last = 1024 * banks[3] if any(banks) else min(len(rom), 4096) - 1024
        machine["pc"] = read_vector(rom, last + 0x3FC)
        return machine


def _hold(step: tuple[int, int]) -> tuple[int, int, int]:
    """Return what is pressed in a step of a start: an action, the switches, for how many frames."""
    action, count = step
    switches = SWITCH_ACTIONS.get(action)
    return (action, NO_SWITCH, count) if switches is None else (0, switches, count)
