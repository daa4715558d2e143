"""What the pages say is there: commands parse, links lead somewhere, languages agree.

Quick, without building the site; `make docs` does that, and runs the notebooks. Each test counts
what it has looked at, so that none passes because it found nothing.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
from functools import cache
from pathlib import Path

import pytest

import pixelpong
import pixelpong.errors
from pixelpong.config import OPTIONS, require_used
from pixelpong.config.presets import load_preset
from pixelpong.faces.cli import COMMANDS, parse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"
CHAPTERS = sorted((DOCS / "tutorial").glob("[0-9]*.md"))
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md", *DOCS.rglob("*.md")]
    if "_build" not in page.parts
)

sys.path[:0] = [str(DOCS), str(DOCS / "_ext")]
import cells  # noqa: E402
import generated  # noqa: E402

FENCED = re.compile(r"^( *)(```+|~~~+).*?^\1\2", flags=re.S | re.M)


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
    """Our commands in the prose, in backquotes; a bare name becomes a question for its help."""
    prose = FENCED.sub("", page.read_text("utf-8"))
    spans = re.findall(r"(?<!`)`(pixelpong [a-z][^`]*)`(?!`)", prose)
    whole = [" ".join(span.split()) for span in spans if not re.search(r"[…|\[]", span)]
    return [f"{span} --help" if len(span.split()) == 2 else span for span in whole]


def check_command(line: str) -> None:
    """The words are a command line of ours, with options that exist and values in range."""
    words = shlex.split(re.split(r"\s(?:>|\||&&)", line)[0])
    words = words[words.index("pixelpong") + 1 :]
    if {"--help", "--version"} & set(words):
        with pytest.raises(SystemExit) as exit:
            parse(words)
        assert not exit.value.code, line
        return
    function, _, options = parse(words)
    given = {name: value for name, value in options.items() if name in OPTIONS}
    if function in (pixelpong.train, pixelpong.resume):
        config = load_preset(given.get("preset", "fast")).updated(given, line)
        if function is pixelpong.train:
            require_used(given, config, line)


@pytest.mark.slow
def test_every_command_shown_is_one(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, flags=re.M))
    ours, made = 0, 0
    for page in PAGES:
        if page.name == "log.md":  # a diary: its commands are those of their day
            continue
        lines = read_commands(page)
        for line in [*lines, *read_shown(page)]:
            if re.search(r"(^|-- )pixelpong ", line):
                check_command(line)
                ours += 1
        named = {line.split()[1] for line in lines if line.startswith("make ")}
        assert named <= targets, page
        made += len(named)
    assert ours >= 90
    assert made >= 5


@pytest.mark.parametrize(
    "line", ["pixelpong trian", "pixelpong train --sed 1", "pixelpong train --seed -1"]
)
def test_a_command_that_is_none_is_noticed(line):
    with pytest.raises(pixelpong.errors.ConfigError):
        check_command(line)


def test_python_that_is_shown_names_what_there_is():
    blocks = 0
    for page in PAGES:
        for block in read_blocks(page, "python"):
            tree = ast.parse(re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.M))
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "pixelpong":
                    assert hasattr(pixelpong, node.attr), (page, node.attr)
            blocks += 1
    assert blocks >= 10


@cache
def anchors_of(page: Path) -> set[str]:
    """What links to a page may end in: its headings, as code hosts and MyST spell them."""
    text = FENCED.sub("", page.read_text("utf-8"))
    names = set(re.findall(r"\{#([\w-]+)\}", text)) | set(re.findall(r"^\(([\w-]+)\)=", text, re.M))
    for heading in re.findall(r"^#+ +(.+)$", text, flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        names.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return names


def read_links(text: str) -> list[str]:
    """The targets of links, without code, in which brackets are none."""
    text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "code", FENCED.sub("", text), flags=re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_every_link_leads_to_something():
    assert read_links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n[g](h.md#i)") == [
        "b.md", "h.md#i",
    ]  # fmt: skip
    assert "trian" not in anchors_of(DOCS / "start.md")
    followed = 0
    for page in PAGES:
        for target in read_links(page.read_text("utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), (page, target)
            assert found.is_relative_to(ROOT.resolve()), (page, target)
            assert not anchor or anchor in anchors_of(found), (page, target)
            followed += 1
    assert followed >= 300


def test_a_translation_has_the_code_and_the_commands_of_its_original():
    for original in CHAPTERS:
        english, chinese = (
            path.read_text("utf-8") for path in (original, CHINESE / "tutorial" / original.name)
        )
        assert len(cells.CELL.findall(english)) >= 3
        assert cells.with_cells_of(english, chinese) == chinese, f"{original}: run docs/cells.py"
    assert len(CHAPTERS) == 14
    for path in CHINESE.rglob("*.md"):
        name = path.relative_to(CHINESE)
        original = ROOT / name if name == Path("README.md") else DOCS / name
        if name.name != "index.md" or name.parent.name:
            assert read_commands(path) == read_commands(original), name


def test_cells_are_written_into_their_places():
    english, old, new = (
        f"{words}\n```{{code-cell}}\n{code}\n```\n" for words, code in ("ab", "cd", "cb")
    )
    assert cells.with_cells_of(english, old) == new
    with pytest.raises(ValueError, match="2 cells in English, 1 in Chinese"):
        cells.with_cells_of(2 * english, old)


def test_the_reference_has_every_option_and_every_command():
    options = generated.describe_options().splitlines()
    for name, each in OPTIONS.items():
        (row,) = [line for line in options if f"`--{name.replace('_', '-')}`" in line]
        assert all(words in row for words in (f"`{name}`", each.help, each.source))
    commands = generated.describe_commands()
    for name in COMMANDS:
        assert f"usage: pixelpong {name}" in commands
    pages = [path.read_text("utf-8") for path in (DOCS / "reference").iterdir()]
    for name in generated.DIRECTIVES:
        assert sum(f"generated-{name}" in page for page in pages) == 1, name


def test_each_test_that_a_page_names_is_there():
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    named = 0
    for page in set(PAGES) - {DOCS / "log.md"}:
        file = ""
        text = page.read_text("utf-8")
        for path, test in re.findall(r"`(?:tests/\w+/)?(test_\w+\.py)?(?:::(test_\w+))?`", text):
            file = path or file
            assert not test or f"def {test}(" in files[file], (page, file, test)
            assert file in files or not path, (page, path)
            named += bool(path)
    assert named >= 20


def test_figures_in_the_prose_are_the_recorded_ones():
    """Besides the tables that `test_readme.py` compares."""
    names = ("solve", "solve_xeon", "rounds")
    solve, xeon, rounds = (
        json.loads((ROOT / f"benchmarks/{name}.json").read_text("utf-8")) for name in names
    )
    fast, slow = (
        sorted(round(seed["seconds"]) for seed in each["seeds"]) for each in (solve, xeon)
    )
    middle, of_slow = (f"{each['summary']['seconds']['median']:.0f}" for each in (solve, xeon))
    steps, greedy = (
        sorted(pick(seed) for seed in solve["seeds"])
        for pick in (lambda seed: seed["steps"] / 1e6, lambda seed: seed["greedy"]["mean_return"])
    )
    rows = [f"{each['steps'] / 1e6:.2f} M" for each in rounds["trainings"] if each["is_won"]]
    shown = {
        "README.md": [f"as fast need {of_slow}"],
        "docs/start.md": [f"{fast[0]} to {fast[-1]} seconds", f"as fast {slow[0]} to {slow[-1]}"],
        "docs/faq.md": [
            f"{middle} seconds",
            f"{of_slow} on two",
            f"{solve['peers'][0]['steps']:,}",
        ],
        "docs/reproduce.md": [f"median {middle} s ({fast[0]} to {fast[-1]})", f"with {of_slow} in"],
        "docs/scaling.md": [f"| {' | '.join(rows[:3])} |", f"| {' | '.join(rows[3:])} |"],
        "docs/tutorial/10_from_reinforce_to_ppo.md": [
            f"+{greedy[0]:.1f} to +{greedy[-1]:.1f} after {steps[0]:.1f} to {steps[-1]:.1f} million"
        ],
        "docs/tutorial/11_a_winning_agent.md": [f"{fast[0]} to {fast[-1]} seconds"],
        "docs/zh/start.md": [f"{fast[0]} 到 {fast[-1]} 秒", f"{slow[0]} 到 {slow[-1]} 秒"],
        "docs/zh/README.md": [f"{middle} 秒（{fast[0]} 到 {fast[-1]}）", f"{of_slow} 秒"],
    }
    for page, words in shown.items():
        text = " ".join((ROOT / page).read_text("utf-8").split())
        assert not [each for each in words if each not in text], page
