"""Expressions of typed Python as LLVM IR.

`atari.machine.lowering` adds the statements. Source: the LLVM Language Reference Manual.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence

import numpy as np

from pixelpong.atari.machine.program import (
    BOOL,
    INT,
    NOTHING,
    POINTER,
    WIDE,
    Program,
    Value,
    constant,
)
from pixelpong.atari.machine.typed import WIDE_BITS

_PURE = ("wide", "min", "max", "lowest_bit", "rounds_that_meet", "columns")
_BUILT_IN = (*_PURE, "fill", "copy", "blend")

ARITHMETIC: dict[type, tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.FloorDiv: ("udiv", operator.floordiv),
    ast.Mod: ("urem", operator.mod),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("ashr", operator.rshift),
}
"""For each Python operator, LLVM's instruction and the function that folds constants."""

_COMPARISONS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip

_LANES = f"<{WIDE_BITS} x i8>"  # a byte for each bit of a wide number


def _ramp(step: int) -> str:
    """List the bytes 0, step, 2·step …"""
    return ", ".join(f"i8 {step * k & 0xFF}" for k in range(WIDE_BITS))


class Expressions:
    """Translates the expressions of one function to lines of IR."""

    def __init__(self, program: Program, name: str) -> None:
        self._program, self._name = program, name
        self._allocations: list[str] = []
        self._lines: list[str] = []
        self._variables: dict[str, str] = {}
        self._pointers: set[str] = set()
        self._count = 0
        self.is_closed = False  # whether the last block has ended with a jump

    # Lines.

    def _put(self, line: str) -> None:
        if not self.is_closed:  # code after a jump is never reached
            self._lines.append(f"  {line}")

    def _new(self, text: str) -> str:
        self._count += 1
        self._put(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def _end(self, line: str) -> None:
        self._put(line)
        self.is_closed = True

    def _fresh_label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def _refuse(self, node: ast.AST) -> SyntaxError:
        return SyntaxError(f"{self._name}: not typed Python: {ast.unparse(node)}")

    # Values.

    def _to(self, kind: str, value: Value) -> str:
        """Return the value as an operand of the given type."""
        if value.kind == WIDE and kind not in (WIDE, BOOL, "i128"):
            raise SyntaxError(f"{self._name}: expected an Int, got a Wide")
        if value.kind == kind or (isinstance(value.name, int) and kind != BOOL):
            return str(value.name)
        if kind == BOOL:
            return self._new(f"icmp ne {value.kind} {value.name}, 0")
        widens = int(kind[1:]) > int(value.kind[1:])
        return self._new(f"{'zext' if widens else 'trunc'} {value.kind} {value.name} to {kind}")

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int(number)):
                return constant(int(number))
            case ast.Name(id=name) if known := self._look_up(name):
                return known
            case ast.Attribute() | ast.Subscript():
                return self._load(self._locate(node))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return self._binary(type(op), self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                return self._unary(op, self._value(operand))
            case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=others)]):
                return self._is_among(self._value(left), others)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return self._compare(type(op), self._value(left), self._value(right))
            case ast.BoolOp(op=op, values=values):
                return self._both(op, [self._to(BOOL, self._value(node)) for node in values])
            case ast.IfExp(test=test, body=yes, orelse=no) if not self._acts(yes, no):
                return self._select(self._value(test), self._value(yes), self._value(no))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (
                name in _BUILT_IN or name in self._program.signatures
            ):
                return self._call(name, [self._value(node) for node in args])
        raise self._refuse(node)

    def _acts(self, *nodes: ast.expr) -> bool:
        """Return whether an expression could change the machine or fail: by a call or division."""
        for part in (part for node in nodes for part in ast.walk(node)):
            match part:
                case ast.Call(func=ast.Name(id=name)) if name not in _PURE:
                    parameters, _ = self._program.signatures.get(name, ({"": POINTER}, ""))
                    if POINTER in parameters.values():
                        return True
                case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), right=right):
                    if not isinstance(right, ast.Constant) and not self._is_constant(right):
                        return True
        return False

    def _is_constant(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Name)
            and node.id not in self._variables
            and isinstance(self._program.names.get(node.id), int)
            and not self._program.constant_outside(node.id)
        )

    def _look_up(self, name: str) -> Value | None:
        if name in self._variables:
            return self._get_variable(name)
        if name in self._pointers:
            return Value(POINTER, f"%{name}")
        if symbol := self._program.constant_outside(name):
            return Value(INT, self._new(f"load {INT}, ptr @{symbol}"))
        number = self._program.names.get(name)
        return constant(int(number)) if isinstance(number, int) else None

    def _binary(self, op: type, a: Value, b: Value) -> Value:
        instruction, fold = ARITHMETIC[op]
        if isinstance(a.name, int) and isinstance(b.name, int):
            return constant(fold(a.name, b.name))
        if a.kind == b.kind == BOOL and op in (ast.BitAnd, ast.BitOr, ast.BitXor):
            return Value(BOOL, self._new(f"{instruction} {BOOL} {a.name}, {b.name}"))
        is_shift = op in (ast.LShift, ast.RShift)
        kind = WIDE if WIDE in ((a.kind,) if is_shift else (a.kind, b.kind)) else INT
        if is_shift and isinstance(b.name, int) and not 0 <= b.name < int(kind[1:]):
            raise SyntaxError(f"{self._name}: {kind} cannot be shifted by {b.name}")
        if op is ast.RShift and kind == WIDE:
            instruction = "lshr"
        left = self._to(kind, a)
        return Value(kind, self._new(f"{instruction} {kind} {left}, {self._to(kind, b)}"))

    def _unary(self, op: ast.unaryop, value: Value) -> Value:
        if isinstance(op, ast.USub):
            return self._binary(ast.Sub, constant(0), value)
        if value.kind == BOOL:  # Python will refuse this too
            raise SyntaxError(f"{self._name}: ~ needs a number, not a comparison")
        return self._binary(ast.BitXor, value, Value(value.kind, -1))

    def _is_among(self, value: Value, others: Sequence[ast.expr]) -> Value:
        equal = [self._compare(ast.Eq, value, self._value(node)) for node in others]
        return self._both(ast.Or(), [str(each.name) for each in equal])

    def _compare(self, op: type[ast.cmpop], a: Value, b: Value) -> Value:
        kind = WIDE if WIDE in (a.kind, b.kind) else INT
        for number in (a.name, b.name):
            if kind == INT and isinstance(number, int) and number >= 1 << 31:
                raise SyntaxError(f"{self._name}: {number} does not fit in an Int")
        left = self._to(kind, a)
        comparison = _COMPARISONS[op]
        if kind == WIDE:
            comparison = comparison.replace("s", "u")
        name = self._new(f"icmp {comparison} {kind} {left}, {self._to(kind, b)}")
        return Value(BOOL, name)

    def _both(self, op: ast.boolop, values: list[str]) -> Value:
        """Compute ``and`` or ``or`` as a value; all operands are computed, which costs nothing."""
        instruction = "and" if isinstance(op, ast.And) else "or"
        result, *others = values
        for operand in others:
            result = self._new(f"{instruction} {BOOL} {result}, {operand}")
        return Value(BOOL, result)

    def _select(self, test: Value, yes: Value, no: Value) -> Value:
        kind = WIDE if WIDE in (yes.kind, no.kind) else INT
        condition, a, b = self._to(BOOL, test), self._to(kind, yes), self._to(kind, no)
        return Value(kind, self._new(f"select {BOOL} {condition}, {kind} {a}, {kind} {b}"))

    # Memory.

    def _locate(self, node: ast.expr) -> Value:
        """Find the location of a field, or of an element of a field or table."""
        indices: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            indices.insert(0, node.slice)
            node = node.value
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._field(node.value.id, node.attr, indices)
        assert isinstance(node, ast.Name)
        index = self._value(indices[0])
        if node.id in self._pointers:
            return Value("i8", self._element(f"%{node.id}", 1, index))
        kind, row = self._program.table(node.id)
        if row > 1:
            index = self._binary(ast.Mult, index, constant(row))
            index = self._binary(ast.Add, index, self._value(indices[1]))
        return Value(
            kind, self._element(f"@{self._program.symbol(node.id)}", int(kind[1:]) // 8, index)
        )

    def _field(self, machine: str, name: str, indices: list[ast.expr]) -> Value:
        """Find a field in the record; 64-bit words are the parts of one wide number."""
        fields = self._program.machine.fields
        assert fields is not None
        assert name in fields, f"the machine has no {name}"
        dtype, offset = fields[name][:2]
        base, shape, size = dtype.base, dtype.shape, dtype.base.itemsize
        if base == np.uint64:
            size, shape = size * shape[-1], shape[:-1]
        assert len(indices) <= len(shape) <= 1, f"{name} has {len(shape)} axes"
        address = f"%{machine}"
        if offset:
            address = self._new(f"getelementptr inbounds i8, ptr {address}, i64 {offset}")
        if indices:
            address = self._element(address, size, self._value(indices[0]))
        if shape and not indices:
            return Value(POINTER, address)
        return Value(f"i{8 * size}", address, is_signed=base.kind == "i")

    def _element(self, start: str, size: int, index: Value) -> str:
        at = self._to("i64", index)
        return self._new(f"getelementptr inbounds [{size} x i8], ptr {start}, i64 {at}")

    def _load(self, location: Value) -> Value:
        if location.kind == POINTER:
            return location
        # The record has no padding, so its fields may not be aligned.
        name = self._new(f"load {location.kind}, ptr {location.name}, align 1")
        if location.is_signed and location.kind != INT:
            return Value(INT, self._new(f"sext {location.kind} {name} to {INT}"))
        kind = INT if int(location.kind[1:]) <= 32 else WIDE
        return Value(kind, self._to(kind, Value(location.kind, name)))

    def _store(self, location: Value, value: Value) -> None:
        operand = self._to(location.kind, value)
        self._put(f"store {location.kind} {operand}, ptr {location.name}, align 1")

    def _get_variable(self, name: str) -> Value:
        kind = self._variables[name]
        return Value(kind, self._new(f"load {kind}, ptr %{name}."))

    def _set_variable(self, name: str, value: Value) -> None:
        if name not in self._variables:
            self._variables[name] = INT if value.kind == BOOL else value.kind
            self._allocations.append(f"  %{name}. = alloca {self._variables[name]}")
        kind = self._variables[name]
        if (kind, value.kind) == (INT, WIDE):
            raise SyntaxError(f"{self._name}: expected an Int for {name}, got a Wide")
        self._put(f"store {kind} {self._to(kind, value)}, ptr %{name}.")

    # Calls.

    def _call(self, name: str, arguments: list[Value]) -> Value:
        match name:
            case "wide":
                is_known = isinstance(arguments[0].name, int)
                return Value(WIDE, arguments[0].name if is_known else self._to(WIDE, arguments[0]))
            case "min" | "max":
                a, b = (self._to(INT, value) for value in arguments)
                result = self._new(f"call {INT} @llvm.s{name}.{INT}({INT} {a}, {INT} {b})")
                return Value(INT, result)
            case "lowest_bit":
                kind, operand = arguments[0].kind, arguments[0].name
                result = self._new(f"call {kind} @llvm.cttz.{kind}({kind} {operand}, {BOOL} true)")
                if kind == WIDE:
                    result = self._new(f"trunc {kind} {result} to {INT}")
                return Value(INT, result)
            case "rounds_that_meet":
                return self._rounds_that_meet(*arguments)
            case "columns":
                return self._columns(*arguments)
            case "fill" | "copy":
                return self._move_bytes(name, *arguments)
            case "blend":
                return self._blend(*arguments)
        parameters, result = self._program.signatures[name]
        pairs = zip(parameters.values(), arguments, strict=True)
        operands = ", ".join(f"{kind} {self._to(kind, value)}" for kind, value in pairs)
        call = f"call {result} @{self._program.symbol(name)}({operands})"
        if result != NOTHING:
            return Value(result, self._new(call))
        self._put(call)
        return Value(NOTHING, "")

    def _rounds_that_meet(self, start: Value, step: Value, mask: Value) -> Value:
        assert isinstance(step.name, int)
        bytes_ = self._new(f"add {_LANES} {self._spread(start)}, <{_ramp(step.name)}>")
        masked = self._new(f"and {_LANES} {bytes_}, {self._spread(mask)}")
        met = self._new(f"icmp eq {_LANES} {masked}, zeroinitializer")
        return Value(WIDE, self._new(f"bitcast <{WIDE_BITS} x i1> {met} to {WIDE}"))

    def _columns(self, begin: Value, end: Value) -> Value:
        if isinstance(begin.name, int) and isinstance(end.name, int):
            return Value(WIDE, (1 << end.name) - (1 << begin.name))
        is_after = self._new(f"icmp ule {_LANES} {self._spread(begin)}, <{_ramp(1)}>")
        is_before = self._new(f"icmp ugt {_LANES} {self._spread(end)}, <{_ramp(1)}>")
        result = self._new(f"and <{WIDE_BITS} x i1> {is_after}, {is_before}")
        return Value(WIDE, self._new(f"bitcast <{WIDE_BITS} x i1> {result} to {WIDE}"))

    def _spread(self, value: Value) -> str:
        """Make a vector that has the byte in every lane."""
        single = self._new(f"insertelement {_LANES} poison, i8 {self._to('i8', value)}, i64 0")
        zeros = f"<{WIDE_BITS} x i32> zeroinitializer"
        return self._new(f"shufflevector {_LANES} {single}, {_LANES} poison, {zeros}")

    def _blend(self, array: Value, at: Value, mask: Value, value: Value) -> Value:
        row, byte = self._element(str(array.name), 1, at), self._to("i8", value)
        bits = self._to(WIDE, mask)
        self._put(f"call void @blend(ptr {row}, {WIDE} {bits}, i8 {byte})")
        return Value(NOTHING, "")

    def _move_bytes(self, name: str, array: Value, to: Value, source: Value, count: Value) -> Value:
        assert array.kind == POINTER
        target = self._element(str(array.name), 1, to)
        size = self._to("i64", count)
        if name == "fill":
            byte = self._to("i8", source)
            move = f"@llvm.memset.p0.i64(ptr {target}, i8 {byte}"
        else:
            start = self._element(str(array.name), 1, source)
            move = f"@llvm.memmove.p0.p0.i64(ptr {target}, ptr {start}"
        self._put(f"call void {move}, i64 {size}, i1 false)")
        return Value(NOTHING, "")
