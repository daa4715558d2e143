"""The house: the README's list, fences, no cycles, a quick import."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pixelpong

ROOT = Path(pixelpong.__file__).parent

STATIC = "faces/page/static/"

README = ROOT.parents[1].joinpath("README.md").read_text("utf-8")


def tree() -> list[tuple[str, int, list[str]]]:
    """The README's tree, line by line: folder, budget of lines, names.

    A folder's line begins at the margin; what is in it is indented.
    """
    text = re.search(r"```\n(src/pixelpong/.*?)```", README, flags=re.S).group(1)
    shape = re.compile(r"( *)((?:[\w/]+(?:\.py|/) ?)+) +([\d,]+)(?: |$)")
    found, folder = [], ""
    for line in text.splitlines():
        indent, names, budget = shape.match(line).groups()
        folder = folder if indent else names.strip()
        found.append((folder, int(budget.replace(",", "")), names.split() if indent else []))
    return found


TREE = tree()

FLOORS = {
    "" if name == "__init__.py" else name.removesuffix(".py").strip("/"): number
    for number, (_, _, names) in enumerate(TREE)
    for name in names
    if name != STATIC
}
"""Each name of the package on the README's list, with its floor: the top is 0."""

TIMED = (
    "play.player",
    "learners",
    "env.native",
)
"""They time what they do, and nothing that reaches the parameters depends on it."""

FENCES = {
    "ale_py": ("verify.py", "env/gym.py"),
    "numba": ("kernels/", "compiling.py"),
    "llvmlite": ("kernels/", "atari/native.py"),
    "rich": ("faces/display.py", "faces/live.py"),
    "safetensors": "run/arrays.py",
    "msgspec": ("schema.py", "faces/page/game.py"),
    "gymnasium": ("env/gym.py", "faces/envs/"),
    "ray": "engines/ray/",
    "matplotlib": "faces/plots.py",
    "starlette": "faces/page/",
    "uvicorn": "faces/page/",
    "websockets": "faces/page/",
    "av": "faces/look/film.py",
    "PIL": "faces/look/film.py",
}


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name] = path
    return found


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imports_of(path: Path, *, only_at_import_time: bool = False) -> set[str]:
    tree = tree_of(path)
    nodes = ast.walk(tree)
    if only_at_import_time:
        nodes = (
            node
            for top in tree.body
            if not isinstance(top, ast.FunctionDef | ast.ClassDef | ast.If)
            for node in ast.walk(top)
        )
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def ours_imported_by(path: Path, known: set[str], **kwargs) -> set[str]:
    names = {n.removeprefix("pixelpong.") for n in imports_of(path, **kwargs) if "pixelpong." in n}
    return {name for name in names if name in known}


def floor_of(name: str) -> int:
    top = name.split(".")[0]
    assert top in FLOORS, f"{name} is not on the README's list"
    return FLOORS[top]


@pytest.mark.slow
def test_imports_go_down_the_readmes_list_only():
    """One floor is one line of the list; inside a folder, imports are free."""
    known = modules()
    for name, path in known.items():
        if name in ("", "__main__"):  # they hand out what lies below
            continue
        for other in ours_imported_by(path, set(known)):
            if other and other.split(".")[0] != name.split(".")[0]:
                down = floor_of(other) > floor_of(name)
                ground = floor_of(other) == floor_of(name) == max(FLOORS.values())
                assert down or ground, f"{name} imports {other}"


def test_the_readmes_list_names_nothing_that_is_not_there():
    assert set(FLOORS) == {name.split(".")[0] for name in modules()}


def count_lines(path: Path) -> int:
    """The lines of a Python file or of all of them in a folder; in `STATIC` those of the page."""
    kinds = ("*.js", "*.css", "*.html") if path.name == "static" else ("*.py",)
    files = [path] if path.is_file() else [each for kind in kinds for each in path.rglob(kind)]
    assert files, f"{path} is empty"
    return sum(each.read_bytes().count(b"\n") for each in files if "_build" not in each.parts)


@pytest.mark.parametrize("line", TREE, ids=lambda line: " ".join([line[0], *line[2]]))
def test_no_line_of_the_readmes_list_exceeds_its_budget(line):
    """Only a commit that says what users get for it may raise a budget."""
    folder, budget, names = line
    where = ROOT.parents[1] / folder
    used = sum(count_lines(where / name) for name in names or [""])
    assert used <= budget, f"{used} lines; {' '.join(names) or folder} has a budget of {budget}"


def test_the_rooms_budgets_add_up_to_the_packages():
    rooms = [budget for folder, budget, names in TREE if folder.startswith("src/") and names]
    assert sum(rooms) - sum(budget for _, budget, names in TREE if names == [STATIC]) <= TREE[0][1]


def test_what_is_read_in_an_evening_is_short():
    concepts = ROOT.parents[1].joinpath("docs/concepts.md").read_text("utf-8")
    chapter = concepts.split("## Read it in an evening")[1].split("\n## ")[0]
    files = re.findall(r"\(\.\./src/pixelpong/([\w/]+\.py)\)", chapter)
    assert len(files) >= 12
    assert sum(len((ROOT / name).read_text("utf-8").splitlines()) for name in files) <= 2300


def test_reading_a_run_loads_no_compiler():
    script = (
        "import sys; import pixelpong.run.record\n"
        "print('heavy:', *({'numba', 'llvmlite', 'ale_py', 'gymnasium'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines()[-1] == "heavy:"


def test_there_are_no_import_cycles():
    known = modules()
    graph = {
        name: ours_imported_by(path, set(known), only_at_import_time=True) - {name}
        for name, path in known.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name not in done:
            for other in graph[name]:
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("library", FENCES)
def test_a_library_is_imported_in_one_place_only(library):
    users = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if any(name.split(".")[0] == library for name in imports_of(path))
    }
    assert all(user.startswith(FENCES[library]) for user in users), users


def test_engines_know_no_policy_and_no_emulator():
    for path in (ROOT / "engines").rglob("*.py"):
        names = imports_of(path)
        forbidden = ("pixelpong.env", "pixelpong.learn", "pixelpong.kernels",
                     "pixelpong.play", "pixelpong.items", "numpy")  # fmt: skip
        assert not [name for name in names if name.startswith(forbidden)], path


def test_importing_the_package_is_quick_and_pulls_in_nothing_heavy():
    script = (
        "import sys, time; begin = time.perf_counter(); import pixelpong\n"
        "took = time.perf_counter() - begin\n"
        "heavy = {'ray', 'numba', 'matplotlib', 'starlette', 'ale_py', 'gymnasium', 'rich'}\n"
        "print(took, *(heavy & set(sys.modules)))"
    )
    words = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert words[1:] == []
    assert float(words[0]) < 0.3


def test_help_loads_neither_kernels_nor_emulator():
    script = (
        "import sys; from pixelpong.faces.cli import main\n"
        "try: main(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'ray', 'numba', 'numpy', 'ale_py', 'gymnasium'}\n"
        "print('heavy:', *(heavy & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines()[-1] == "heavy:"


def test_nothing_uses_the_global_generator_or_the_clock_where_it_reaches_the_parameters():
    for name, path in modules().items():
        text = path.read_text("utf-8")
        used = set(re.findall(r"np\.random\.(\w+)", text))
        assert used <= {"Generator", "PCG64", "SeedSequence", "default_rng"}, name
        assert "default_rng(" not in text.replace("np.random.default_rng(0)", ""), name
        assert not {"random", "secrets", "uuid"} & imports_of(path), name
        if floor_of(name) >= FLOORS["learners"] and name not in TIMED:
            assert "import time" not in text, name


def test_files_and_functions_are_of_a_readable_length():
    for path in ROOT.rglob("*.py"):
        assert path.read_text("utf-8").count("\n") <= 400, path
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                doc = node.body[0] if ast.get_docstring(node) else None
                length = node.end_lineno - node.lineno + 1
                length -= doc.end_lineno - doc.lineno + 1 if doc else 0
                assert length <= 60, f"{path}:{node.name}"
