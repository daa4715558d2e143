"""A test that holds a promise of `docs/reliability.md` is marked with the promise's name.

    python tests/support/promises.py    # writes the names of the tests into that page

A run in which all tests of a promise were skipped says so, and in CI it has failed: see `conftest`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs/reliability.md"


def promise(name: str) -> pytest.MarkDecorator:
    """Mark a test, or with ``pytestmark`` a module, as one that holds this promise."""
    return pytest.mark.promise(name)


def find_marks() -> dict[str, list[str]]:
    """The marked tests and modules of each promise."""
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            marks = getattr(node, "decorator_list", [])
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                marks = getattr(node.value, "elts", [node.value])
            for mark in marks:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "promise":
                    test = f"::{node.name}" if isinstance(node, ast.FunctionDef) else ""
                    found[ast.literal_eval(mark.args[0])].append(f"`{path.stem}{test}`")
    return found


def written_page() -> str:
    """The page as it should be: each row has a name, a sentence and the marked tests."""
    lines, marks = PAGE.read_text("utf-8").split("\n"), find_marks()
    for number, line in enumerate(lines):
        name, *others = line.removeprefix("| ").split(" | ")
        if len(others) == 2 and name in marks:
            lines[number] = f"| {name} | {others[0]} | {', '.join(marks.pop(name))} |"
    assert not marks, f"no row of {PAGE.name} has the name {', '.join(marks)}"
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(written_page(), "utf-8")
