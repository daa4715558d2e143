"""The offline page's HTML: the page's own scripts and styles, with the server's answers in it.

Each answer is a script element of JSON whose id is the path that the page asks for. In the JSON no
``<`` is left, so nothing that comes from a run ends its element. The Content-Security-Policy allows
the script and the style by their hashes, and no connection at all.

Covered: joining, escaping. Not covered: what is in it (`export`).
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
import re
from collections.abc import Mapping
from typing import Any

import pixelpong

SCRIPTS = ("parts.js", "viewer.js", "charts.js", "weights.js", "episodes.js", "run.js")
"""Joined in this order, so that each comes after those that it needs."""

RUN = "offline"
"""The run's id in the paths of the answers."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
{head}
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{name} · pixelpong</title>
<style>{style}</style>
</head>
<body>
<p id="banner" class="banner" role="status" hidden></p>
<p id="announcer" class="unseen" role="status"></p>
<main><div id="main" class="view"></div>
<noscript><p class="problem">This page needs JavaScript.</p></noscript></main>
<footer class="quiet">Written by pixelpong {version}. This page is one file and connects to nothing.
</footer>
{answers}
<script>{script}</script>
</body>
</html>
"""


def assemble(name: str, answers: Mapping[str, Any]) -> str:
    """The page of a run.

    Args:
        name: of the run.
        answers: what the server would answer, by path.
    """
    style, script = "\n" + _read_static("style.css"), join_scripts()
    policy = (
        f"default-src 'none'; script-src {_hash_source(script)}; style-src {_hash_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    index = _read_static("index.html").splitlines()
    return _PAGE.format(
        head="\n".join(line for line in index if line.startswith(("<meta", '<link rel="icon"'))),
        policy=policy,
        name=html.escape(name),
        style=style,
        version=html.escape(pixelpong.__version__),
        answers="\n".join(
            f'<script type="application/json" id="{html.escape(path)}">{encode_data(answer)}'
            "</script>"
            for path, answer in answers.items()
        ),
        script=script,
    )


def join_scripts() -> str:
    """The scripts as one that needs no modules, which browsers do not load from disk."""
    joined = "\n".join(_read_static(name) for name in SCRIPTS)
    joined = re.sub(r'^import \{[^}]*\} from "\./\w+\.js";\n', "", joined, flags=re.MULTILINE)
    joined = re.sub(r"^export (?=async|function|const|class)", "", joined, flags=re.MULTILINE)
    show = f'mountRun(document.getElementById("main"), "{RUN}");'
    return f'\n"use strict";\n(() => {{\n{joined}\n{show}\n}})();\n'


def encode_data(content: Any) -> str:
    """JSON that can stand in a script element: nothing in it begins a tag.

    >>> encode_data({"name": "</script><b>&"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _read_static(name: str) -> str:
    folder = importlib.resources.files("pixelpong").joinpath("faces", "page", "static")
    return folder.joinpath(name).read_text("utf-8").replace("\r\n", "\n")


def _hash_source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
