"""Expressions in a cartridge's facts: of its memory, as typed Python.

``xB9`` is a byte of the console's memory, by its address; ``cE9`` is one of the cartridge's own
memory; ``mode`` is the number of the game on the cartridge. ``old.`` is a value after the frame
before. Expressions may call the helpers of `atari.machine.digits`.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import re
from collections.abc import Sequence
from types import ModuleType


def to_typed(formula: str, noted: Sequence[str] = ()) -> str:
    """Write an expression as typed Python; `noted` are the names whose old values are noted."""
    return ast.unparse(_Names(noted).visit(_parse(formula)))


def is_byte(name: str) -> bool:
    """Whether a name in an expression is a byte's."""
    return bool(re.fullmatch("[xc][89A-F][0-9A-F]", name))


def make_module(title: str, source: str) -> ModuleType:
    """Make a module from its source, which `inspect` can read."""
    module = ModuleType(title)
    path = f"<{title}, {hashlib.sha256(source.encode()).hexdigest()[:12]}>"
    # Here Python finds the source of code that is in no file.
    linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
    exec(compile(source, path, "exec"), vars(module))
    return module


class _Names(ast.NodeTransformer):
    """Replaces names in the facts by fields of the record."""

    def __init__(self, noted: Sequence[str]) -> None:
        self._noted = noted

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the name of a byte or of the mode by the record's element."""
        if node.id == "mode":
            return _parse("m.mode")
        return _parse(_byte(node.id)) if is_byte(node.id) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace ``old.NAME`` by its noted value."""
        if ast.unparse(node.value) != "old":
            raise SyntaxError(f"expected old.NAME, got {ast.unparse(node)}")
        return _parse(f"m.noted[{self._noted.index(node.attr)}]")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Expand a helper with several arguments; in typed Python, each has one."""
        name = ast.unparse(node.func)
        arguments = [ast.unparse(self.visit(argument)) for argument in node.args]
        if name == "dec":
            text = f"dec({arguments[0]})"
            for argument in arguments[1:]:
                text = f"(100 * {text} + dec({argument}))"
        elif arguments[:1] == ["board"]:
            text = " + ".join(f"{name}(m, {value})" for value in arguments[1:])
        else:
            text = f"{name}({', '.join(arguments)})"
        return _parse(f"({text})")


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _byte(name: str) -> str:
    """Return the element of the record for ``xB9`` or ``cB9``."""
    memory = {"x": "ram", "c": "extra_ram"}[name[0]]
    return f"m.{memory}[{int(name[1:], 16) & 127}]"
