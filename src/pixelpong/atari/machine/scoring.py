"""Points, lives and the end of a game: from facts about its memory to compiled functions.

The facts are expressions, in the order in which they are computed after each frame:

    "is_on":  "old.is_on or xB9 == 5"
    "points": "dec(lo(xCC), xCD)"
    "over":   "is_on and xB9 == 0"
    "lives":  "xB9"

``xB9`` is a byte of the console's memory, by its address; ``cE9`` is one of the cartridge's own
memory. ``old.`` is a value after the frame before, of a byte or of an expression. An expression may
name those before it, and call the helpers of `atari.machine.digits`. ``count(board, 1, 2)`` is
the number of the board's cells with one of these values.

Four names have a meaning: ``points``; ``over``; ``reward``, by default the change of the points;
and ``lives``, by default 0. After the end ALE shows no lives, except in games that keep them.

What an expression needs of the frame before is noted in the record, so a snapshot contains it.
Source: the addresses and formulas are those of ALE 0.12, and tests compare them with its answers.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

from pixelpong.atari.machine.record import MOST_NOTED

_HEAD = (
    '"""The points, lives and end of a game."""',
    "",
    "from __future__ import annotations",
    "",
    "from pixelpong.atari.machine.digits import *",
    "from pixelpong.atari.machine.typed import Machine, inline",
    "",
    "",
)
_RESULTS = {"points": "0", "over": "0", "reward": "points - old.points", "lives": "0"}


@dataclass(frozen=True)
class Scoring:
    """How a game's memory shows its points, lives and end."""

    rules: Mapping[str, str]  # expressions by name
    # Values at the start, where the rules would give others.
    first: Mapping[str, int] = field(default_factory=dict)
    board: tuple[int, ...] = ()  # addresses of its cells, from 0 on
    keeps_lives: bool = False  # whether lives are shown after the end, too

    @property
    def all_rules(self) -> dict[str, str]:
        """The rules in the order of computation, with defaults for those left out."""
        return {
            **self.rules,
            **{name: _RESULTS[name] for name in _RESULTS if name not in self.rules},
        }

    @property
    def noted(self) -> list[str]:
        """The names whose previous frame's values some rule needs."""
        names = re.findall(r"\bold\.(\w+)", " ".join(self.all_rules.values()))
        return list(dict.fromkeys(names))


class _Names(ast.NodeTransformer):
    """Replaces names in the facts by fields of the record."""

    def __init__(self, noted: list[str]) -> None:
        self._noted = noted

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a byte's name by the record's element."""
        return _parse(_byte(node.id)) if _is_byte(node.id) else node

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
        elif name == "count":
            text = " + ".join(f"count(m, {value})" for value in arguments[1:])
        else:
            text = f"{name}({', '.join(arguments)})"
        return _parse(f"({text})")


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_byte(name: str) -> bool:
    return bool(re.fullmatch("[xc][89A-F][0-9A-F]", name))


def _byte(name: str) -> str:
    """Return the element of the record for ``xB9`` or ``cB9``."""
    memory = {"x": "ram", "c": "extra_ram"}[name[0]]
    return f"m.{memory}[{int(name[1:], 16) & 127}]"


def to_source(scoring: Scoring) -> str:
    """Write the functions `score`, `recall` and `begin_score` of a game as typed Python."""
    noted = scoring.noted
    assert len(noted) <= MOST_NOTED, noted
    lines = [*_HEAD, *_score(scoring)]
    lines += ["", "", "@inline", "def recall(m: Machine) -> None:"]
    lines += ["    m.points = 0", "    m.is_over = 0"]
    lines += ["", "", "def begin_score(m: Machine) -> None:"]
    for at, name in enumerate(noted):
        value = _byte(name) if _is_byte(name) else scoring.first.get(name, 0)
        lines.append(f"    m.noted[{at}] = {value}")
    lines.append("    score(m)")
    for name, value in scoring.first.items():
        if name in noted:
            lines.append(f"    m.noted[{noted.index(name)}] = {value}")
        if name == "lives":
            lines.append(f"    m.lives = {value}")
    lines += ["    m.points = 0", ""]
    return "\n".join(lines)


def _score(scoring: Scoring) -> list[str]:
    """Write the lines of the function `score`."""
    noted = scoring.noted
    lines = ["def score(m: Machine) -> None:"]
    for name, rule in scoring.all_rules.items():
        text = ast.unparse(_Names(noted).visit(_parse(rule)))
        lines.append(f"    {name} = " + (f"1 if {text} else 0" if name == "over" else text))
    for at, name in enumerate(noted):
        lines.append(f"    m.noted[{at}] = {_byte(name) if _is_byte(name) else name}")
    return [
        *lines,
        "    m.points += reward",
        "    m.is_over = over",
        f"    m.lives = {'lives' if scoring.keeps_lives else '0 if over else lives'}",
        "    m.may_end = 1",
    ]


def make_module(name: str, scoring: Scoring) -> ModuleType:
    """Make a module of a game's functions; `inspect` can read its source."""
    source = to_source(scoring)
    module = ModuleType(f"scoring of {name}")
    path = f"<{module.__name__}, {hashlib.sha256(source.encode()).hexdigest()[:12]}>"
    # Here Python finds the source of code that is in no file.
    linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
    exec(compile(source, path, "exec"), vars(module))
    return module
