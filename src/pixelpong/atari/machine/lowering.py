"""Translates typed Python (`atari.machine.typed`) to LLVM IR, the text that LLVM compiles.

No types need to be inferred: the source has the types of parameters and results, a variable has the
type of its first value, and the record has the types of fields. So one walk over a function's
syntax tree translates it, with a few lines of IR for each node. Local variables live in memory
(``alloca``); LLVM's optimizer moves them to registers. Anything that is not part of the language
raises a `SyntaxError` that quotes it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Container, Sequence
from types import FunctionType, ModuleType

from pixelpong.atari.machine import ir
from pixelpong.atari.machine.program import (
    BOOL,
    INT,
    NOTHING,
    POINTER,
    TYPES,
    Program,
    Value,
    constant,
)


def lower_modules(
    program: Program,
    modules: Sequence[ModuleType],
    exports: Sequence[str] = (),
    outside: Container[str] = (),
) -> None:
    """Add the functions and constants of modules; `exports` can be called from outside.

    A function in a later module replaces a function with the same name in an earlier module.
    Another program defines the names in `outside`.
    """
    functions: dict[str, FunctionType] = {}
    program.exports.update(exports)
    for module in modules:
        names = vars(module)
        program.add_names({name: value for name, value in names.items() if name not in outside})
        for name, value in names.items():
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                functions[name] = value
    for name, function in functions.items():
        parameters = {
            parameter: TYPES[str(kind)] for parameter, kind in function.__annotations__.items()
        }
        result = parameters.pop("return")
        program.declare(name, parameters, result)
    for name, function in functions.items():
        is_inline = hasattr(function, "is_inline")
        if not program.has_functions and not is_inline and name not in exports:
            parameters, result = program.signatures[name]
            listed = ", ".join(parameters.values())
            program.functions.append(f"declare {result} @{program.symbol(name)}({listed})")
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        assert isinstance(tree, ast.FunctionDef)
        attribute = "alwaysinline" if is_inline else "noinline"
        lowering = Lowering(program, name, attribute)
        lowering.body(tree.body)
        lowering.close()


@functools.lru_cache(4096)
def _parse(source: str) -> list[ast.stmt]:
    """Parse statements, with a cache because a cartridge repeats instructions many times."""
    return ast.parse(source).body


class Lowering(ir.Expressions):
    """Translates one function to IR; `label` and `goto` join its parts."""

    def __init__(self, program: Program, name: str, attribute: str = "") -> None:
        super().__init__(program, name)
        parameters, self._result = program.signatures[name]
        listed = ", ".join(f"{kind} noundef %{parameter}" for parameter, kind in parameters.items())
        is_shared = program.is_linked and attribute != "alwaysinline"
        linkage = "" if is_shared or name in program.exports else "internal "
        start = f"define {linkage}{self._result} @{program.symbol(name)}({listed})"
        self._head = f"{start} nounwind {attribute} {{"
        self._pointers = {parameter for parameter, kind in parameters.items() if kind == POINTER}
        for parameter, kind in parameters.items():
            if kind != POINTER:
                self._set_variable(parameter, Value(kind, f"%{parameter}"))

    # Lines and blocks.

    def code(self, source: str) -> None:
        """Add statements from text."""
        self.body(_parse(source))

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Add statements."""
        for statement in statements:
            self._statement(statement)

    def label(self, name: str) -> None:
        """Start a block that a jump can reach."""
        if not self.is_closed:
            self._lines.append(f"  br label %{name}")
        self.is_closed = False
        self._lines.append(f"{name}:")

    def goto(self, name: str) -> None:
        """Jump to a label."""
        self._end(f"br label %{name}")

    def switch(self, variable: str, cases: dict[int, str], otherwise: str) -> None:
        """Jump to the label for the variable's value."""
        value = self._to(INT, self._get_variable(variable))
        listed = " ".join(f"{INT} {number}, label %{label}" for number, label in cases.items())
        self._end(f"switch {INT} {value}, label %{otherwise} [{listed}]")

    def close(self) -> None:
        """End the function and add it to the program."""
        if not self.is_closed:
            assert self._result == NOTHING, f"{self._name} ends without a value"
            self._end("ret void")
        text = "\n".join([self._head, *self._allocations, *self._lines, "}"])
        self._program.functions.append(text)

    # Statements.

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, self._value(value))
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in ir.ARITHMETIC:
                self._change(target, type(op), value)
            case ast.If():
                self._if(node)
            case ast.While(orelse=[]):
                self._while(node)
            case ast.For(
                target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"), keywords=[]), orelse=[]
            ):
                self._for(node)
            case ast.Return(value=None):
                self._end("ret void")
            case ast.Return(value=ast.expr() as value):
                self._end(f"ret {self._result} {self._to(self._result, self._value(value))}")
            case ast.Expr(value=ast.Call(func=ast.Name(id="goto"), args=[ast.Name(id=label)])):
                self.goto(label)
            case ast.Expr(value=ast.Call() as call):
                self._value(call)
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise self._refuse(node)

    def _assign(self, targets: Sequence[ast.expr], value: Value) -> None:
        if value.kind == BOOL:
            value = Value(INT, self._to(INT, value))
        for target in targets:
            if isinstance(target, ast.Name):
                self._set_variable(target.id, value)
            else:
                self._store(self._locate(target), value)

    def _change(self, target: ast.expr, op: type, value: ast.expr) -> None:
        """Translate ``target op= value``; the target's location is computed once."""
        if isinstance(target, ast.Name):
            old = self._value(target)
            self._assign([target], self._binary(op, old, self._value(value)))
        else:
            location = self._locate(target)
            old = self._load(location)
            self._store(location, self._binary(op, old, self._value(value)))

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Jump to one of two labels; ``and`` and ``or`` stop at the first decisive operand."""
        match node:
            case ast.BoolOp(op=op, values=[*first, last]):
                for operand in first:
                    rest = self._fresh_label()
                    ways = (rest, no) if isinstance(op, ast.And) else (yes, rest)
                    self._branch(operand, *ways)
                    self.label(rest)
                self._branch(last, yes, no)
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
        self.label(body)
        self.body(node.body)
        self.goto(test)
        self.label(after)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        assert isinstance(node.target, ast.Name)
        bounds = [self._value(bound) for bound in node.iter.args]
        if len(bounds) == 1:
            bounds.insert(0, constant(0))
        start, stop, step = [*bounds, constant(1)][:3]
        changed = {
            part.id
            for statement in node.body
            for part in ast.walk(statement)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        if not isinstance(step.name, int) or node.target.id in changed:
            raise self._refuse(node)
        test, body, after = (self._fresh_label() for _ in range(3))
        end = self._to(INT, stop)
        self._set_variable(node.target.id, start)
        self.label(test)
        index = self._get_variable(node.target.id)
        order = "slt" if step.name > 0 else "sgt"
        is_inside = self._new(f"icmp {order} {INT} {index.name}, {end}")
        self._end(f"br i1 {is_inside}, label %{body}, label %{after}")
        self.label(body)
        self.body(node.body)
        index = self._get_variable(node.target.id)
        self._set_variable(node.target.id, self._binary(ast.Add, index, step))
        self.goto(test)
        self.label(after)
