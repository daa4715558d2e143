"""Reference from the code: options, protocols, commands, as text that a page includes.

    ```{generated-options}
    ```

Each is written once, in the package; nothing here knows one by name.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from curves import draw_curves, spell_score
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from pixelpong.atari.machine import cartridges
from pixelpong.config import OPTIONS
from pixelpong.config.option import Option
from pixelpong.config.presets import load_preset, preset_names
from pixelpong.config.protocols import PONG, PROTOCOLS
from pixelpong.errors import number_of
from pixelpong.faces import cli
from pixelpong.scores import find_scores, human_normalised

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DOPAMINE = Path(__file__).with_name("dopamine.json")


def describe_options() -> str:
    """A table a section: flag, file key, help, values, source, default, presets."""
    sections: dict[str, list[Option]] = {}
    for each in OPTIONS.values():
        sections.setdefault(each.section, []).append(each)
    head = ("Option and key", "What it is", "Default", "Presets")
    parts = [
        f"## {section.capitalize() or 'Run'}\n\n{_table(head, map(_describe_option, options))}"
        for section, options in sections.items()
    ]
    return "\n\n".join(parts) + "\n"


def _describe_option(each: Option) -> tuple[str, ...]:
    values = each.describe_values()
    if each.choices:
        values = f"one of {', '.join(each.choices)}"
    words = [each.help, f"{values[0].upper()}{values[1:]}."]
    if each.source:
        words.append(f"Source: {each.source}.")
    if each.is_free:
        words.append("Does not change the result.")
    presets = {name: getattr(load_preset(name), each.name) for name in preset_names()}
    own = [
        f"{name} {_spell(value)}"
        for name, value in presets.items()
        if value != each.default and each.name != "preset"
    ]
    names = f"[]{{#option-{each.flag[2:]}}}`{each.flag}`<br>`{each.name}`"
    return names, " ".join(words), _spell(each.default), "<br>".join(own) or "–"


def describe_protocols() -> str:
    """One table: what each environment's name stands for."""
    rows = []
    for card in PROTOCOLS.values():
        low, high = card.frame_skips
        skip = str(low) if low == high else f"{low} to {high}, drawn for each step"
        sticky, most = f"{card.sticky:g}", f"{card.max_frames:,}"
        rows.append((f"`{card.environment}`", skip, sticky, most, card.note))
    head = ("Environment", "Frames a step", "Sticky actions", "Frames at most", "Where from")
    return _table(head, rows) + "\n"


def describe_commands() -> str:
    """What ``pixelpong NAME --help`` prints on a terminal of 80 columns, for every command."""
    parts = []
    for name in cli.COMMANDS:
        printed = io.StringIO()
        with (
            mock.patch.dict(os.environ, COLUMNS="80"),
            contextlib.redirect_stdout(printed),
            contextlib.suppress(SystemExit),
        ):
            cli.parse([name, "--help"])
        parts.append(f"## {name}\n\n```text\n{printed.getvalue()}```")
    return "\n\n".join(parts) + "\n"


def describe_games() -> str:
    """A table of the cartridges: what was compared with ALE, and what is not covered."""
    found = _load("games")["games"]
    rows = [
        (f"`{name}`", line.get("scheme", "–"), *_describe_rules(line),
         *_describe_comparison(line, found.get(name)))
        for name, line in cartridges.facts().items()
    ]  # fmt: skip
    head = (
        "Game", "Banks", "Actions", "Modes", "Difficulties", "Lives", "Points and end", "Starts",
        "Frames", "Pictures", "Different ones", "Poked", "Memory and pictures",
    )  # fmt: skip
    return _table(head, rows) + "\n"


def _describe_rules(line: dict[str, Any]) -> tuple[str, ...]:
    """A game's number of actions, its modes and difficulties, lives, and what covers its points."""
    if "not_covered" in line:
        return ("–",) * 5
    modes, difficulties = (line.get(name, [0]) for name in ("modes", "difficulties"))
    kinds = (str(len(line.get("actions", range(18)))), _spans(modes), _spans(difficulties))
    lives = line["scoring"].get("lives", "")
    has_lives = f"always {lives}" if lives.isdecimal() else "yes" if lives else "none"
    return *kinds, has_lives, "covered"


def _spans(numbers: list[int]) -> str:
    """Shorten a list of numbers.

    >>> _spans([0, 1, 2, 3, 128])
    '0–3, 128'
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    texts = [f"{it[0]}–{it[-1]}" if len(it) > 2 else ", ".join(map(str, it)) for it in spans]
    return ", ".join(texts)


def _describe_comparison(line: dict[str, Any], found: dict[str, Any] | None) -> tuple[str, ...]:
    reason = line.get("not_covered", "")
    if found is None:
        return "–", "–", "–", "–", "–", f"not covered: {reason}"
    poked = found["poked"]
    ended = poked.get("stops", 0) + poked.get("differences", 0)
    counts = [f"{found.get(key, 0):,}" for key in ("starts", "frames", "pictures")]
    result = f"not covered: {reason}" if reason else "equal"
    return (
        *counts,
        f"{found.get('wrong_pictures', 0):,}",
        f"{poked.get('frames', 0):,}, switched on again {number_of(ended, 'time')}",
        result,
    )


def describe_speeds() -> str:
    """A table of the games and sizes that `benchmarks/vector.py` has measured."""
    record = _load("vector")
    games = {f"`{name}`": row for name, row in record.get("games", {}).items()}
    sizes = {f"`pong`, {size} at once": row for size, row in record.get("sizes", {}).items()}
    rows = [(name, *_describe_speed(row)) for name, row in (games | sizes).items()]
    others = ("AtariVectorEnv", "EnvPool")
    ratios = (f"÷ `{name}`" for name in others)
    head = ("Steps per second", "`make_vec`", *(f"`{name}`" for name in others), *ratios)
    return _table(head, rows) + "\n"


def _describe_speed(row: dict[str, Any]) -> Iterator[str]:
    for name in ("make_vec", "AtariVectorEnv", "EnvPool"):
        yield f"{round(row[name], -2):,}"
    for name in ("AtariVectorEnv", "EnvPool"):
        yield f"{row[f'over_{name}'][0]:.1f}"


def describe_breakout() -> str:
    """A table of ten points of the curve of `examples/ppo_torch.py` on Breakout."""
    curve = _load("ppo_breakout").get("curve", [])
    rows = [
        (
            f"{row['steps'] / 1e6:.2f} M",
            f"{row['seconds'] / 60:.0f}",
            f"{row['mean_return_100']:.1f}",
        )
        for row in curve[:: -max(-(-len(curve) // 10), 1)][::-1]
    ]
    return _table(("Steps", "Minutes", "Mean return of 100 games"), rows) + "\n"


def describe_learned() -> str:
    """A table of all games but Pong: what the preset atari learns in each."""
    record, early = _load("any_game_2m"), _medians(_load("any_game"))
    medians, reasons = _medians(record), record.get("stopped", {})
    games = (name for name in cartridges.scored_names() if name != PONG)
    rows = [
        (
            f"`{name}`",
            *_describe_players(name),
            spell_score(early[name]["score"]) if name in early else "–",
            *_describe_learning(medians.get(name), reasons.get(name, "not measured")),
        )
        for name in games
    ]
    head = (
        "Game", "Random", "Human", "0.5 M steps", "2 M steps", "95 % interval", "Human-normalised",
        "Seconds",
    )  # fmt: skip
    return _table(head, rows) + "\n"


def describe_curves() -> str:
    """The learning curves of these games, the median seed of each, and how many games learn."""
    medians = _medians(_load("any_game_2m"))
    if not medians:
        return ""
    ordered = [medians[name] for name in cartridges.scored_names() if name in medians]
    humans = [(row["score"], it.human) for row in ordered if (it := find_scores(row["game"]))]
    learned = sum(map(_beats_random_play, ordered))
    passed = sum(score > human for score, human in humans)
    shares = [human_normalised(row["game"], row["score"]) for row in ordered]
    median = statistics.median(share for share in shares if share is not None)
    words = (
        f"Of {number_of(len(ordered), 'game')}, {learned} end above random play by three standard "
        f"errors. Of {len(humans)} with a known score of a person, {passed} end above it; the "
        f"median human-normalised score is {100 * median:.0f} %."
    )
    return f"{words}\n\n```{{raw}} html\n{draw_curves(ordered)}\n```\n"


def describe_beside() -> str:
    """A table of the games with published curves: mean scores on the way, ours and others'."""
    published = json.loads(DOPAMINE.read_text("utf-8"))
    medians, steps = _medians(_load("any_game_2m")), published["steps"]
    ours = {
        game: [_mean_at(medians[game]["curve"], limit) for limit in steps]
        for game in published["games"]
        if game in medians
    }
    rows = []
    for game, means in ours.items():
        others = published["games"][game].values()
        cells = zip(means, *others, strict=True)  # one for each number of steps
        rows.append((f"`{game}`", *(" · ".join(map(spell_score, cell)) for cell in cells)))
    counts = []
    for agent in published["agents"]:
        theirs = {game: published["games"][game][agent] for game in ours}
        above = [sum(ours[game][k] > theirs[game][k] for game in ours) for k in range(len(steps))]
        counts.append(f"above {agent} in {', '.join(map(str, above))}")
    words = f"Of {number_of(len(rows), 'game')}, one number for each column: {'; '.join(counts)}."
    head = ("Game", *(f"{limit / 1e6:g} M steps" for limit in steps))
    return f"{words}\n\n{_table(head, rows)}\n"


def describe_seeds() -> str:
    """A table of the games that were trained with several seeds, or longer than all games were."""
    everything, *others = map(_load, ("any_game", *_records_of_few_games()))
    rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in (row for record in others for row in record["rows"]):
        rows.setdefault((row["game"], row["steps"]), []).append(row)
    for row in everything.get("rows", []):  # where the others have more seeds of the same length
        rows.get((row["game"], row["steps"]), []).append(row)
    head = ("Game", "Steps", "Seeds", "Mean scores", "Median", "Best game")
    return _table(head, (_describe_seeds(*key, rows[key]) for key in sorted(rows))) + "\n"


def _records_of_few_games() -> list[str]:
    names = sorted(path.stem for path in BENCHMARKS.glob("any_game_*.json"))
    return [name for name in names if name != "any_game_2m"]


def _describe_seeds(game: str, steps: int, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    rows = sorted(rows, key=lambda row: row["seed"])
    scores = [row["score"] for row in rows]
    return (
        f"`{game}`",
        f"{steps / 1e6:.1f} M",
        ", ".join(str(row["seed"]) for row in rows),
        " · ".join(map(spell_score, scores)),
        spell_score(statistics.median(scores)),
        f"{max(row['best'] for row in rows):,.0f}",
    )


def _mean_at(curve: dict[str, list[float]], limit: int) -> float:
    """The mean score of the last games before so many steps."""
    return [mean for step, mean in zip(*curve.values(), strict=True) if step <= limit][-1]


def _beats_random_play(row: dict[str, Any]) -> bool:
    """Whether a score is above random play's, published or measured, by three standard errors."""
    scores, measured = find_scores(row["game"]), row.get("random", {"score": 0.0, "error": 0.0})
    if scores:
        measured = {"score": scores.random, "error": 0.0}
    error = math.hypot(row["error"], measured["error"])
    return bool(row["score"] - 3 * error > measured["score"])


def _medians(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The row with the median score of each game."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in record.get("rows", []):
        rows.setdefault(row["game"], []).append(row)
    return {
        game: sorted(its, key=lambda it: it["score"])[(len(its) - 1) // 2]
        for game, its in rows.items()
    }


def _describe_players(game: str) -> tuple[str, str]:
    """What random play and a person score."""
    scores = find_scores(game)
    return (spell_score(scores.random), spell_score(scores.human)) if scores else ("–", "–")


def _describe_learning(row: dict[str, Any] | None, reason: str) -> tuple[str, ...]:
    """The score of a run, its interval, its share of a person's, and its seconds."""
    if row is None:
        return reason, "–", "–", "–"
    low, high = map(spell_score, row["ci95"])
    share = human_normalised(row["game"], row["score"])
    normalised = "–" if share is None else f"{100 * share:.0f} %"
    score = spell_score(row["score"])
    return score, f"{low} to {high}", normalised, f"{row['seconds']:.0f}"


def _load(name: str) -> dict[str, Any]:
    """A record, or nothing if it was not made yet."""
    path = BENCHMARKS / f"{name}.json"
    record: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return record


def _spell(value: Any) -> str:
    """A value as it stands in a TOML file; a dash for none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 10_000:
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
        for line in [names, ["---"] * len(names), *rows]
    )


def _directive(write: Callable[[], str]) -> type[SphinxDirective]:
    class Generated(SphinxDirective):
        """Put the text that a function writes in the place of the directive."""

        def run(self) -> list[nodes.Node]:
            return self.parse_text_to_nodes(write(), allow_section_headings=True)

    return Generated


DIRECTIVES = {
    "options": describe_options,
    "protocols": describe_protocols,
    "commands": describe_commands,
    "games": describe_games,
    "speeds": describe_speeds,
    "breakout": describe_breakout,
    "learned": describe_learned,
    "curves": describe_curves,
    "beside": describe_beside,
    "seeds": describe_seeds,
}


def setup(app: Sphinx) -> dict[str, Any]:
    """One directive a text."""
    for name, write in DIRECTIVES.items():
        app.add_directive(f"generated-{name}", _directive(write))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
