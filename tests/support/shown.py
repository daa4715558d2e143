"""What the pages show: their commands, in order, and their blocks of code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOG = DOCS / "log.md"
"""A diary: its commands, names and tests are those of their day."""

PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md", *DOCS.rglob("*.md")]
    if "_build" not in page.parts
)

FENCED = re.compile(r"^( *)(```+|~~~+).*?^\1\2", flags=re.S | re.M)
_BLOCK_OR_SPAN = re.compile(
    r"^ *```+bash\n(?P<block>.*?)^ *```|" + FENCED.pattern.replace(r"\1\2", r"\2\3")
    + r"|(?<!`)`(?P<span>(?:pixelpong|python) [a-z][^`]*)`(?!`)",
    flags=re.S | re.M,
)  # fmt: skip


def read_blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    text = page.read_text("utf-8")
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, flags=re.S | re.M)


def split_lines(text: str) -> list[str]:
    """The commands of a ``bash`` block, lines joined, without comments and blank lines."""
    lines = text.replace("\\\n", " ").splitlines()
    commands = (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines)
    return [line for line in commands if line]


def read_commands(page: Path) -> list[str]:
    """The commands of a page's ``bash`` blocks."""
    return [line for block in read_blocks(page, "bash") for line in split_lines(block)]


def read_shown(page: Path) -> list[str]:
    """The commands of a page's ``bash`` blocks and of its prose, in their order.

    In prose a command stands in backquotes. There a bare name, such as ``pixelpong resume``, names
    the command and is not meant to be typed: it becomes a question for its help.
    """
    found: list[str] = []
    for match in _BLOCK_OR_SPAN.finditer(page.read_text("utf-8")):
        if match["block"]:
            found += split_lines(match["block"])
        elif match["span"] and not re.search(r"[…|\[]", match["span"]):
            span = " ".join(match["span"].split())
            found.append(f"{span} --help" if re.fullmatch(r"pixelpong \w+", span) else span)
    return found
