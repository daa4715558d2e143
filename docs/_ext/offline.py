"""No page of the site asks for anything from elsewhere: whatever does is a warning.

Looked at when all is written: scripts, styles, pictures, frames and fonts of every page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

LOADED = re.compile(
    r"<(?:script|img|iframe|video|audio|source|embed|object)\b[^>]*?\b(?:src|data)\s*=\s*"
    r"[\"']((?:https?:)?//[^\"']+)"
    r"|<link\b(?=[^>]*\brel=[\"'](?:stylesheet|icon|preload))[^>]*\bhref=[\"']((?:https?:)?//[^\"']+)"
    r"|(?:@import\s+|\burl\()[\"']?((?:https?:)?//[^\"')]+)",
    re.IGNORECASE,
)


def find_outside(text: str) -> list[str]:
    """The addresses elsewhere that a browser would ask when it shows this page or style.

    >>> find_outside('<script src="https://a.b/c.js"></script><a href="https://d.e">f</a>')
    ['https://a.b/c.js']
    >>> find_outside("<style>@import '//a.b/c.css'</style><img src='_images/d.png'>")
    ['//a.b/c.css']
    """
    return [next(filter(None, groups)) for groups in LOADED.findall(text)]


def _written(folder: Path) -> Iterator[Path]:
    for ending in ("html", "css"):
        yield from sorted(folder.rglob(f"*.{ending}"))


def _look(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for path in _written(Path(app.outdir)):
            for address in find_outside(path.read_text("utf-8")):
                name = path.relative_to(app.outdir)
                logger.warning("%s: expected nothing from elsewhere, got %s", name, address)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look when the build has finished."""
    app.connect("build-finished", _look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
