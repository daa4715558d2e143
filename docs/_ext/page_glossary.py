"""The glossary as the page shows it: plain sentences by term.

``docs/glossary.md`` is the only source. Run this after changing it:

    python docs/_ext/page_glossary.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs" / "glossary.md"
TARGET = ROOT / "src" / "pixelpong" / "faces" / "page" / "static" / "glossary.json"


def read_terms(text: str) -> dict[str, str]:
    """The explanation of each term of a glossary, in one line without markup.

    >>> read_terms("```{glossary}\\na, b\\n  Of {term}`c <d>`:\\n  *x* $y$.\\n```")
    {'a': 'Of c: x y.', 'b': 'Of c: x y.'}
    """
    (body,) = re.findall(r"```\{glossary\}\n(.*?)```", text, re.DOTALL)
    terms = {}
    for block in re.split(r"\n\n+", body.strip()):
        names, _, words = block.partition("\n")
        terms |= dict.fromkeys(names.split(", "), _strip(words))
    return terms


def _strip(words: str) -> str:
    plain = re.sub(r"\{term\}`([^`<]*?)(?: <[^>]*>)?`", r"\1", " ".join(words.split()))
    return re.sub(r": \$[^$]*\$(?=[.;])|[`*$]", "", plain)


if __name__ == "__main__":
    terms = read_terms(SOURCE.read_text("utf-8"))
    TARGET.write_text(json.dumps(terms, ensure_ascii=False, indent=1) + "\n", "utf-8")
