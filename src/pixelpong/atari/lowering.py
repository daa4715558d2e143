"""From typed Python (`pixelpong.atari.typed`) to LLVM IR, the text that LLVM compiles.

There is nothing to infer: the types of parameters and results stand in the source, a variable has
the type of what is first assigned to it, a field's type stands in the record. So a function is
translated in one walk over its syntax tree, a few lines of IR for each node. Local variables live in
memory (``alloca``); LLVM's optimizer moves them to registers.

Covered: the language that `pixelpong.atari.typed` describes; anything else is a `SyntaxError` that
quotes it. Not covered: optimizing and machine code (`pixelpong.atari.native`).

Source: the LLVM Language Reference Manual.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pixelpong.atari.typed import WIDE_BITS

INT, WIDE, BOOL, POINTER, NOTHING = "i32", f"i{WIDE_BITS}", "i1", "ptr", "void"

TYPES = {"Int": INT, "Wide": WIDE, "Machine": POINTER, "Bytes": POINTER, "None": NOTHING}
"""What the annotations stand for."""

_ARITHMETIC: dict[type, tuple[str, Callable[[int, int], int]]] = {
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
"""Python's operators: LLVM's instruction, and the function that folds constants."""

_COMPARISONS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip

_BUILT_IN = ("int", "wide", "min", "max", "lowest_bit", "rounds_that_meet", "fill", "copy")

_DECLARATIONS = f"""
declare {INT} @llvm.smin.{INT}({INT}, {INT})
declare {INT} @llvm.smax.{INT}({INT}, {INT})
declare {INT} @llvm.cttz.{INT}({INT}, {BOOL})
declare {WIDE} @llvm.cttz.{WIDE}({WIDE}, {BOOL})
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


class Value(NamedTuple):
    """A value: its type, and its name in the IR; a constant has its number instead."""

    type: str
    name: str | int

    @property
    def is_constant(self) -> bool:
        """Whether it is known now."""
        return isinstance(self.name, int)


class Place(NamedTuple):
    """A place in memory: the type of what lies there, its address, and whether it has a sign."""

    type: str
    address: str
    is_signed: bool = False


class Signature(NamedTuple):
    """Parameters by name, with their types, and the type of the result."""

    parameters: dict[str, str]
    result: str


def constant(number: int) -> Value:
    """A number that is known now."""
    return Value(INT if -(1 << 31) <= number < 1 << 32 else WIDE, number)


class Program:
    """Functions, constants and tables that are compiled together."""

    def __init__(self, machine: np.dtype[Any]) -> None:
        """An empty program.

        Args:
            machine: the record that ``m.name`` refers to.
        """
        self.machine = machine
        self.names: dict[str, Any] = {}
        self.signatures: dict[str, Signature] = {}
        self._functions: list[str] = []
        self._tables: dict[str, str] = {}

    def declare(self, name: str, parameters: dict[str, str], result: str) -> None:
        """Make a function known before it is added."""
        self.signatures[name] = Signature(parameters, result)

    def add_module(self, module: ModuleType, exports: Sequence[str] = ()) -> None:
        """Add all functions that a Python module defines, with the constants that they use.

        Args:
            module: written in typed Python.
            exports: functions to be called from outside.
        """
        self.names |= vars(module)
        own = [
            each
            for each in vars(module).values()
            if inspect.isfunction(each) and each.__module__ == module.__name__
        ]
        for function in own:
            kinds = {name: TYPES[str(kind)] for name, kind in function.__annotations__.items()}
            result = kinds.pop("return")
            self.declare(function.__name__, kinds, result)
        for function in own:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
            assert isinstance(tree, ast.FunctionDef)
            attribute = "alwaysinline" if hasattr(function, "is_inline") else "noinline"
            lowering = Lowering(self, tree.name, attribute, is_exported=tree.name in exports)
            lowering.body(tree.body)
            lowering.close()

    def add_function(self, text: str) -> None:
        """Add a function that is IR already."""
        self._functions.append(text)

    def table(self, name: str) -> tuple[str, int]:
        """A tuple of numbers, or of such tuples, as constant memory.

        Returns:
            The type of an element, and how many there are in a row.
        """
        value = self.names[name]
        row = len(value[0]) if isinstance(value[0], tuple) else 1
        flat = [x for each in value for x in each] if row > 1 else value
        kind = next(k for k, bits in (("i8", 8), ("i16", 16), (INT, 32)) if max(flat) < 1 << bits)
        items = ", ".join(f"{kind} {x}" for x in flat)
        kept = f"@{name} = private unnamed_addr constant [{len(flat)} x {kind}] [{items}]"
        assert self._tables.setdefault(name, kept) == kept, f"two tables are called {name}"
        return kind, row

    def to_ir(self) -> str:
        """The whole program as IR."""
        return "\n".join([*self._tables.values(), *self._functions, _DECLARATIONS])


class Lowering:
    """One function on its way to IR.

    `body` takes statements as syntax trees and `code` as source text; `label` and `goto` join the
    parts of a function that is made piece by piece, which Python has no words for.
    """

    def __init__(
        self, program: Program, name: str, attribute: str = "", *, is_exported: bool = False
    ) -> None:
        self._program, self._name = program, name
        parameters, self._result = program.signatures[name]
        self._allocations: list[str] = []
        self._lines: list[str] = []
        self._variables: dict[str, str] = {}
        self._loops: list[tuple[str, str]] = []  # where `continue` and `break` go
        self._count = 0
        self.is_closed = False  # whether the newest block has ended with a jump
        listed = ", ".join(f"{kind} noundef %{each}" for each, kind in parameters.items())
        linkage = "" if is_exported else "internal "
        self._head = f"define {linkage}{self._result} @{name}({listed}) nounwind {attribute} {{"
        self._pointers = {each for each, kind in parameters.items() if kind == POINTER}
        for each, kind in parameters.items():
            if kind != POINTER:
                self._set_variable(each, Value(kind, f"%{each}"))

    # Lines and blocks.

    def code(self, source: str) -> None:
        """Add statements given as text."""
        self.body(ast.parse(source).body)

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Add statements."""
        for each in statements:
            self._statement(each)

    def label(self, name: str) -> None:
        """Begin a block that can be jumped to."""
        if not self.is_closed:
            self._lines.append(f"  br label %{name}")
        self.is_closed = False
        self._lines.append(f"{name}:")

    def goto(self, name: str) -> None:
        """Go on at a label."""
        self._end(f"br label %{name}")

    def switch(self, variable: str, cases: dict[int, str], otherwise: str) -> None:
        """Go on at the label that belongs to the variable's value."""
        value = self._to(INT, self._get_variable(variable))
        listed = " ".join(f"{INT} {number}, label %{label}" for number, label in cases.items())
        self._end(f"switch {INT} {value}, label %{otherwise} [{listed}]")

    def close(self) -> None:
        """End the function and add it to the program."""
        if not self.is_closed:
            assert self._result == NOTHING, f"{self._name} ends without a value"
            self._end("ret void")
        self._program.add_function("\n".join([self._head, *self._allocations, *self._lines, "}"]))

    def _put(self, line: str) -> None:
        if not self.is_closed:  # nothing after a jump is ever reached
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
        return SyntaxError(f"{self._name}: no typed Python: {ast.unparse(node)}")

    # Values.

    def _to(self, kind: str, value: Value) -> str:
        """The value as an operand of a type."""
        if value.type == WIDE and kind not in (WIDE, BOOL, "i128"):
            raise SyntaxError(f"{self._name}: an Int is given a Wide")
        if value.is_constant and kind != BOOL:
            return str(value.name)
        if value.type == kind:
            return str(value.name)
        if kind == BOOL:
            return self._new(f"icmp ne {value.type} {value.name}, 0")
        widens = int(kind[1:]) > int(value.type[1:])
        return self._new(f"{'zext' if widens else 'trunc'} {value.type} {value.name} to {kind}")

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=int(number)):
                return constant(int(number))
            case ast.Name(id=name) if self._knows(name):
                return self._name_value(name)
            case ast.Attribute() | ast.Subscript():
                return self._load(self._place(node))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                a = self._value(left)
                return self._binary(type(op), a, self._value(right))
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert() as op, operand=operand):
                return self._unary(op, self._value(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return self._compare(type(op), self._value(left), self._value(right))
            case ast.BoolOp(op=op, values=values):
                return self._both(op, [self._to(BOOL, self._value(each)) for each in values])
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self._select(self._value(test), self._value(yes), self._value(no))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if self._calls(name):
                return self._call(name, [self._value(each) for each in args])
        raise self._refuse(node)

    def _knows(self, name: str) -> bool:
        own = name in self._variables or name in self._pointers
        return own or isinstance(self._program.names.get(name), int)

    def _calls(self, name: str) -> bool:
        return name in _BUILT_IN or name in self._program.signatures

    def _name_value(self, name: str) -> Value:
        if name in self._variables:
            return self._get_variable(name)
        if name in self._pointers:
            return Value(POINTER, f"%{name}")
        return constant(int(self._program.names[name]))

    def _binary(self, op: type, a: Value, b: Value) -> Value:
        instruction, fold = _ARITHMETIC[op]
        if isinstance(a.name, int) and isinstance(b.name, int):
            return constant(fold(a.name, b.name))
        if a.type == b.type == BOOL and op in (ast.BitAnd, ast.BitOr, ast.BitXor):
            return Value(BOOL, self._new(f"{instruction} {BOOL} {a.name}, {b.name}"))
        is_shift = op in (ast.LShift, ast.RShift)
        kind = WIDE if WIDE in ((a.type,) if is_shift else (a.type, b.type)) else INT
        if op is ast.RShift and kind == WIDE:
            instruction = "lshr"
        left = self._to(kind, a)
        return Value(kind, self._new(f"{instruction} {kind} {left}, {self._to(kind, b)}"))

    def _unary(self, op: ast.unaryop, value: Value) -> Value:
        if isinstance(op, ast.Not):
            return Value(BOOL, self._new(f"xor {BOOL} {self._to(BOOL, value)}, true"))
        if isinstance(op, ast.USub):
            return self._binary(ast.Sub, constant(0), value)
        if value.type == BOOL:
            value = Value(INT, self._to(INT, value))
        return self._binary(ast.BitXor, value, Value(value.type, -1))

    def _compare(self, op: type, a: Value, b: Value) -> Value:
        kind = WIDE if WIDE in (a.type, b.type) else INT
        left = self._to(kind, a)
        comparison = _COMPARISONS[op]
        if kind == WIDE:
            comparison = comparison.replace("s", "u")
        name = self._new(f"icmp {comparison} {kind} {left}, {self._to(kind, b)}")
        return Value(BOOL, name)

    def _both(self, op: ast.boolop, values: list[str]) -> Value:
        """``and`` and ``or`` as a value: all sides are computed, which costs nothing."""
        instruction = "and" if isinstance(op, ast.And) else "or"
        first, *others = values
        for each in others:
            first = self._new(f"{instruction} {BOOL} {first}, {each}")
        return Value(BOOL, first)

    def _select(self, test: Value, yes: Value, no: Value) -> Value:
        kind = WIDE if WIDE in (yes.type, no.type) else INT
        condition, a, b = self._to(BOOL, test), self._to(kind, yes), self._to(kind, no)
        return Value(kind, self._new(f"select {BOOL} {condition}, {kind} {a}, {kind} {b}"))

    # Memory.

    def _place(self, node: ast.expr) -> Place:
        """Where a field, or an element of a field or table, lies."""
        indices: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            indices.insert(0, node.slice)
            node = node.value
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._field(node.value.id, node.attr, indices)
        assert isinstance(node, ast.Name)
        index = self._value(indices[0])
        if node.id in self._pointers:
            return Place("i8", self._element(f"%{node.id}", 1, index))
        kind, row = self._program.table(node.id)
        if row > 1:
            index = self._binary(ast.Mult, index, constant(row))
            index = self._binary(ast.Add, index, self._value(indices[1]))
        return Place(kind, self._element(f"@{node.id}", int(kind[1:]) // 8, index))

    def _field(self, machine: str, name: str, indices: list[ast.expr]) -> Place:
        """A field of the record; words of 64 bits are the parts of one wide number."""
        fields = self._program.machine.fields
        assert fields is not None and name in fields, f"the machine has no {name}"
        dtype, offset = fields[name][:2]
        base, shape = (dtype.base, dtype.shape)
        size = base.itemsize
        if base == np.uint64:
            size, shape = size * shape[-1], shape[:-1]
        assert len(indices) <= len(shape) <= 1, f"{name} has {len(shape)} axes"
        address = f"%{machine}"
        if offset:
            address = self._new(f"getelementptr inbounds i8, ptr {address}, i64 {offset}")
        if indices:
            address = self._element(address, size, self._value(indices[0]))
        if shape and not indices:
            return Place(POINTER, address)
        return Place(f"i{8 * size}", address, is_signed=base.kind == "i")

    def _element(self, start: str, size: int, index: Value) -> str:
        at = self._to("i64", index)
        return self._new(f"getelementptr inbounds [{size} x i8], ptr {start}, i64 {at}")

    def _load(self, place: Place) -> Value:
        if place.type == POINTER:
            return Value(POINTER, place.address)
        bits = int(place.type[1:])
        # The record has no gaps, so nothing in it is sure to be aligned.
        name = self._new(f"load {place.type}, ptr {place.address}, align 1")
        kind = INT if bits <= 32 else WIDE
        if place.is_signed and bits < 32:
            return Value(INT, self._new(f"sext {place.type} {name} to {INT}"))
        return Value(kind, self._to(kind, Value(place.type, name)))

    def _store(self, place: Place, value: Value) -> None:
        operand = self._to(place.type, value)
        self._put(f"store {place.type} {operand}, ptr {place.address}, align 1")

    def _get_variable(self, name: str) -> Value:
        kind = self._variables[name]
        return Value(kind, self._new(f"load {kind}, ptr %{name}."))

    def _set_variable(self, name: str, value: Value) -> None:
        if name not in self._variables:
            self._variables[name] = INT if value.type == BOOL else value.type
            self._allocations.append(f"  %{name}. = alloca {self._variables[name]}")
        kind = self._variables[name]
        if (kind, value.type) == (INT, WIDE):
            raise SyntaxError(f"{self._name}: {name} is an Int and is given a Wide")
        self._put(f"store {kind} {self._to(kind, value)}, ptr %{name}.")

    # Calls.

    def _call(self, name: str, given: list[Value]) -> Value:
        match name:
            case "int" | "wide":
                kind = INT if name == "int" else WIDE
                if given[0].is_constant:
                    return Value(kind, given[0].name)
                return (
                    self._cut(given[0]) if name == "int" else Value(kind, self._to(kind, given[0]))
                )
            case "min" | "max":
                a, b = (self._to(INT, each) for each in given)
                return Value(
                    INT, self._new(f"call {INT} @llvm.s{name}.{INT}({INT} {a}, {INT} {b})")
                )
            case "lowest_bit":
                kind, operand = given[0].type, given[0].name
                found = self._new(f"call {kind} @llvm.cttz.{kind}({kind} {operand}, {BOOL} true)")
                return self._cut(Value(kind, found))
            case "rounds_that_meet":
                return self._rounds_that_meet(*given)
            case "fill" | "copy":
                return self._move_bytes(name, *given)
        parameters, result = self._program.signatures[name]
        pairs = zip(parameters.values(), given, strict=True)
        call = f"call {result} @{name}({', '.join(f'{k} {self._to(k, v)}' for k, v in pairs)})"
        if result == NOTHING:
            self._put(call)
            return Value(NOTHING, "")
        return Value(result, self._new(call))

    def _cut(self, value: Value) -> Value:
        """The lowest bits of a number, as an Int."""
        if value.type == WIDE:
            return Value(INT, self._new(f"trunc {WIDE} {value.name} to {INT}"))
        return Value(INT, self._to(INT, value))

    def _rounds_that_meet(self, start: Value, step: Value, mask: Value) -> Value:
        lanes = f"<{WIDE_BITS} x i8>"
        assert isinstance(step.name, int)
        ramp = ", ".join(f"i8 {step.name * k & 0xFF}" for k in range(WIDE_BITS))

        def spread(value: Value) -> str:
            one = self._new(f"insertelement {lanes} poison, i8 {self._to('i8', value)}, i64 0")
            nowhere = f"<{WIDE_BITS} x i32> zeroinitializer"
            return self._new(f"shufflevector {lanes} {one}, {lanes} poison, {nowhere}")

        bytes_ = self._new(f"add {lanes} {spread(start)}, <{ramp}>")
        masked = self._new(f"and {lanes} {bytes_}, {spread(mask)}")
        met = self._new(f"icmp eq {lanes} {masked}, zeroinitializer")
        return Value(WIDE, self._new(f"bitcast <{WIDE_BITS} x i1> {met} to {WIDE}"))

    def _move_bytes(self, name: str, array: Value, to: Value, what: Value, count: Value) -> Value:
        assert array.type == POINTER
        target = self._element(str(array.name), 1, to)
        size = self._to("i64", count)
        if name == "fill":
            byte = self._to("i8", what)
            self._put(
                f"call void @llvm.memset.p0.i64(ptr {target}, i8 {byte}, i64 {size}, i1 false)"
            )
        else:
            source = self._element(str(array.name), 1, what)
            self._put(
                f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
            )
        return Value(NOTHING, "")

    # Statements.

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, self._value(value))
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _ARITHMETIC:
                self._change(target, type(op), value)
            case ast.If():
                self._if(node)
            case ast.While(orelse=[]):
                self._while(node)
            case ast.For(
                target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"), keywords=[]), orelse=[]
            ):
                self._for(node)
            case ast.Break() | ast.Continue():
                self.goto(self._loops[-1][isinstance(node, ast.Break)])
            case ast.Return(value=None):
                self._end("ret void")
            case ast.Return(value=ast.expr() as value):
                self._end(f"ret {self._result} {self._to(self._result, self._value(value))}")
            case ast.Expr(value=ast.Call(func=ast.Name(id="goto"), args=[ast.Name(id=label)])):
                self.goto(label)
            case ast.Expr(value=ast.Call() as call):
                self._value(call)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise self._refuse(node)

    def _assign(self, targets: Sequence[ast.expr], value: Value) -> None:
        if value.type == BOOL:
            value = Value(INT, self._to(INT, value))
        for target in targets:
            if isinstance(target, ast.Name):
                self._set_variable(target.id, value)
            else:
                self._store(self._place(target), value)

    def _change(self, target: ast.expr, op: type, value: ast.expr) -> None:
        """``target op= value``; where the target lies is worked out once."""
        if isinstance(target, ast.Name):
            old = self._value(target)
            self._assign([target], self._binary(op, old, self._value(value)))
        else:
            place = self._place(target)
            old = self._load(place)
            self._store(place, self._binary(op, old, self._value(value)))

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go on at one of two labels; ``and`` and ``or`` stop at the first that decides."""
        match node:
            case ast.BoolOp(op=op, values=[*first, last]):
                for each in first:
                    on = self._fresh_label()
                    self._branch(each, *((on, no) if isinstance(op, ast.And) else (yes, on)))
                    self.label(on)
                self._branch(last, yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._branch(operand, no, yes)
            case _:
                self._end(f"br i1 {self._to(BOOL, self._value(node))}, label %{yes}, label %{no}")

    def _if(self, node: ast.If) -> None:
        yes, no, after = (self._fresh_label() for _ in range(3))
        self._branch(node.test, yes, no if node.orelse else after)
        self.label(yes)
        self.body(node.body)
        if node.orelse:
            self.goto(after)
            self.label(no)
            self.body(node.orelse)
        self.label(after)

    def _while(self, node: ast.While) -> None:
        test, body, after = (self._fresh_label() for _ in range(3))
        self.label(test)
        self._branch(node.test, body, after)
        self._loop_body(body, node.body, test, after)
        self.goto(test)
        self.label(after)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        start, stop, step = self._range([self._value(each) for each in node.iter.args])
        if not step.is_constant:
            raise self._refuse(node.iter)
        test, body, on, after = (self._fresh_label() for _ in range(4))
        end = self._to(INT, stop)
        self._set_variable(node.target.id, start)
        self.label(test)
        at = self._get_variable(node.target.id)
        assert isinstance(step.name, int)
        order = "slt" if step.name > 0 else "sgt"
        goes_on = self._new(f"icmp {order} {INT} {at.name}, {end}")
        self._end(f"br i1 {goes_on}, label %{body}, label %{after}")
        self._loop_body(body, node.body, on, after)
        self.label(on)
        at = self._get_variable(node.target.id)
        self._set_variable(node.target.id, self._binary(ast.Add, at, step))
        self.goto(test)
        self.label(after)

    def _range(self, bounds: list[Value]) -> tuple[Value, Value, Value]:
        if len(bounds) == 1:
            return constant(0), bounds[0], constant(1)
        return bounds[0], bounds[1], bounds[2] if len(bounds) > 2 else constant(1)

    def _loop_body(self, label: str, body: list[ast.stmt], again: str, after: str) -> None:
        self.label(label)
        self._loops.append((again, after))
        self.body(body)
        self._loops.pop()
