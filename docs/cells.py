"""Writes the code cells of the English chapters into the Chinese ones.

    python docs/cells.py

So a chapter's code is edited in English only; in Chinese, only the prose is. If a chapter gets a
new cell, put an empty one in the same place of its translation first.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
CELL = re.compile(r"^```+\{code-cell\}.*?^```+$", flags=re.S | re.M)


def with_cells_of(original: str, translation: str) -> str:
    """The translation, with its cells replaced by those of the original, in order."""
    cells, places = CELL.findall(original), len(CELL.findall(translation))
    if len(cells) != places:
        raise ValueError(f"{len(cells)} cells in English, {places} in Chinese; add or remove some")
    return CELL.sub(lambda _: cells.pop(0), translation)


def main() -> None:
    """Write them all."""
    for page in sorted((DOCS / "zh/tutorial").glob("[0-9]*.md")):
        original = (DOCS / "tutorial" / page.name).read_text("utf-8")
        page.write_text(with_cells_of(original, page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
