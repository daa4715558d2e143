"""Formulas that browsers draw without a script; links to files that are not pages; notebooks."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

DOCS = Path(__file__).resolve().parents[1]
sys.path.append(str(DOCS))
import notebooks  # noqa: E402

logger = logging.getLogger(__name__)

FUNCTION = re.compile(r"(<mi>\w\w+</mi>)\s*<mo>&ApplyFunction;</mo>")
THIN = '<mspace width="0.17em"/>'


def _write(writer: Any, node: nodes.Element, *, is_block: bool) -> None:
    try:
        text = tex2mathml(node.astext().strip(), as_block=is_block)
        # TeX puts a thin space around the name of a function; MathML does not.
        writer.body.append(FUNCTION.sub(rf"{THIN}\1{THIN}", text))
    except MathError as error:
        logger.warning("a formula that docutils cannot write: %s", error, location=node)
    raise nodes.SkipNode


class LinkToFile(SphinxTransform):
    """Markdown outside the site, which MyST takes for a page, is copied like any other file."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Change the links of one document."""
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("refdomain") == "doc" and node["reftarget"] not in self.env.found_docs:
                path = os.path.join(self.env.srcdir, f"{node['reftarget']}.md")
                target = f"/{os.path.relpath(path, self.env.srcdir)}"
                link = addnodes.download_reference("", "", *node.children, reftarget=target)
                node.replace_self(link)


def write_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Write each chapter as a notebook to download, beside its page."""
    if error is None and app.builder.format == "html":
        for folder in ("tutorial", "zh/tutorial"):
            out = Path(app.outdir) / folder
            notebooks.write_notebooks(DOCS / folder, out=out, stays=False)


def setup(app: Sphinx) -> dict[str, Any]:
    """The renderer ``mathml``, the links and the notebooks."""
    inline, block = (partial(_write, is_block=each) for each in (False, True))
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.add_transform(LinkToFile)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
