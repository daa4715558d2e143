"""What the pages say is there: commands parse, links lead somewhere, languages agree.

Quick, without building the site; `make docs` does that, and runs the notebooks. Each test counts
what it has looked at, so that none passes because it found nothing. What README and quick start
show is run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
from pages import wait_for

import pixelpong
import pixelpong.errors
from pixelpong.config import OPTIONS, require_used
from pixelpong.config.presets import load_preset
from pixelpong.faces.cli import parse
from pixelpong.faces.page import server
from pixelpong.faces.page.library import Library

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
START = DOCS / "start.md"
CHINESE = DOCS / "zh"
CHAPTERS = sorted((DOCS / "tutorial").glob("[0-9]*.md"))
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md", *DOCS.rglob("*.md")]
    if "_build" not in page.parts
)
LOG = DOCS / "log.md"
"""A diary: its commands, names and tests are those of their day."""

sys.path += [str(DOCS), str(DOCS / "_ext")]
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
    for page in set(PAGES) - {LOG}:
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
    for line in ("pixelpong trian", "pixelpong train --sed 1", "pixelpong train --seed -1"):
        with pytest.raises(pixelpong.errors.ConfigError):
            check_command(line)


def test_each_test_and_each_public_name_that_a_page_names_is_there():
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    tests = names = 0
    for page in set(PAGES) - {LOG}:
        text = page.read_text("utf-8")
        for file, test in re.findall(r"`(?:tests/\w+/)?(test_\w+\.py)(?:::(test_\w+))?`", text):
            assert f"def {test}" in files[file], (page, file, test)
            tests += 1
        for name in re.findall(r"\bpixelpong\.(\w+)\(", "".join(read_blocks(page, "python"))):
            assert hasattr(pixelpong, name), (page, name)
            names += 1
    assert (tests >= 20, names >= 10) == (True, True)


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
    assert "trian" not in anchors_of(START)
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
        changed = cells.CELL.sub("```{code-cell}\nchanged\n```", chinese)
        assert cells.with_cells_of(english, changed) == chinese
    assert len(CHAPTERS) == 14
    for path in CHINESE.rglob("*.md"):
        name = path.relative_to(CHINESE)
        original = ROOT / name if name == Path("README.md") else DOCS / name
        if name.name != "index.md" or name.parent.name:
            assert read_commands(path) == read_commands(original), name


def test_each_part_of_the_reference_that_is_generated_is_on_one_page():
    pages = [path.read_text("utf-8") for path in (DOCS / "reference").iterdir()]
    for name, describe in generated.DIRECTIVES.items():
        assert sum(f"generated-{name}" in page for page in pages) == 1, name
        assert describe().count("\n") > 5, name


# --- README and quick start ------------------------------------------------------------------

SHORTER = {
    "pixelpong resume runs/fast-001": "--updates 2",
    "pixelpong evaluate runs/fast-001 --episodes 20": "--episodes 2",
    "pixelpong plot runs/fast-001": "--kind health",  # no episode is finished yet
    "pixelpong verify": "--updates 1 --presets classic --engines serial,threads",
    "pixelpong train --seed 1 --updates 100": "--updates 1",
    "pixelpong train --preset classic --batch-size 20": "--updates 1 --max-frames 300",
    "pixelpong train --config mine.toml --updates 2": "--updates 1 --max-frames 300",
    "pixelpong record latest --overlay --out best.mp4": "--seconds 1",
    "pixelpong record runs/fast-001 --overlay --out best.mp4": "--seconds 1",
}


@pytest.mark.slow
def test_every_command_works_in_the_order_it_is_shown(call, tmp_path, monkeypatch):
    """In a folder where `make train` has been, here with a shorter training."""
    opened = []

    def serve(runs_dir, host, port, opens_browser, view="", agent=(None, "best"), **how):
        library = Library(runs_dir, agent[0])
        opened.append((view, library.load_agent(library.id_of(agent[0]), agent[1]).protocol))

    monkeypatch.setattr(server, "serve", serve)
    shown = [*read_commands(ROOT / "README.md"), *read_commands(START)]
    shown = [line for line in shown if not line.startswith(("make", "pip", "source"))]
    for command in ["pixelpong train --updates 1", *dict.fromkeys(shown)]:
        if command.startswith("echo"):
            subprocess.run(command, shell=True, cwd=tmp_path, check=True)
            continue
        code, _, said = call(*shlex.split(f"{command} {SHORTER.get(command, '')}")[1:])
        words = [line for line in said.splitlines() if not line.startswith("warning: ")]
        assert (code, words) == (0, []), command
    assert [view for view, _ in opened] == ["play", "play", "", "watch", "play"]
    assert len(list((tmp_path / "runs").iterdir())) == 4


@pytest.mark.slow
def test_the_python_shown_runs(tmp_path, monkeypatch):
    (block,) = [each for each in read_blocks(START, "python") if "import pixelpong" in each]
    assert "total_timesteps=200_000" in block
    monkeypatch.chdir(tmp_path)
    shown = {}
    exec(block.replace("200_000", "80_000"), shown)
    assert (shown["observation"].shape, shown["reward"]) == ((210, 160, 3), 0.0)


def test_the_loop_that_is_shown_is_the_loop():
    blocks = read_blocks(DOCS / "concepts.md", "python")
    (shown,) = [each for each in blocks if "while True" in each]
    source = (ROOT / "src/pixelpong/loop.py").read_text("utf-8")
    assert textwrap.indent(shown, 16 * " ") in source


# --- the path of a new user; last, as this thread then has an event loop that runs -------------


@pytest.mark.browser
@pytest.mark.slow
def test_from_the_first_word_to_a_game_against_the_own_agent(tmp_path, open_page):
    how = {"cwd": tmp_path, "stderr": subprocess.STDOUT, "text": True}

    def say(line: str) -> str:
        return subprocess.check_output([sys.executable, "-m", *shlex.split(line)], **how)

    assert "pixelpong train" in say("pixelpong")

    # A target that any agent reaches: the path is the same, the training shorter.
    short = "--updates 3 --max-frames 800 --until-return -20.99 --seed 3"
    said = say(f"pixelpong train {short}")
    assert re.search(r"^Won: mean return −\d+\.\d+ \(.*\) over 200 new games", said, re.M), said
    play, watch, film = (
        re.search(rf"^{what} +(pixelpong .*)$", said, re.M)[1].strip()
        for what in ("play against it", "watch it", "film it")
    )
    assert watch == "pixelpong watch runs/fast-001"
    assert film.startswith("pixelpong record runs/fast-001 ")

    assert re.search(r"^fast-001 +won", say("pixelpong runs"), re.M)

    words = [sys.executable, "-m", *shlex.split(play), "--no-open", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, **how) as server:
        try:
            found = (re.search(r"(http://\S+)\s", line) for line in server.stdout)
            page = open_page(next(filter(None, found))[1])
            page.wait_for_selector(".play-score strong")
            page.wait_for_selector("text=Ready?")
            page.keyboard.press("Space")
            wait_for(page, "document.querySelector('.play-score strong').textContent !== '0 : 0'")
        finally:
            server.terminate()
