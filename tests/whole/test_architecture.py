"""The house: the list of rooms in CONTRIBUTING.md, fences, no cycles, short files."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import pixelpong

ROOT = Path(pixelpong.__file__).parent
PATHS = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
MODULES = {name.removesuffix(".py").removesuffix("__init__").strip("/").replace("/", "."): path
           for name, path in PATHS.items()}  # fmt: skip


def read_list() -> list[list[str]]:
    """The names on each line of the package's part of the list in CONTRIBUTING.md."""
    page = ROOT.parents[1].joinpath("CONTRIBUTING.md").read_text("utf-8")
    text = re.search(r"```\nsrc/pixelpong/\n((?: .*\n)+)", page)[1]
    return [re.match(r" +((?:\w+(?:\.py|/) ?)+)", line)[1].split() for line in text.splitlines()]


FLOORS = {
    "" if name == "__init__.py" else name.removesuffix(".py").strip("/"): number
    for number, names in enumerate(read_list())
    for name in names
}
"""Each name of the package on that list, with its floor: the top is 0."""

TIMED = ("play.player", "learners", "atari.machine.native", "atari.envs.stable_baselines")
"""They time what they do, and nothing that reaches the parameters depends on it."""

FENCES = {
    "ale_py": ("verification.py", "atari/envs/gym.py", "atari/lockstep.py"),
    "numba": ("atari/steps/", "kernels/"),
    "llvmlite": ("atari/steps/", "atari/machine/native.py"),
    "rich": ("faces/display.py", "faces/live.py"),
    "safetensors": ("run/arrays.py",),
    "msgspec": ("schema.py", "faces/page/clocked.py"),
    "gymnasium": ("atari/envs/", "envs/"),
    "pettingzoo": ("envs/two.py",),
    "stable_baselines3": ("atari/envs/stable_baselines.py",),
    "ray": ("engines/ray/",),
    "matplotlib": ("faces/plots.py",),
    "starlette": ("faces/page/",),
    "uvicorn": ("faces/page/",),
    "av": ("faces/look/film.py",),
    "PIL": ("faces/look/overlay.py",),
}


# --- the list of rooms, and the length of files -----------------------------------------------


def floor_of(name: str) -> int:
    top = name.split(".")[0]
    assert top in FLOORS, f"{name} is not on the list in CONTRIBUTING.md"
    return FLOORS[top]


def test_the_list_of_rooms_names_nothing_that_is_not_there():
    assert set(FLOORS) == {name.split(".")[0] for name in MODULES}


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_no_file_is_long():
    top = ROOT.parents[1]
    files = [
        path
        for folder in ("src", "tests", "examples", "benchmarks", "docs")
        for kind in ("*.py", "*.js", "*.css", "*.html")
        for path in (top / folder).rglob(kind)
        if "_build" not in path.parts
    ]
    assert len(files) > 200
    assert not [(path, n) for path in files if (n := count_lines(path)) > 400]


def test_what_is_read_in_an_evening_is_short():
    concepts = ROOT.parents[1].joinpath("docs/concepts.md").read_text("utf-8")
    chapter = concepts.split("## Read it in an evening")[1].split("\n## ")[0]
    files = re.findall(r"\(\.\./src/pixelpong/([\w/]+\.py)\)", chapter)
    assert len(files) >= 12
    assert sum(count_lines(ROOT / name) for name in files) <= 2800


# --- imports ----------------------------------------------------------------------------------


@functools.cache
def imports_of(path: Path) -> set[str]:
    """The modules that a file imports, and the names that it takes from them, with their module.

    Also what a function imports when it is called, and what only the type checker sees.
    """
    return find_imports(path.read_text("utf-8"), path.relative_to(ROOT.parent).parent.parts)


def find_imports(code: str, folders: Sequence[str]) -> set[str]:
    """The imports of a module that lies in these folders."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = folders[: len(folders) - node.level + 1] if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    return names


def ours_imported_by(name: str) -> set[str]:
    """The other modules of the package that one of them imports."""
    return modules_of(imports_of(MODULES[name])) - {name}


def modules_of(names: set[str]) -> set[str]:
    """The modules of the package among these names; a public name stands for its module."""
    found = {each.removeprefix("pixelpong.") for each in names if each.startswith("pixelpong.")}
    return {pixelpong._HOMES.get(each, each) for each in found} & MODULES.keys()


@pytest.mark.parametrize(
    "code",
    [
        "import pixelpong.faces.policy",
        "from pixelpong.faces import policy",
        "from pixelpong.faces.policy import Policy",
        "from pixelpong import Policy",
        "from .policy import Policy",
        "from ..faces import policy",
        "def load():\n    from pixelpong.faces.policy import Policy",
        "if TYPE_CHECKING:\n    from pixelpong.faces.policy import Policy",
    ],
)
def test_no_way_to_import_a_module_is_overlooked(code):
    assert "faces.policy" in modules_of(find_imports(code, ("pixelpong", "faces")))


@pytest.mark.slow
def test_imports_go_down_the_list_only():
    """One floor is one line of the list; inside a folder, imports are free."""
    looked = 0
    for name in MODULES.keys() - {"", "__main__"}:  # these hand out what lies below
        for other in ours_imported_by(name):
            if other.split(".")[0] != name.split(".")[0]:
                down = floor_of(other) > floor_of(name)
                ground = floor_of(other) == floor_of(name) == max(FLOORS.values())
                assert down or ground, f"{name} imports {other}"
                looked += 1
    assert looked > 300


def test_there_are_no_import_cycles():
    """Also not by way of functions; but a folder's own module may hand out what lies in it."""
    graph = {
        name: {other for other in ours_imported_by(name) if not other.startswith(f"{name}.")}
        for name in MODULES.keys() - {""}
    }
    assert sum(map(len, graph.values())) > 500
    assert "play.worker" in graph["evaluation"], "a function imports it"
    graphlib.TopologicalSorter(graph).prepare()


def test_a_library_is_imported_in_one_place_only():
    for library, places in FENCES.items():
        users = [
            name for name, path in PATHS.items()
            if any(each.split(".")[0] == library for each in imports_of(path))
        ]  # fmt: skip
        assert users, library
        assert all(user.startswith(places) for user in users), (library, users)


def test_atari_knows_nothing_of_what_stands_on_it():
    """So that it can become a distribution of its own, and no game is a case in general code."""
    own = {name: path for name, path in PATHS.items() if name.startswith("atari/")}
    assert len(own) > 50
    allowed = ("pixelpong.atari", "pixelpong.errors", "pixelpong.schema", "pixelpong.machine",
               "pixelpong.notices", "pixelpong.seeding")  # fmt: skip
    for name, path in own.items():
        ours = {each for each in imports_of(path) if each.split(".")[0] == "pixelpong"}
        assert not {each for each in ours if not each.startswith(allowed)}, name
        words = re.findall(r"(?i)(?<!pixel)pong", path.read_text("utf-8"))
        assert not words, f"{name} names a game; only the table of games does"


def names_given_in(tree: ast.AST) -> set[str]:
    """The names of classes, arguments, variables and attributes that a file gives."""
    given = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            given.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.arg):
            given.add(node.arg)
    return given


def test_a_name_says_what_a_thing_is():
    """Not that it was found or lies at a place; and there is one `Game`, `Games` and `Sight`."""
    assert names_given_in(ast.parse("class A:\n    b: int\ndef f(c): d.e = 1")) == {*"Abce"}
    given = {
        name: names_given_in(ast.parse(path.read_text("utf-8"))) for name, path in PATHS.items()
    }
    vague = {"place", "places", "found"}
    assert {name: names & vague for name, names in given.items() if names & vague} == {}
    for word in ("Game", "Games", "Sight"):
        assert sum(word in names for names in given.values()) == 1, word


def test_what_trains_asks_the_scene_and_never_which_game_it_is():
    """So that a game that our agent sees in its own way is a `Scene`, and nothing else changes."""
    rooms = "learners/", "engines/", "learn/", "session.py", "loop.py", "play/player.py"
    own = {name: path for name, path in PATHS.items() if name.startswith(rooms)}
    assert len(own) > 15
    for name, path in own.items():
        words = re.findall(r"\b(?:is_pong|PONG|PongScene)\b", path.read_text("utf-8"))
        assert not words, f"{name} decides by the game"


def test_what_the_machine_needs_lies_in_it():
    own = {name for name in PATHS if name.startswith("atari/machine/")}
    known = set.union(*(imports_of(PATHS[name]) for name in own))
    ours = {each for each in known if each.split(".")[0] == "pixelpong"}
    outside = {each for each in ours if not each.startswith("pixelpong.atari.machine")}
    assert len(own) > 20
    assert all(it.startswith(("pixelpong.errors", "pixelpong.notices")) for it in outside), outside


def test_engines_know_no_policy_and_no_emulator():
    known = set.union(*(imports_of(path) for name, path in PATHS.items() if "engines/" in name))
    assert "pixelpong.config" in known
    forbidden = ("pixelpong.atari", "pixelpong.pong", "pixelpong.learn", "pixelpong.kernels",
                 "pixelpong.play", "pixelpong.items", "numpy")  # fmt: skip
    assert not [name for name in known if name.startswith(forbidden)]


HEAVY = {"ray", "numba", "llvmlite", "matplotlib", "starlette", "ale_py", "gymnasium"}


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import pixelpong", HEAVY | {"rich"}),
        ("import pixelpong.run.record", HEAVY),
        ("from pixelpong.faces.cli import main; main(['train', '--help'])", HEAVY | {"numpy"}),
    ],
)
def test_what_should_be_quick_loads_nothing_heavy(statement, heavy):
    script = (
        f"import contextlib, sys\nwith contextlib.suppress(SystemExit):\n    {statement}\n"
        f"print('heavy:', *({heavy} & set(sys.modules)))"
    )
    out = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert out.splitlines()[-1] == "heavy:"


def test_nothing_uses_the_global_generator_or_the_clock_where_it_reaches_the_parameters():
    for name, path in MODULES.items():
        text = path.read_text("utf-8")
        assert "default_rng(" not in text.replace("np.random.default_rng(0)", ""), name
        assert not {"random", "secrets", "uuid"} & imports_of(path), name
        if floor_of(name) >= FLOORS["learners"] and name not in TIMED:
            assert "import time" not in text, name
