"""The parts of our LLVM IR: types, values, places, and a program of functions and tables.

Source: the LLVM Language Reference Manual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pixelpong.atari.typed import WIDE_BITS

INT, WIDE, BOOL, POINTER, NOTHING = "i32", f"i{WIDE_BITS}", "i1", "ptr", "void"

# By annotation.
TYPES = {"Int": INT, "Wide": WIDE, "Machine": POINTER, "Bytes": POINTER, "None": NOTHING}

_DECLARATIONS = f"""
declare {INT} @llvm.smin.{INT}({INT}, {INT})
declare {INT} @llvm.smax.{INT}({INT}, {INT})
declare {INT} @llvm.cttz.{INT}({INT}, {BOOL})
declare {WIDE} @llvm.cttz.{WIDE}({WIDE}, {BOOL})
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


class Value(NamedTuple):
    """A value: its type, and its name in the IR, or its number if it is a constant."""

    kind: str
    name: str | int

    @property
    def is_constant(self) -> bool:
        """Whether its number is known at compile time."""
        return isinstance(self.name, int)


class Place(NamedTuple):
    """A place in memory: the type of its value, its address, and whether it has a sign."""

    kind: str
    address: str
    is_signed: bool = False


class Signature(NamedTuple):
    """Parameters by name, with their types, and the type of the result."""

    parameters: dict[str, str]
    result: str


def constant(number: int) -> Value:
    """A number that is known at compile time."""
    return Value(INT if -(1 << 31) <= number < 1 << 32 else WIDE, number)


class Program:
    """Functions, constants and tables that are compiled together."""

    def __init__(self, machine: np.dtype[Any]) -> None:
        self.machine = machine  # the record that ``m.name`` refers to
        self.names: dict[str, Any] = {}  # constants and tables of the source
        self.signatures: dict[str, Signature] = {}
        self._functions: list[str] = []
        self._tables: dict[str, str] = {}

    def declare(self, name: str, parameters: dict[str, str], result: str) -> None:
        """Make a function known before it is added."""
        self.signatures[name] = Signature(parameters, result)

    def add_names(self, names: dict[str, Any]) -> None:
        """Make constants and tables known; a name must mean the same in every module."""
        for name, value in names.items():
            if isinstance(value, int | tuple):
                assert self.names.setdefault(name, value) == value, f"two constants {name}"

    def add_function(self, text: str) -> None:
        """Add a function given as IR."""
        self._functions.append(text)

    def table(self, name: str) -> tuple[str, int]:
        """Keep a tuple of numbers, or of tuples; return the elements' type and a row's length."""
        value = self.names[name]
        row = len(value[0]) if isinstance(value[0], tuple) else 1
        flat = [x for each in value for x in each] if row > 1 else value
        kind = next(k for k, bits in (("i8", 8), ("i16", 16), (INT, 32)) if max(flat) < 1 << bits)
        items = ", ".join(f"{kind} {x}" for x in flat)
        kept = f"@{name} = private unnamed_addr constant [{len(flat)} x {kind}] [{items}]"
        self._tables[name] = kept
        return kind, row

    def to_ir(self) -> str:
        """The whole program as IR."""
        return "\n".join([*self._tables.values(), *self._functions, _DECLARATIONS])
