"""Each exercise of the tutorial has a cell for the learner, a check that reads it, and a solution.

The check is not part of the solution, because a handout is made by removing the solutions.
"""

from __future__ import annotations

import ast
import re

import jupytext
import pytest
from shown import DOCS

EXERCISES = re.compile(r"^## (?:Check yourself|Exercises?|(?=1 An opponent))(.*)", re.M | re.S)
CHAPTERS = sorted((DOCS / "tutorial").glob("[0-9]*.md"))


def is_blank(node: ast.expr | None) -> bool:
    """Whether it stands for the learner's answer: ``...``, ``[]`` or ``{}``."""
    if isinstance(node, ast.Tuple):
        return all(map(is_blank, node.elts))
    if isinstance(node, ast.Constant):
        return node.value is ...
    return (isinstance(node, ast.List) and not node.elts) or (
        isinstance(node, ast.Dict) and not node.keys
    )


def find_blanks(source: str) -> set[str]:
    """The names that a cell leaves to the learner; what a cell fills itself is none of them."""
    tree, names = ast.parse(source), set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and is_blank(node.value):
            names |= {it.id for it in ast.walk(node.targets[0]) if isinstance(it, ast.Name)}
        if isinstance(node, ast.FunctionDef):
            is_open = isinstance(node.body[-1], ast.Return) and is_blank(node.body[-1].value)
            names |= {node.name} if is_open else set()
    return names - read_names(source)


def read_names(source: str) -> set[str]:
    """The names that a cell reads."""
    return {
        node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_what_a_learner_fills_in_is_checked_outside_the_solution(chapter):
    cells = [it for it in jupytext.read(chapter).cells if it.cell_type == "code"]
    blanks, solutions = [], 0
    for index, cell in enumerate(cells):
        is_solution = "hide-cell" in cell.metadata.get("tags", ())
        solutions += is_solution
        found = set() if is_solution else find_blanks(cell.source)
        blanks += [(index, sorted(found))] if found else []
    for index, names in blanks:
        following = [
            it for it in cells[index + 1 :] if "hide-cell" not in it.metadata.get("tags", ())
        ]
        read = set().union(*(read_names(it.source) for it in following))
        assert set(names) <= read, f"no check reads {names}"
    assert 1 <= len(blanks) <= solutions
    (section,) = EXERCISES.findall(chapter.read_text("utf-8"))
    numbered = re.findall(r"^\*\*(\d)\.|^(?:## )?[1-4] ", section, re.M)
    assert solutions == max(len(numbered), 1)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_solution_and_its_output_are_folded(chapter):
    """In Jupyter, "Run all" shows no result of a solution."""
    for cell in jupytext.read(chapter).cells:
        if "hide-cell" in cell.metadata.get("tags", ()):
            assert cell.metadata["jupyter"] == {"source_hidden": True, "outputs_hidden": True}


def test_a_name_that_nothing_reads_would_be_noticed():
    assert find_blanks("my_order = []  # easiest first") == {"my_order"}
    assert find_blanks("a, b = ..., ...") == {"a", "b"}
    assert find_blanks("def f(x):\n    return ...") == {"f"}
    assert find_blanks("lost = []\nfor x in y:\n    lost.append(x)") == set()
    assert "my_order" not in read_names("my_order = [1]")
