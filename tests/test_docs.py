"""What the pages say is there: commands parse, links lead somewhere, languages agree.

Quick, without building the site; `make docs` does that, and runs the notebooks.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import shlex
import sys
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

import pixelpong
import pixelpong.errors
from pixelpong.config import OPTIONS, require_used
from pixelpong.config.presets import load_preset, preset_names
from pixelpong.faces.cli.commands import train
from pixelpong.faces.cli.parser import parse

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"
CHAPTERS = (
    "01_the_game", "02_the_policy", "03_the_gradient", "04_returns", "05_rmsprop",
    "06_first_training", "07_sparsity", "08_many_workers", "09_ray", "10_from_reinforce_to_ppo",
    "11_a_winning_agent", "12_what_next", "13_the_machine_inside", "14_against_yourself",
)  # fmt: skip

sys.path.insert(0, str(DOCS / "_ext"))
import generated  # noqa: E402


def find_pages() -> list[Path]:
    """Everything that is written to be read, in Markdown."""
    pages = [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md", *DOCS.rglob("*.md")]
    return sorted(page for page in pages if "_build" not in page.parts)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


PAGES = find_pages()
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=name_of)


def read_blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    text = page.read_text("utf-8")
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, flags=re.S | re.M)


def read_commands(page: Path) -> list[str]:
    """The commands of a page's ``bash`` blocks, lines joined, comments and blank lines left out."""
    text = "".join(read_blocks(page, "bash")).replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def read_shown(page: Path) -> list[str]:
    """The commands of ours that stand in the prose, in backquotes, where they are whole.

    A command's bare name becomes a question for its help, for it may want a run.
    """
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.S | re.M)
    spans = re.findall(r"(?<!`)`(pixelpong [a-z][^`]*)`(?!`)", prose)
    whole = [" ".join(span.split()) for span in spans if not re.search(r"[…|\[]", span)]
    names = [" ".join(["pixelpong", *words]) for words in generated.list_commands()]
    names += ["pixelpong bench"]
    return [f"{span} --help" if span in names else span for span in whole]


def check_command(line: str) -> None:
    """The words are a command line of ours, with options that exist and values in range."""
    words = shlex.split(re.split(r"\s(?:>|\||&&)", line)[0])
    words = words[words.index("pixelpong") + 1 :]
    if {"--help", "--version"} & set(words):
        with pytest.raises(SystemExit) as exit:
            parse(words)
        assert not exit.value.code, line
        return
    command, request = parse(words)
    config = load_preset(request.given.get("preset", "fast")).updated(request.given, line)
    if command is train:
        require_used(request.given, config, line)


@pytest.mark.slow
@EACH_PAGE
def test_every_command_shown_is_one(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lines = [line for line in read_commands(page) if re.search(r"(^|-- )pixelpong ", line)]
    for line in lines + read_shown(page):
        check_command(line)


def test_the_pages_do_show_commands():
    """So that the test above looks at something."""
    shown = {name_of(page): len(read_commands(page)) for page in PAGES}
    assert shown["README.md"] >= 8
    assert shown["docs/start.md"] >= 20
    assert shown["docs/reproduce.md"] >= 10
    silent = {page.stem for page in (DOCS / "howto").glob("*.md") if not shown[name_of(page)]}
    assert silent <= {"index", "own_agent"}
    assert len(read_shown(DOCS / "faq.md")) >= 3


@pytest.mark.parametrize(
    "line", ["pixelpong trian", "pixelpong train --sed 1", "pixelpong train --seed -1"]
)
def test_a_command_that_is_none_is_noticed(line):
    with pytest.raises(pixelpong.errors.ConfigError):
        check_command(line)


@EACH_PAGE
def test_make_targets_shown_exist(page):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, flags=re.M))
    named = {line.split()[1] for line in read_commands(page) if line.startswith("make ")}
    assert named <= targets


@EACH_PAGE
def test_python_that_is_shown_is_python_and_names_what_there_is(page):
    for block in read_blocks(page, "python"):
        tree = ast.parse(re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.M))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "pixelpong":
                assert hasattr(pixelpong, node.attr), node.attr


def strip_code(text: str) -> str:
    """A page without its blocks and spans of code, in which brackets are no links."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2", "", text, flags=re.S | re.M)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "code", text, flags=re.S)


@cache
def anchors_of(page: Path) -> set[str]:
    """What links to a page may end in: its headings, as code hosts and MyST spell them."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2", "", page.read_text("utf-8"), flags=re.S | re.M)
    names = set(re.findall(r"\{#([\w-]+)\}", text)) | set(re.findall(r"^\(([\w-]+)\)=", text, re.M))
    for heading in re.findall(r"^#+ +(.+)$", text, flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        names.add(slug)
    return names


@EACH_PAGE
def test_every_link_leads_to_something(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", strip_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert found.is_relative_to(ROOT.resolve()), target
        if anchor:
            assert found.suffix == ".md", target
            assert anchor in anchors_of(found), target


def test_links_and_anchors_that_lead_nowhere_are_noticed(tmp_path, monkeypatch):
    page = ROOT / "docs" / "start.md"
    assert "train" in anchors_of(page)
    assert "trian" not in anchors_of(page)
    text = "[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n[g](h.md#i)"
    assert re.findall(r"\]\(([^)\s]+)\)", strip_code(text)) == ["b.md", "h.md#i"]


def test_there_is_every_chapter():
    assert {path.stem for path in (DOCS / "tutorial").glob("[0-9]*.md")} == set(CHAPTERS)


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_cell_imports_more_than_six_names(name):
    for cell in read_cells(DOCS / "tutorial" / f"{name}.md"):
        code = re.sub(r"\A.*\n(---\n(.*\n)*?---\n)?|```+\Z", "", cell)
        nodes = ast.walk(ast.parse(code))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        assert sum(len(each.names) for each in imports) <= 6, code


@pytest.mark.parametrize("page", ["docs/tutorial", "docs/zh/tutorial"])
def test_the_ladder_of_chapter_10_is_the_recorded_one(page):
    report = json.loads((ROOT / "benchmarks/ladder.json").read_text("utf-8"))
    text = (ROOT / page / "10_from_reinforce_to_ppo.md").read_text("utf-8")
    shown = re.findall(r"^\| ([+\w][^|]*) \|.*\| \*\*([\d.]+)\*\* \| ([\d., ]+) \|$", text, re.M)
    wanted = []
    for name, rung in report["rungs"].items():
        shares = [sum(each["curve"][-2:]) / 2 for each in rung["seeds"].values()]
        assert len(shares) == 3
        seeds = ", ".join(f"{share:.2f}" for share in shares)
        wanted.append((name, f"{sum(shares) / 3:.2f}", seeds))
    assert shown == wanted


# The same in Chinese


def list_translated() -> list[Path]:
    """What is there in Chinese, by its path below ``docs/zh``."""
    return sorted(path.relative_to(CHINESE) for path in CHINESE.rglob("*.md"))


def original_of(path: Path) -> Path:
    return ROOT / "README.md" if path == Path("README.md") else DOCS / path


def read_cells(page: Path) -> list[str]:
    """The code cells of a MyST notebook, with their options, to the byte."""
    return re.findall(r"^```+\{code-cell\}.*?^```+$", page.read_text("utf-8"), flags=re.S | re.M)


def test_what_must_be_there_in_chinese_is():
    wanted = {"README.md", "start.md", *(f"tutorial/{name}.md" for name in CHAPTERS)}
    assert wanted <= {path.as_posix() for path in list_translated()}


def test_a_translation_has_the_code_cells_and_the_commands_of_its_original():
    for path in list_translated():
        page, original = CHINESE / path, original_of(path)
        assert original.exists(), path
        assert read_cells(page) == read_cells(original), path
        assert read_commands(page) == read_commands(original), path


def test_chapters_have_code_cells_as_they_are_read_here():
    for name in CHAPTERS:
        assert len(read_cells(DOCS / "tutorial" / f"{name}.md")) >= 3, name


# The reference


def test_every_option_stands_in_the_reference_with_flag_key_default_and_help():
    text = generated.describe_options()
    for name, each in OPTIONS.items():
        (row,) = [line for line in text.splitlines() if f"`--{name.replace('_', '-')}`" in line]
        assert f"`{name}`" in row
        assert each.help in row
        assert each.unit in row
        assert each.source in row


def test_every_value_that_a_preset_sets_stands_in_the_reference():
    rows = {
        line.split("`")[1]: line.strip("| ").split(" | ")
        for line in generated.describe_presets().splitlines()[2:]
    }
    for column, name in enumerate(preset_names(), start=2):
        text = (
            resources.files("pixelpong.config.presets").joinpath(f"{name}.toml").read_text("utf-8")
        )
        for key, value in tomllib.loads(text).items():
            shown = rows[key][column] if key in rows else generated._spell(OPTIONS[key].default)
            assert shown == generated._spell(value), (name, key)


def test_every_command_stands_in_the_reference_with_its_help():
    text = generated.describe_commands()
    for name in ("train", "resume", "evaluate", "bench solve"):
        assert f"## {name}\n" in text
        assert f"usage: pixelpong {name}" in text
    assert "--learning-rate FLOAT" in text


def test_the_pages_of_the_reference_have_what_is_generated():
    pages = [path.read_text("utf-8") for path in (DOCS / "reference").iterdir()]
    for name in generated.DIRECTIVES:
        assert sum(f"generated-{name}" in page for page in pages) == 1, name


@pytest.mark.parametrize("path", sorted((DOCS / "_ext").glob("*.py")), ids=lambda path: path.stem)
def test_the_doctests_of_the_extensions_hold(path):
    assert doctest.testmod(importlib.import_module(path.stem)).failed == 0


def test_the_doctests_of_the_pages_hold():
    for page in PAGES:
        if ">>> " in page.read_text("utf-8"):
            assert doctest.testfile(str(page), module_relative=False).failed == 0, page


def test_each_protection_names_a_room_and_tests_that_there_are():
    """The table of `docs/reliability.md`, whose rows outlive what they name otherwise."""
    table = (DOCS / "reliability.md").read_text("utf-8").split("| protection | where | test |")[1]
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    package = ROOT / "src" / "pixelpong"
    rows = [line.split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    assert len(rows) > 40
    for what, where, tests in rows:
        for room in re.findall(r"`([a-z_/]+)`", where):
            assert (package / room).is_dir() or (package / f"{room}.py").is_file(), (what, room)
        names = re.findall(r"`([\w.]*)(?:::(\w+))?`", tests)
        assert names, what
        file = ""
        for given, test in names:
            file = given.removesuffix(".py") + ".py" if given else file
            assert f"def {test}(" in files[file] if test else file in files, (what, file, test)
