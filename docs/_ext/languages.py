"""A page that is there in two languages links to the other, and says which it is written in."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER, LANGUAGE = "zh/", "zh-CN"
FRONT = {"zh/README": "index"}
"""Read on code hosts, and on the site; the English one is not on the site."""


def other_language(docname: str, documents: set[str]) -> str | None:
    """The same page in the other language, if there is one.

    >>> other_language("start", {"start", "zh/start"}), other_language("faq", {"faq"})
    ('zh/start', None)
    """
    swapped = docname.removeprefix(FOLDER) if docname.startswith(FOLDER) else FOLDER + docname
    found = FRONT.get(docname, swapped)
    return found if found in documents else None


def _add_link(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    is_chinese = pagename.startswith(FOLDER)
    if is_chinese:
        context["language"] = LANGUAGE
    other = other_language(pagename, set(app.env.all_docs))
    if doctree is not None and other:
        label, code = ("English", "en") if is_chinese else ("中文", LANGUAGE)
        context["other_language"] = {"page": other, "label": label, "code": code}


def setup(app: Sphinx) -> dict[str, Any]:
    """Give the template of each page what it needs."""
    app.connect("html-page-context", _add_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
