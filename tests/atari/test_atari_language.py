"""Typed Python is compiled to what Python does."""

from __future__ import annotations

import ast
import inspect

import machines
import numpy as np
import pytest
import typed_examples

from pixelpong.atari.machine.lowering import lower_modules
from pixelpong.atari.machine.program import Program

EXAMPLES = [
    name
    for name, each in inspect.getmembers(typed_examples, inspect.isfunction)
    if inspect.get_annotations(each).keys() == {"m", "a", "b", "return"}
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The examples, by name."""
    program = Program(typed_examples.MACHINE)
    lower_modules(program, [typed_examples], EXAMPLES)
    code = machines.compile_program(program, tmp_path_factory.mktemp("code"))
    return {name: machines.function_of(code, name, 2) for name in EXAMPLES}


def random_record(rng: np.random.Generator) -> np.ndarray:
    """Any bytes; the wide numbers no longer than a line, and some counters at 0."""
    raw = rng.bytes(typed_examples.MACHINE.itemsize)
    record = np.frombuffer(raw, typed_examples.MACHINE).copy()
    record["wide"][..., 2] &= 0xFFFF
    record["wides"][..., 2] &= 0xFFFF
    record["number"], record["numbers"], record["word"] = 0, 0, 0
    return record


@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled_it_does_what_python_does(compiled, name):
    rng = np.random.default_rng(len(name))
    values = [0, 1, -1, 2, 3, 7, 8, 255, 256, -128, 1000, -1000]
    for k in range(300):
        pool = values if k % 2 else rng.integers(-1000, 1000, 12).tolist()
        a, b = int(rng.choice(pool)), int(rng.choice(pool))
        record = random_record(rng)
        plain = machines.PlainMachine(record)
        wanted = int(getattr(typed_examples, name)(plain, a, b))
        assert compiled[name](record, a, b) == wanted, (a, b)
        assert not machines.differences(record, plain.record), (a, b)


def test_an_int_wraps_around_at_32_bits(compiled):
    """Python's does not: the machine's code keeps away from it."""
    record = np.zeros(1, typed_examples.MACHINE)
    compiled["calculates"](record, 0x7FFFFFFF, 1)
    assert record["numbers"][0, 0] == -0x80000000


def lower(line: str, folder) -> None:
    """Compile a function that holds a line."""
    text = (
        "from pixelpong.atari.machine.typed import *\n"
        "TABLE = (1, 2, 3)\nNEGATIVE = (-1, 5)\nLARGE = (1 << 32, 5)\n"
        "LINE = (1 << 160) - 1\n"
        "def helper(m: Machine, k: Int) -> Int:\n    return k\n"
        f"def broken(m: Machine, a: Int, w: Wide) -> Int:\n    a = 0\n    {line}\n"
        "    return 0\n"
    )
    program = Program(typed_examples.MACHINE)
    lower_modules(program, [machines.module_from(text, folder, "broken")])


OTHERS = (
    "a = 1.5", "a = a / 2", "a = [1, 2]", "a, b = a, 1", "a = a < 1 < 2", "a = a is a",
    "a = unknown", "a = print(a)", "a = helper(m, k=a)", "a: Int = 3", "a = not a", "a **= 2",
    "a = helper(m, a) if a else 0", "a = 0 if a else 1 + helper(m, a)", "a = 1 // a if a else 0",
    "a = 0 if a == 0 else 7 % m.byte", "for k in range(5): k += 1", "for k in range(5): k = 1",
    "for k in range(5):\n        if a:\n            a = k = 2",
    "for k in range(5):\n        for k in range(2): a = 1",
    "a = m.byte.bit_length()", "for k in TABLE: a = 0", "for k in range(0, 9, a): a = 1",
    "with m: a = 0", "for k in range(3): a = 0\n    else: a = 1",
)  # fmt: skip


WIDES = (
    "a = w", "a = LINE", "a += w", "return w", "m.byte = w", "m.bytes[w] = 1", "a = helper(m, w)",
    "a = min(a, w)", "a = TABLE[w]", "a = 1 << w", "for k in range(w): a = 0",
)  # fmt: skip
"""An Int is given a wide."""


def test_what_is_not_the_language_is_refused_and_quoted(tmp_path):
    for number, line in enumerate(OTHERS):
        with pytest.raises(SyntaxError, match="^broken: not typed Python: ") as caught:
            lower(line, tmp_path / str(number))
        quoted = str(caught.value).split(": not typed Python: ")[1]
        assert quoted in ast.unparse(ast.parse(line.replace("\n    ", "\n"))), line
    for number, line in enumerate(WIDES):
        with pytest.raises(SyntaxError, match="Int"):
            lower(line, tmp_path / f"wide {number}")
    with pytest.raises(AssertionError, match="the machine has no nothing"):  # a bug of ours
        lower("a = m.nothing", tmp_path)


NOT_AS_IN_PYTHON = {
    "a = a << 32": "i32 cannot be shifted by 32",
    "a = a >> 40": "i32 cannot be shifted by 40",
    "a = a << -1": "i32 cannot be shifted by -1",
    "w = w << 192": "i192 cannot be shifted by 192",
    "a = a < 0x80000000": "2147483648 does not fit in an Int",
    "a = 0xFFFFFFFF == a": "4294967295 does not fit in an Int",
    "a = ~(a < 3)": "~ needs a number, not a comparison",
    "a = NEGATIVE[a]": "a table's numbers have 32 bits and no sign",
    "a = LARGE[a]": "a table's numbers have 32 bits and no sign",
}


@pytest.mark.parametrize("line", NOT_AS_IN_PYTHON)
def test_what_would_be_compiled_to_something_else_is_refused(tmp_path, line):
    with pytest.raises(SyntaxError, match=NOT_AS_IN_PYTHON[line]):
        lower(line, tmp_path)


def test_two_tables_of_one_name_are_a_bug(tmp_path):
    """They would be one table, for both modules."""
    program = Program(typed_examples.MACHINE)
    for number in range(2):
        text = (
            "from pixelpong.atari.machine.typed import *\n"
            f"TABLE = ({number}, 2, 3)\n"
            f"def read{number}(a: Int) -> Int:\n    return TABLE[a]\n"
        )
        module = machines.module_from(text, tmp_path, f"table{number}")
        if number == 0:
            lower_modules(program, [module])
    with pytest.raises(AssertionError, match="two constants TABLE"):
        lower_modules(program, [module])
