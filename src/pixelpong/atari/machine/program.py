"""A program of typed Python as LLVM IR: its functions, constants, tables and shared names.

Programs can be linked; then one defines tables and functions that another uses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pixelpong.atari.machine.typed import WIDE_BITS

INT, WIDE, BOOL, POINTER, NOTHING = "i32", f"i{WIDE_BITS}", "i1", "ptr", "void"

# The IR type of each annotation.
TYPES = {"Int": INT, "Wide": WIDE, "Machine": POINTER, "Bytes": POINTER, "None": NOTHING}

_DECLARATIONS = f"""
declare {INT} @llvm.smin.{INT}({INT}, {INT})
declare {INT} @llvm.smax.{INT}({INT}, {INT})
declare {INT} @llvm.cttz.{INT}({INT}, {BOOL})
declare {WIDE} @llvm.cttz.{WIDE}({WIDE}, {BOOL})
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _make_blend() -> str:
    """Make the function behind `blend`: three vectors select between old bytes and the new one."""
    lines = [f"define internal void @blend(ptr %row, {WIDE} %mask, i8 %byte) nounwind {{"]
    for k, n in ((0, 64), (64, 64), (128, 32)):
        kind = f"<{n} x i8>"
        lines.append(f"""  %a{k} = lshr {WIDE} %mask, {k}
  %b{k} = trunc {WIDE} %a{k} to i{n}
  %m{k} = bitcast i{n} %b{k} to <{n} x i1>
  %p{k} = getelementptr i8, ptr %row, i64 {k}
  %o{k} = load {kind}, ptr %p{k}, align 1
  %c{k} = insertelement {kind} poison, i8 %byte, i32 0
  %v{k} = shufflevector {kind} %c{k}, {kind} poison, <{n} x i32> zeroinitializer
  %r{k} = select <{n} x i1> %m{k}, {kind} %v{k}, {kind} %o{k}
  store {kind} %r{k}, ptr %p{k}, align 1""")
    return "\n".join([*lines, "  ret void", "}", ""])


class Value(NamedTuple):
    """A value or a location in memory: its type, and its name, number or address."""

    kind: str
    name: str | int  # an int if it is known at compile time
    is_signed: bool = False  # whether a location holds signed numbers


def constant(number: int) -> Value:
    """Make the value for a number that is known at compile time."""
    return Value(INT if -(1 << 31) <= number < 1 << 32 else WIDE, number)


@dataclass
class Program:
    """Functions, constants and tables that are compiled together."""

    machine: np.dtype[Any]  # the record that ``m.name`` refers to
    given: dict[str, Any] = field(default_factory=dict)  # constants that differ from the source's
    # Names that a linked program defines: constants and tables, with the type of an element; and
    # whether it also defines the functions, except those to inline.
    outside: dict[str, str] = field(default_factory=dict)
    is_linked: bool = False
    has_functions: bool = True
    # Tables of 32-bit numbers that code changes, by length; 0 if another program defines them.
    memory: dict[str, int] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)  # constants and tables of the source
    # For each function, the types of its parameters by name, and the type of the result.
    signatures: dict[str, tuple[dict[str, str], str]] = field(default_factory=dict)
    exports: set[str] = field(default_factory=set)  # names of functions that others may call
    functions: list[str] = field(default_factory=list)  # the functions as IR
    _tables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.update(self.given)

    def declare(self, name: str, parameters: dict[str, str], result: str) -> None:
        """Declare a function before it is added."""
        self.signatures[name] = parameters, result

    def add_names(self, names: dict[str, Any]) -> None:
        """Add constants and tables; a name not in `given` must have one value in all modules."""
        for name, value in names.items():
            if isinstance(value, int | tuple) and name not in self.given:
                assert self.names.setdefault(name, value) == value, f"two constants {name}"

    def table(self, name: str) -> tuple[str, int]:
        """Add a tuple of numbers or of tuples; return the elements' type and a row's length."""
        if name in self.memory:
            count, linkage = self.memory[name], "" if self.is_linked else "internal "
            definition = f"{linkage}global [{count} x {INT}] zeroinitializer"
            if not count:
                definition = f"external global {INT}"
            self._tables[name] = f"@{self.symbol(name)} = {definition}"
            return INT, 1
        if name in self.outside and name not in self.names:
            kind = self.outside[name]
            self._tables[name] = f"@{self.symbol(name)} = external constant {kind}"
            return kind, 1
        value = self.names[name]
        row = len(value[0]) if isinstance(value[0], tuple) else 1
        flat = [number for line in value for number in line] if row > 1 else value
        if not 0 <= min(flat) <= max(flat) < 1 << 32:
            raise SyntaxError(f"{name}: a table's numbers have 32 bits and no sign")
        kind = next(k for k, bits in (("i8", 8), ("i16", 16), (INT, 32)) if max(flat) < 1 << bits)
        items = ", ".join(f"{kind} {number}" for number in flat)
        linkage = "private unnamed_addr "
        if name in self.outside:
            linkage, kind = "", self.outside[name]
            items = ", ".join(f"{kind} {number}" for number in flat)
        definition = f"@{self.symbol(name)} = {linkage}constant [{len(flat)} x {kind}] [{items}]"
        self._tables[name] = definition
        return kind, row

    def symbol(self, name: str) -> str:
        """Return a function's or table's name in IR; shared names must differ from C functions'."""
        shared = (self.signatures, self.outside, self.memory)
        is_shared = self.is_linked and any(name in names for names in shared)
        is_shared = is_shared and name not in self.exports
        return f"atari.{name}" if is_shared else name

    def constant_outside(self, name: str) -> str | None:
        """Return the symbol of a constant if another program defines it."""
        if name not in self.outside or name in self.names or self.outside[name] != INT:
            return None
        self._tables[name] = f"@{self.symbol(name)} = external constant {INT}"
        return self.symbol(name)

    def define_outside(self) -> None:
        """Define the tables and constants that the other program refers to."""
        for name in self.memory:
            self.table(name)
        for name, kind in self.outside.items():
            if kind == INT:
                self._tables[f"{name} "] = (
                    f"@{self.symbol(name)} = constant {INT} {self.names[name]}"
                )
            else:
                self.table(name)

    def to_ir(self) -> str:
        """Return the whole program as IR."""
        return "\n".join([*self._tables.values(), *self.functions, _make_blend(), _DECLARATIONS])
