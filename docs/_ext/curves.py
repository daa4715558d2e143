"""The learning curves of all games, small, in one picture: text of an SVG that a page includes.

Each panel has one run: the mean score of its last 100 games over its steps, from the lowest to the
highest number shown. Thin lines are random play, dotted, and a person, dashed; a person far above
is left out. Colours are those of the page, light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from pixelpong.scores import find_scores

COLUMNS, WIDTH, HEIGHT = 6, 116, 76  # panels in a row, and the size of one
LEFT, TOP, RIGHT, BOTTOM = 4, 18, 108, 64  # where in a panel its curve is
FAR = 2.0  # a person is left out above so many times the height of the curve


def spell_score(value: float) -> str:
    """Format a score, with one decimal if it is small."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}"


def draw_curves(rows: Sequence[dict[str, Any]]) -> str:
    """Draw a panel for each row of `benchmarks/any_game.json`, in this order."""
    panels = [
        f'<g transform="translate({WIDTH * (k % COLUMNS)} {HEIGHT * (k // COLUMNS)})">'
        f"{draw_panel(row)}</g>"
        for k, row in enumerate(rows)
    ]
    lines = "\n".join(panels)
    size = f"0 0 {COLUMNS * WIDTH} {HEIGHT * -(-len(rows) // COLUMNS)}"
    style = 'fill="currentColor" stroke="none" font-size="8" font-family="inherit"'
    return (
        f'<svg class="curves" viewBox="{size}" role="img" {style} '
        f'aria-label="Learning curves of {len(rows)} games">\n{lines}\n</svg>'
    )


def draw_panel(row: dict[str, Any]) -> str:
    """Draw one curve with its name and the score of the new games."""
    steps, means = row["curve"]["steps"], row["curve"]["score"]
    known = find_scores(row["game"])
    values = means or [row["score"]]  # no game may have ended in the training
    low, high = min(values), max(values)
    levels = {}
    if known:
        low, high = min(low, known.random), max(high, known.random)
        levels["1 3"] = known.random
        if known.human <= low + FAR * (high - low):
            high = max(high, known.human)
            levels["5 3"] = known.human
    scale = (BOTTOM - TOP) / (high - low or 1)

    def y(value: float) -> str:
        return f"{BOTTOM - scale * (value - low):.1f}"

    across = (RIGHT - LEFT) / row["steps"]
    points = " ".join(
        f"{LEFT + across * step:.1f},{y(mean)}" for step, mean in zip(steps, means, strict=True)
    )
    lines = "".join(
        f'<path d="M{LEFT} {y(value)}H{RIGHT}" stroke="currentColor" stroke-width=".6" '
        f'stroke-dasharray="{dashes}" opacity=".6"/>'
        for dashes, value in levels.items()
    )
    name, score = escape(row["game"].replace("_", " ")), spell_score(row["score"])
    return (
        f'<text x="{LEFT}" y="11">{name}</text>'
        f'<text x="{RIGHT}" y="11" text-anchor="end" opacity=".7">{score}</text>{lines}'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.4"/>'
    )
