"""The offline page's HTML: text made here, the page's own scripts and styles joined into it.

Whatever comes from a run is escaped where it is put in: text as HTML, data as JSON in which no
``<`` is left. The Content-Security-Policy allows the scripts and the style that were put in, by
their hashes, and no connection at all.

Covered: joining, escaping, the page's parts. Not covered: what is in them (`page`).
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pixelpong
from pixelpong.faces.display import signed

SCRIPTS = ("viewer.js", "charts.js", "drawing.js", "offline.js")
"""Joined in this order, so that each comes after those it needs."""

STYLES = ("style.css", "offline.css")

_LEVELS = {"good": ("✓", "Good"), "note": ("i", "Note"), "warning": ("!", "Warning")}

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect "
    "width='32' height='32' rx='6' fill='%2314130f'/%3E%3Crect x='5' y='6' width='4' height='12' "
    "fill='%23d5824a'/%3E%3Crect x='23' y='14' width='4' height='12' fill='%235cba5c'/%3E%3Crect "
    "x='14' y='14' width='4' height='4' fill='%23ececec'/%3E%3C/svg%3E"
)

About = Mapping[str, Any]


def assemble(
    about: About, columns: Mapping[str, list[Any]], reels: Iterable[Mapping[str, Any]]
) -> str:
    """The page.

    Args:
        about: of the run, as the page's server tells it, with ``hashes`` and ``left_out``.
        columns: of its metrics.
        reels: to be played, see `pixelpong.faces.page.reel`.
    """
    reels, style, script = list(reels), _join_styles(), join_scripts()
    name = html.escape(about["name"])
    curves = {"name": about["name"], "columns": columns, "evaluations": about["evaluations"]}
    body = "\n".join(
        [
            _head(about),
            _facts(about),
            _replays(reels),
            _curves() if columns.get("update") else "",
            _health(about["health"]),
            _evaluations(about["evaluations"]),
            _configuration(about),
        ]
    )
    data = [_data("curves-data", curves)] if columns.get("update") else []
    data += [_data(f"reel-{place}", reel) for place, reel in enumerate(reels)]
    policy = (
        f"default-src 'none'; script-src {_hash_source(script)}; style-src {_hash_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<title>{name} · pixelpong</title>\n<link rel="icon" href="{_ICON}">',
            f"<style>{style}</style>\n</head>\n<body>",
            f'<main id="main" class="view">\n{body}\n</main>',
            f'<footer class="quiet">Written by pixelpong {html.escape(pixelpong.__version__)}. '
            "This page is one file: it asks nobody for anything.</footer>",
            *data,
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def join_scripts() -> str:
    """The scripts as one that needs no modules, which browsers do not load from disk."""
    parts = [_strip_modules(_read_static(name)) for name in SCRIPTS]
    script = '\n"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    assert "</script" not in script.lower(), "it would end in the middle"
    assert "<!--" not in script, "it would be a comment"
    return script


def encode_data(content: Any) -> str:
    """JSON that can stand in a script element: nothing in it begins a tag.

    >>> encode_data({"name": "</script><b>&"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _strip_modules(text: str) -> str:
    text = re.sub(r"^import \{[^}]*\} from \"\./[\w.]+\";\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^export (?=async function|function|const|class)", "", text, flags=re.MULTILINE)
    assert not re.search(r"^\s*(import|export)\b", text, re.MULTILINE), "a module's line is left"
    return text


def _join_styles() -> str:
    style = "\n" + "\n".join(_read_static(name) for name in STYLES)
    assert "</style" not in style.lower(), "it would end in the middle"
    return style


def _read_static(name: str) -> str:
    folder = importlib.resources.files("pixelpong").joinpath("faces", "page", "static")
    return folder.joinpath(name).read_text("utf-8").replace("\r\n", "\n")


def _hash_source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _data(identity: str, content: Any) -> str:
    return f'<script type="application/json" id="{identity}">{encode_data(content)}</script>'


def _head(about: About) -> str:
    update = f"update {about['update']:,}" if about["update"] else "no update yet"
    words = [about["preset"], about["environment"], f"as it stood at {update}"]
    if about["is_live"]:
        words.append("still being trained then")
    line = html.escape(" · ".join(str(word) for word in words if word))
    notes = "".join(
        f'<p class="problem">Left out: {html.escape(text)}</p>' for text in about["left_out"]
    )
    return (
        f'<div class="page-head"><h1>{html.escape(about["name"])}</h1>'
        f'<p class="quiet">{line}</p>{notes}</div>'
    )


def _facts(about: About) -> str:
    facts = {
        "estimated return": _signed(about["estimated_return"]),
        "mean of the last 100 episodes": _signed(about["mean_return_100"]),
        "steps played": _count(about["steps"]),
        "episodes": _count(about["episodes"]),
        "updates": _count(about["update"]),
        "steps a second": _count(about["steps_per_second"]),
    }
    cells = (
        f'<div class="fact"><dt>{name}</dt><dd class="number">{html.escape(value)}</dd></div>'
        for name, value in facts.items()
    )
    return f'<dl class="facts">{"".join(cells)}</dl>'


def _replays(reels: list[Mapping[str, Any]]) -> str:
    if not reels:
        return ""
    options = "".join(
        f'<option value="reel-{place}">{html.escape(reel["title"])}</option>'
        for place, reel in enumerate(reels)
    )
    return (
        '<section><h2>Watch it</h2><div class="replays">'
        f'<label for="replay">Episode <select id="replay">{options}</select></label>'
        '<div id="viewer" class="viewer-place"><noscript>Replays need JavaScript.</noscript></div>'
        "</div></section>"
    )


def _curves() -> str:
    return (
        '<section><div class="section-head"><h2>Curves</h2><div id="axis-place"></div></div>'
        '<div id="curves" class="curves"><noscript>Curves need JavaScript.</noscript></div>'
        "</section>"
    )


def _health(findings: Iterable[Mapping[str, str]]) -> str:
    items = []
    for finding in findings:
        sign, word = _LEVELS.get(finding["level"], _LEVELS["note"])
        level = finding["level"] if finding["level"] in _LEVELS else "note"
        advice = finding.get("advice")
        more = f'<p class="quiet">{html.escape(advice)}</p>' if advice else ""
        items.append(
            f'<li class="health-item {level}"><span class="sign" aria-hidden="true">{sign}</span>'
            f"<div><p><strong>{word}: {html.escape(finding['title'])}.</strong> "
            f"{html.escape(finding['text'])}</p>{more}</div></li>"
        )
    if not items:
        return ""
    return f'<section><h2>Health</h2><ul class="health">{"".join(items)}</ul></section>'


def _evaluations(lines: list[Mapping[str, Any]]) -> str:
    if not lines:
        return ""
    head = ("update", "mean return", "95 % interval", "deviation", "episodes")
    rows = []
    for line in reversed(lines):
        low, high = line.get("ci95") or (None, None)
        interval = "–" if low is None else f"{_signed(low)} … {_signed(high)}"
        deviation = line.get("std")
        cells = (
            _count(line.get("update")),
            _signed(line.get("mean_return"), 2),
            interval,
            f"{deviation:.2f}" if isinstance(deviation, float) else "–",
            str(len(line.get("returns") or ())),
        )
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    titles = "".join(f'<th scope="col">{word}</th>' for word in head)
    return (
        "<section><h2>Evaluations</h2>"
        '<div class="scroller" role="region" tabindex="0" aria-label="Evaluations">'
        f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        "</div></section>"
    )


def _configuration(about: About) -> str:
    groups = []
    for title in ("config", "versions", "machine", "hashes"):
        rows = "".join(
            f"<div><dt>{html.escape(str(name))}</dt><dd>{html.escape(_plain(value))}</dd></div>"
            for name, value in about[title].items()
        )
        heading = {"config": "Configuration", "hashes": "SHA-256"}.get(title, title.capitalize())
        groups.append(
            f'<div class="config-group"><h3>{heading}</h3><dl class="config">{rows}</dl></div>'
        )
    return (
        '<details class="configuration"><summary><h2>Configuration, versions and hashes</h2>'
        f"</summary>{''.join(groups)}</details>"
    )


def _signed(value: Any, digits: int = 1) -> str:
    return signed(value, digits) if isinstance(value, int | float) else "–"


def _count(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else "–"


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value)
