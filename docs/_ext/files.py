"""Files that the pages link to are pages too; a link that leads to nothing is a warning."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "files"
LEXERS = {
    ".py": "python", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".sh": "bash", ".md": "md",
    ".txt": "text",
}  # fmt: skip

logger = logging.getLogger(__name__)


class LinkToFile(SphinxTransform):
    """A link to a text file in the repository leads to a page with the file; others download it."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Change the links of one document."""
        shown = self.env.__dict__.setdefault("shown_files", {})
        here = Path(self.env.doc2path(self.env.docname)).parent
        for node in list(self.document.findall(_is_link)):
            target = node["reftarget"]
            if node.get("refdomain") == "doc":  # MyST takes Markdown outside the site for a page
                file = (Path(self.env.srcdir) / f"{target}.md").resolve()
            else:
                target = target.partition("#")[0]
                file = (
                    Path(self.env.srcdir) / target[1:] if target[0] == "/" else here / target
                ).resolve()
            if self.app.builder.format != "html" or file.suffix not in LEXERS:
                continue
            name = file.relative_to(ROOT).as_posix()
            shown.setdefault(name, None)
            page = self.app.builder.get_relative_uri(self.env.docname, f"{FOLDER}/{name}")
            node.replace_self(nodes.reference("", "", *node.children, refuri=page))


def _is_link(node: nodes.Node) -> bool:
    if isinstance(node, addnodes.download_reference):
        return "://" not in node["reftarget"]
    return (
        isinstance(node, addnodes.pending_xref)
        and node.get("refdomain") == "doc"
        and node["reftarget"] not in node.document.settings.env.found_docs
    )


def show_files(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that a page links to."""
    for name in sorted(app.env.__dict__.get("shown_files", {})):
        text = (ROOT / name).read_text("utf-8")
        code = app.builder.highlighter.highlight_block(text, LEXERS[Path(name).suffix], force=True)
        yield (
            f"{FOLDER}/{name}",
            {"title": name, "body": f"<h1>{escape(name)}</h1>{code}"},
            "page.html",
        )


class _Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and not re.match(r"[a-z]+:", value):
                self.links.append(value)


def check_links(app: Sphinx, error: Exception | None) -> None:
    """Warn of links that lead to nothing, after those have gone that viewcode leaves."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    paths = {path.relative_to(out).as_posix(): path for path in out.rglob("*.html")}
    pages = {name: _Links(path.read_text("utf-8")) for name, path in paths.items()}

    def leads(page: str, link: str) -> bool:
        address, _, anchor = link.partition("#")
        address = unquote(address.partition("?")[0])
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), address))
        target = target if address else page
        is_there = not anchor or target not in pages or unquote(anchor) in pages[target].anchors
        return (out / target).exists() and is_there

    for name, page in pages.items():
        dead = {link for link in page.links if not leads(name, link)}
        if left := {link for link in dead if name.startswith("_modules/")}:
            # What is defined there has another name in public.
            text = paths[name].read_text("utf-8")
            for link in left:
                text = text.replace(f'<a class="viewcode-back" href="{link}">[docs]</a>', "")
            paths[name].write_text(text, "utf-8")
            dead = {link for link in _Links(text).links if not leads(name, link)}
        for link in sorted(dead):
            logger.warning("%s: a link leads to nothing: %s", name, link)


def leave_out_of_search(app: Sphinx, docname: str, _source: list[str]) -> None:
    """A search finds pages of one language: words of Chinese are not told apart anyway."""
    if docname.startswith("zh/"):
        app.env.metadata[docname]["nosearch"] = True


def keep_at(_app: Sphinx, *arguments: Any) -> None:
    """RUN@UPDATE is no address of mail."""
    lines = arguments[-1]
    lines[:] = [re.sub(r"(?<=\w)@(?=\w)", r"\\@", line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """The links and the pages of files."""
    app.add_transform(LinkToFile)
    app.connect("html-collect-pages", show_files)
    app.connect("source-read", leave_out_of_search)
    app.connect("autodoc-process-docstring", keep_at)
    app.connect("build-finished", check_links, priority=900)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
