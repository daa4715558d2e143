"""A run as one HTML file that opens from disk, without other files or a network.

``pixelpong export RUN --html FILE``. It has curves, replays, health, evaluations, configuration and
hashes: the page's own view of a run, with scripts and styles joined, and with the server's answers.
Each answer is a script element of JSON whose id is the path that the page requests. The JSON
contains no ``<``, so nothing from a run can end its element. The Content-Security-Policy allows
only this script and this style, by their hashes, and no connection at all.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
import re
from pathlib import Path
from typing import Any

import pixelpong
from pixelpong.agent.choice import load_agent
from pixelpong.agent.health import DeadUnits
from pixelpong.errors import (
    CheckpointError,
    ConfigError,
    PixelpongError,
    RunError,
    expected,
    number_of,
)
from pixelpong.faces.page.jobs import JOBS, count_dead_units
from pixelpong.faces.page.reel import Reel
from pixelpong.faces.page.view import View
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole

MAX_ROWS = 1000
"""Lines of metrics that a page holds; longer runs are thinned out."""

SCRIPTS = (
    "parts.js", "pictures.js", "viewer.js", "charts.js", "moment.js", "weights.js", "episodes.js",
    "run.js",
)  # fmt: skip
"""Joined in this order, so that each comes after those it needs."""

_ID = "offline"
_BASE = f"/api/runs/{_ID}"

_HASHED = ("config.json", "metrics.jsonl", "episodes.jsonl", "evaluations.jsonl")

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

Report = dict[str, Any]


def write_page(run: RunDirectory, path: Path, *, max_replays: int) -> Report:
    """Write the page of a run, completely or not at all.

    Args:
        run: the run; if it is being trained, the page shows its current state.
        path: the file; an existing one is replaced.
        max_replays: the most replays in it. The first is a greedy episode of the best agent; the
            others are spread over the training.

    Returns:
        ``file``, ``bytes``, ``run``, ``update``, titles of the ``replays``, and what was
        ``left_out`` because it could not be made, one line each.

    Raises:
        ConfigError: a negative number of replays.
        RunError: the run cannot be read, or the file not written.
    """
    if max_replays < 0:
        raise ConfigError(expected("--replays of at least 0", max_replays, "see --help"))
    left_out: list[str] = []
    view = View(run.path)
    view.refresh()
    hashes, best = _hash(run, left_out)
    reels = _make_reels(run, best, max_replays, left_out)
    view.dead = _count_dead(run, view)
    about = view.tell_all() | {"hashes": hashes, "left_out": list(dict.fromkeys(left_out))}
    if about["problem"]:
        raise RunError(about["problem"])
    columns = view.table.columns(max_rows=MAX_ROWS)
    answers = {
        _BASE: _tell(about, reels),
        f"{_BASE}/metrics?after=0": {"columns": columns},
        "/static/glossary.json": json.loads(_read_static("glossary.json")),
        **_make_moments(run, best if reels else None),
    }
    write_whole(path, assemble(about["name"], answers | reels).encode())
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "run": str(run.path),
        "update": about["update"],
        "replays": [reel["title"] for reel in reels.values()],
        "left_out": about["left_out"],
    }


def describe_page(report: Report) -> str:
    """The report of `write_page` in a few lines."""
    lines = [
        f"{report['file']}: {report['bytes'] / 1e6:.1f} MB, up to update {report['update']}, "
        f"{number_of(len(report['replays']), 'replay')}; "
        "it opens offline, in any browser of 2023 or later"
    ]
    return "\n".join([*lines, *(f"left out: {line}" for line in report["left_out"])])


def _hash(run: RunDirectory, left_out: list[str]) -> tuple[dict[str, str], int | None]:
    """SHA-256 of the best and the latest parameters and of the run's files; the best's update."""
    hashes, updates = {}, {}
    for which in ("best", "latest"):
        try:
            about = load_agent(run, which).about
            updates[which] = about["update"]
            hashes[f"params of {which}, update {about['update']}"] = about["params_sha256"]
        except CheckpointError as error:
            left_out.append(str(error))
    for name in _HASHED:
        try:
            hashes[name] = hashlib.sha256((run.path / name).read_bytes()).hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunError(expected(f"to read {name}", error.strerror, "check it")) from error
    return hashes, updates.get("best")


def _make_reels(
    run: RunDirectory, best: int | None, max_replays: int, left_out: list[str]
) -> dict[str, Reel]:
    """By path: the best agent's greedy episode."""
    reels: dict[str, Reel] = {}
    if best is not None and max_replays:
        try:
            reels[f"{_BASE}/reels/agent/{best}"] = JOBS["agent"](run, best)
        except PixelpongError as error:
            left_out.append(str(error))
    return reels


def _make_moments(run: RunDirectory, best: int | None) -> dict[str, Report]:
    """By path: one moment of the best agent's game, if it has one."""
    if best is None:
        return {}
    try:
        return {f"{_BASE}/moments/{best}": JOBS["moment"](run, best)}
    except PixelpongError:
        return {}


def _count_dead(run: RunDirectory, view: View) -> DeadUnits | None:
    try:
        found = count_dead_units(run, view.agents()[-1]["update"]) if view.agents() else None
    except PixelpongError:
        return None  # the reels have reported why
    return found and DeadUnits(**found)


def _tell(about: Report, reels: dict[str, Reel]) -> Report:
    """The run for the page, with only the agents and replays in the file."""
    own = [reel["agent_update"] for reel in reels.values() if reel["is_own"]]
    names = ("episode", "update", "episode_return")
    replays = [
        {name: reel[name] for name in names} | {"steps": reel["steps"] - 1}
        for reel in reels.values()
        if not reel["is_own"]
    ]
    agents = [agent for agent in about["agents"] if agent["update"] in own]
    when = {"is_offline": True, "is_live": False, "was_live": about["is_live"]}
    return about | when | {"id": _ID, "agents": agents, "replays": replays}


def assemble(name: str, answers: dict[str, Any]) -> str:
    """The page of a run of this name, with the server's answers by path."""
    style, script = "\n" + _read_static("style.css"), join_scripts()
    policy = (
        f"default-src 'none'; script-src {_hash_source(script)}; style-src {_hash_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    index = _read_static("index.html").splitlines()
    elements = (
        f'<script type="application/json" id="{path}">{encode_data(answer)}</script>'
        for path, answer in answers.items()
    )
    return _PAGE.format(
        head="\n".join(line for line in index if line.startswith(("<meta", '<link rel="icon"'))),
        policy=policy,
        name=html.escape(name),
        style=style,
        version=html.escape(pixelpong.__version__),
        answers="\n".join(elements),
        script=script,
    )


def join_scripts() -> str:
    """Join the scripts to one without modules, which browsers do not load from disk."""
    joined = "\n".join(map(_read_static, SCRIPTS))
    joined = re.sub(r'^import \{[^}]*\} from "\./\w+\.js";\n', "", joined, flags=re.MULTILINE)
    joined = re.sub(r"^export (?=async|function|const|class)", "", joined, flags=re.MULTILINE)
    show = f'mountRun(document.getElementById("main"), "{_ID}");'
    return f'\n"use strict";\n(() => {{\n{joined}\n{show}\n}})();\n'


def encode_data(content: Any) -> str:
    """JSON for a script element: nothing in it begins a tag.

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
