"""What the pages say is there: links lead somewhere, languages agree, figures are the records'.

Quick, without building the site; `make docs` does that, and runs the notebooks. Each test counts
what it has looked at, so that none passes because it found nothing. `test_commands` runs what the
pages show.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from functools import cache
from pathlib import Path

import pytest
from pages import wait_for
from shown import DOCS, FENCED, LOG, PAGES, ROOT, read_blocks, read_commands

import pixelpong
from pixelpong.atari.machine import cartridges
from pixelpong.faces import cli

START = DOCS / "start.md"
CHINESE = DOCS / "zh"
CHAPTERS = sorted((DOCS / "tutorial").glob("[0-9]*.md"))

sys.path += [str(DOCS), str(DOCS / "_ext")]
import cells  # noqa: E402
import generated  # noqa: E402


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


def test_what_the_recipes_of_contributing_name_is_there():
    """Files, and names in the code; a recipe that names what is gone helps nobody."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipes = text.split("## Recipes")[1].split("\n## ")[0]
    source = "\n".join(
        path.read_text("utf-8")
        for folder in ("src", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".js", ".toml")
    )
    looked = 0
    for word in re.findall(r"`([^`\n]+)`", recipes):
        if "NAME" in word or " " in word or "…" in word:  # something to fill in, a command
            continue
        if "/" in word or re.search(r"\.(py|md|js|toml|jsonl)$", word):
            places = (ROOT, ROOT / "src/pixelpong", ROOT / "src/pixelpong/faces/page/static")
            is_there = any((place / word).exists() for place in places)
            assert is_there or f'"{word}"' in source, word
        else:
            last = word.removesuffix("()").split(".")[-1]
            assert re.search(rf"(?<!\w){re.escape(last)}(?!\w)", source), word
        looked += 1
    assert looked >= 15
    assert {"A metric", "An option", "A preset", "An observation"} <= set(
        re.findall(r"^\*\*(.+?)\*\*", recipes, re.M)
    )


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
    assert len(CHAPTERS) == 15
    for path in CHINESE.rglob("*.md"):
        name = path.relative_to(CHINESE)
        original = ROOT / name if name == Path("README.md") else DOCS / name
        if name.name != "index.md" or name.parent.name:
            assert read_commands(path) == read_commands(original), name


def shape_of(page: Path) -> dict[str, list[object]]:
    """What two languages of a page have in common: levels, links, tables, bullets, code."""
    text = page.read_text("utf-8")
    prose = FENCED.sub("", text)
    linked = (target for target in read_links(text) if not target.startswith("#"))
    paths = [os.path.relpath(page.parent / target, ROOT) for target in linked]
    spans = [it for it in re.findall(r"`([^`\n]+)`", prose) if it.startswith("pixelpong")]
    return {
        "headings": [len(it) for it in re.findall(r"^(#+) ", prose, flags=re.M)],
        "links": sorted({it.replace("docs/zh/", "docs/").removeprefix("docs/README.md")
                         for it in paths} - {"README.md", ""}),
        "cells of rows": [row.count("|") for row in prose.splitlines() if row.startswith("|")],
        "bullets": re.findall(r"^- ", prose, flags=re.M),
        "commands": [*read_commands(page), *sorted(spans)],
        "python": read_blocks(page, "python"),
        "numbers of the table": re.findall(r"\b12,180\b|\*\*16|\b197\b|\b300\b", prose),
    }  # fmt: skip


def test_the_chinese_readme_is_built_like_the_english_one():
    english, chinese = (shape_of(page) for page in (ROOT / "README.md", CHINESE / "README.md"))
    assert min(len(each) for each in english.values()) >= 1
    for name, found in english.items():
        assert chinese[name] == found, name


def test_python_has_each_command_under_its_name():
    assert [name for name in cli.COMMANDS if not hasattr(pixelpong, name)] == []


def test_each_part_of_the_reference_that_is_generated_is_on_one_page():
    pages = [page.read_text("utf-8") for page in PAGES]
    for name, describe in generated.DIRECTIVES.items():
        assert sum(f"{{generated-{name}}}" in page for page in pages) == 1, name
        assert describe().count("\n") > 5, name


MEASURED = ("speeds", "breakout")
"""Tables with a row for each row of a record."""


def test_the_tables_of_measurements_have_the_rows_of_their_records(tmp_path, monkeypatch):
    rates = {"make_vec": 31_329, "AtariVectorEnv": 3366, "EnvPool": 3060}
    row = rates | {"over_AtariVectorEnv": [9.27, 8.98, 9.37], "over_EnvPool": [10.24, 9.91, 10.28]}
    curve = [
        {"steps": 40_960 * k, "seconds": 90.0 * k, "mean_return_100": k / 10} for k in range(1, 59)
    ]
    monkeypatch.setattr(generated, "BENCHMARKS", tmp_path)
    assert [generated.DIRECTIVES[name]().count("\n") for name in MEASURED] == [2, 2]
    record = {"games": {"breakout": row}, "sizes": {"8": row}}
    (tmp_path / "vector.json").write_text(json.dumps(record))
    (tmp_path / "ppo_breakout.json").write_text(json.dumps({"curve": curve}))
    *_, breakout, eight = generated.describe_speeds().splitlines()
    assert breakout == "| `breakout` | 31,300 | 3,400 | 3,100 | 9.3 | 10.2 |"
    assert eight.startswith("| `pong`, 8 at once | 31,300 |")
    _, _, *points, last = generated.describe_breakout().splitlines()
    assert (len(points), last) == (9, "| 2.38 M | 87 | 5.8 |")


def test_each_night_all_tests_run_that_make_test_leaves_out():
    nightly = (ROOT / ".github/workflows/nightly.yml").read_text("utf-8")
    paths = re.findall(r"tests/[a-z_/]+(?:\.py)?", nightly)
    soaked = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.soak" in path.read_text("utf-8").replace('"mark.soak"', "")
    ]
    assert len(soaked) > 10
    for path in soaked:
        assert any(path.startswith(it) for it in paths), path


def test_the_pages_claim_the_games_that_the_nightly_job_compares():
    text = (ROOT / "tests/envs/test_same_bytes.py").read_text("utf-8")
    assert text.count("@pytest.mark.soak") == text.count('parametrize("game", scored_names())') == 3
    nightly = (ROOT / ".github/workflows/nightly.yml").read_text("utf-8")
    assert re.search(r"make soak ARGS=.*tests/envs/test_same_bytes\.py", nightly)
    games, page = len(cartridges.scored_names()), (DOCS / "howto/games.md").read_text("utf-8")
    for path, words in {
        "README.md": f"on {games - 1} more of ALE's games",
        "docs/zh/README.md": f"另外 {games - 1} 个游戏",
        "docs/howto/games.md": f"{games} of ALE's games",
        "docs/faq.md": f"[{games} games](howto/games.md)",
        "docs/concepts.md": f"[{games} of them](howto/games.md)",
        "docs/emulator.md": f"{games} games have these facts",
        "docs/reliability.md": f"the {games} games",
        "CHANGELOG.md": f"- {games} games for your agent",
    }.items():
        assert words in (ROOT / path).read_text("utf-8"), path
    excluded = page.split("## What is not covered")[1]
    named = set(re.findall(r"`(\w+)`", excluded)) & cartridges.facts().keys()
    facts = {game: cartridges.cartridge(game) for game in cartridges.scored_names()}
    limited = {game for game, it in facts.items() if it.counted_frames}  # by their starts
    limited |= {"adventure", "video_cube", "backgammon"}  # in modes, or without a difficulty
    assert named == cartridges.not_covered().keys() | limited


def test_the_table_of_games_says_what_is_covered_of_each():
    rows = {line.split("`")[1]: line for line in generated.describe_games().splitlines()[2:]}
    assert rows.keys() == cartridges.facts().keys()
    for name, line in rows.items():
        reason = cartridges.not_covered().get(name)
        assert (f"not covered: {reason}" in line) if reason else ("| covered |" in line), name
    assert rows["breakout"].startswith("| `breakout` | 2K | 4 | 0, 4, 8, 12,")
    assert "40, 44 | 0, 1 | yes | covered |" in rows["breakout"]
    assert rows["pong"].startswith("| `pong` | 2K | 6 | 0, 1 | 0–3 | none | covered |")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "shape"), [(START, (210, 160, 3)), (ROOT / "README.md", (64, 4, 84, 84))]
)
def test_the_python_shown_runs(page, shape, tmp_path, monkeypatch):
    (block,) = [each for each in read_blocks(page, "python") if "import pixelpong" in each]
    monkeypatch.chdir(tmp_path)
    shown = {}
    exec(block.replace("200_000", "16_000"), shown)
    seen = shown["observation"] if "observation" in shown else shown["observations"]
    assert seen.shape == shape
    assert ("200_000" in block) == (page == START)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:All-NaN slice|Mean of empty slice|invalid value")
def test_the_chapter_about_an_agent_works_with_the_readers_own(toy_runs, tmp_path, monkeypatch):
    """Its cells run with a run's name in the first one, as the chapter says."""
    for library in ("matplotlib", "av"):
        pytest.importorskip(library)
    jupytext = pytest.importorskip("jupytext")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (chapter,) = (it for it in CHAPTERS if it.stem.startswith("11_"))
    text = chapter.read_text("utf-8")
    for old, new in {
        "AGENT = None": f"AGENT = {str(toy_runs['fast'])!r}",
        "GAMES, SEED = 40": "GAMES, SEED = 3",
        "WATCHED_STEPS = 5_000": "WATCHED_STEPS = 500",
    }.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    space: dict[str, object] = {}
    for cell in jupytext.reads(text, "md:myst").cells:
        if cell.cell_type == "code":
            exec(cell.source, space)
    assert space["agent"].about["update"] == max(pixelpong.Run(toy_runs["fast"]).agents())
    assert space["lost"], "an agent of twelve updates loses points"


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
