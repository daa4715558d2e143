"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network.

docutils has the translation from TeX. A formula that it cannot write is a warning, and warnings
end the build, so that none is ever shown as TeX.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

SPELLINGS = {
    r"\\dots(?![a-zA-Z])": r"\\ldots",
    r"\\[dt]?frac(\d)(\d)": r"\\frac{\1}{\2}",
    r"\\[dt]frac(?![a-zA-Z])": r"\\frac",
    r"\\bm(?![a-zA-Z])": r"\\boldsymbol",
    r"\\(big|Big|bigg|Bigg)(?![a-zA-Z])": r"\\\1l",
    r"(\\(?:hat|bar|tilde|vec)\s*(?:\{[^{}]*\}|\w))(?=[_^])": r"{{}\1}",  # or the index goes below
    r"\\(begin|end)\{(?:align|gather)\*?\}": r"\\\1{aligned}",
}
"""What MathJax in a notebook knows and docutils spells in another way."""

_FUNCTION = r"<mi>\w\w+</mi>\s*<mo>&ApplyFunction;</mo>"
_END = r"</(?:mi|mn|msub|msup|msubsup|mrow)>"
_THIN = '<mspace width="0.17em"/>'
"""TeX puts a thin space around the name of a function where no bracket follows."""


def to_mathml(tex: str, *, is_block: bool) -> str:
    r"""A formula as MathML.

    Raises:
        MathError: docutils does not know what stands in it.

    >>> to_mathml(r"\tfrac12", is_block=False) == to_mathml(r"\frac{1}{2}", is_block=False)
    True
    """
    for known, spelled in SPELLINGS.items():
        tex = re.sub(known, spelled, tex)
    text = str(tex2mathml(tex, as_block=is_block))
    text = re.sub(rf"({_END}\s*)({_FUNCTION})", rf"\1{_THIN}\2", text)
    return re.sub(rf"({_FUNCTION})(?!\s*<mo[^>]*>\()", rf"\1{_THIN}", text)


def _visit(writer: Any, node: nodes.Element, *, is_block: bool) -> None:
    tex = node.astext().strip()
    try:
        writer.body.append(to_mathml(tex, is_block=is_block))
    except MathError as error:
        logger.warning("a formula that cannot be written: %s: %s", tex, error, location=node)
    raise nodes.SkipNode


def _visit_inline(writer: Any, node: nodes.math) -> None:
    _visit(writer, node, is_block=False)


def _visit_block(writer: Any, node: nodes.math_block) -> None:
    _visit(writer, node, is_block=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Be known to Sphinx as the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
