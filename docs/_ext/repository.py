"""Files of the repository that a page links to become pages of the site.

``[loop.py](../src/pixelpong/loop.py)`` works as it stands if the text is read beside the code. On
the site it leads to the same file, highlighted. Other files, as pictures, are copied, as
MyST does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {".py": "python", ".json": "json", ".toml": "toml", ".md": "markdown", ".txt": "text"}
FOLDER = "repository"
LARGEST = 200_000
"""Bytes beyond which a file is copied instead of shown."""


class LinkToFile(SphinxTransform):
    """A link to a file of the repository → a link to its page."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Change the links of one document."""
        docname = self.env.docname
        for node in list(self.document.findall(_is_of_a_file)):
            # The target of a cross-reference is absolute, and has lost its ending.
            target = node["reftarget"] + ".md" * isinstance(node, addnodes.pending_xref)
            path = (self.env.srcdir / Path(docname).parent / target).resolve()
            if not _is_shown(path):
                continue
            name = path.relative_to(ROOT).as_posix()
            _shown_by(self.env).setdefault(docname, set()).add(name)
            up = "../" * docname.count("/")
            link = nodes.reference("", "", internal=True, refuri=f"{up}{FOLDER}/{name}.html")
            link += node.children
            node.replace_self(link)


def _is_of_a_file(node: nodes.Node) -> bool:
    """Whether it links to a file, or to Markdown outside the site, which MyST takes for a page."""
    if isinstance(node, addnodes.pending_xref):
        return node.get("refdomain") == "doc" and Path(node["reftarget"]).is_absolute()
    return isinstance(node, addnodes.download_reference)


def _is_shown(path: Path) -> bool:
    return (
        path.is_relative_to(ROOT)
        and path.suffix in LANGUAGES
        and path.is_file()
        and path.stat().st_size <= LARGEST
    )


def _shown_by(env: BuildEnvironment) -> dict[str, set[str]]:
    """The document → the files that it links to."""
    if not hasattr(env, "repository_files"):
        env.repository_files = {}  # type: ignore[attr-defined]
    return env.repository_files  # type: ignore[attr-defined, no-any-return]


def _forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _shown_by(env).pop(docname, None)


def _make_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    names = sorted(set().union(*_shown_by(app.env).values()))
    for name in names:
        text = (ROOT / name).read_text("utf-8")
        code = app.builder.highlighter.highlight_block(text, LANGUAGES[Path(name).suffix])
        body = f'<h1><code class="repository">{name}</code></h1>{code}'
        yield f"{FOLDER}/{name}", {"title": name, "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at each document that is read, and add the pages at the end."""
    app.add_transform(LinkToFile)
    app.connect("env-purge-doc", _forget)
    app.connect("html-collect-pages", _make_pages)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
