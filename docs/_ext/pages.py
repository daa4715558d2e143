"""Formulas that browsers draw without a script; notebooks to download."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
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


def write_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Write each chapter as a notebook to download, beside its page."""
    if error is None and app.builder.format == "html":
        for folder in ("tutorial", "zh/tutorial"):
            out = Path(app.outdir) / folder
            notebooks.write_notebooks(DOCS / folder, out=out, stays=False)


def setup(app: Sphinx) -> dict[str, Any]:
    """The renderer ``mathml`` and the notebooks."""
    inline, block = (partial(_write, is_block=each) for each in (False, True))
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
