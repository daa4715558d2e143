"""Drawings of ours, ``*.svg`` beside the pages, go into the page, where they take its colours.

In the file itself a style gives them colours, for whoever looks at it elsewhere.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class DrawInline(SphinxTransform):
    """A picture that is an SVG file of the documentation → the drawing itself."""

    default_priority = 200

    def apply(self, **kwargs: Any) -> None:
        """Change the pictures of one document."""
        folder = Path(self.env.srcdir) / Path(self.env.docname).parent
        for node in list(self.document.findall(nodes.image)):
            path = folder / node["uri"]
            if path.suffix == ".svg" and path.is_file():
                self.env.note_dependency(str(path))
                drawing = inline(path.read_text("utf-8"), node.get("alt", ""))
                node.replace_self(nodes.raw("", drawing, format="html"))


def inline(svg: str, alt: str) -> str:
    """The drawing without the colours of its own, named for those who cannot see it."""
    svg = re.sub(r"<style>.*?</style>\s*", "", svg, flags=re.S)
    words = html.escape(alt, quote=True)
    return svg.replace("<svg ", f'<svg class="drawing" role="img" aria-label="{words}" ', 1)


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at each document that is read."""
    app.add_transform(DrawInline)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
