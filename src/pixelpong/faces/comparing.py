"""Several agents as text: the results of sweeps and tournaments."""

from __future__ import annotations

import functools
from collections.abc import Callable

from pixelpong.errors import number_of
from pixelpong.faces.report import Facts, pairs, shorten, table
from pixelpong.run.words import duration, in_game, percent, signed


def describe_sweep(facts: Facts) -> str:
    """Describe for each setting how many runs won, how fast and how well; and what is left."""
    lines = [line for suite in facts["suites"] for line in _describe_suite(suite)]
    for setting in [] if facts["suites"] else facts["settings"]:
        if setting["label"]:
            lines.append(setting["label"])
        lines += pairs(
            {
                "won": f"{setting['won']} of {setting['done']}",
                "median time": _spread(setting["seconds"], duration),
                "median steps": _spread(setting["steps"], "{:,.0f}".format),
                "median final return": _spread(
                    setting["final_return"], functools.partial(signed, digits=2)
                ),
            }
        )
    num_left = sum(not run["is_done"] for run in facts["runs"])
    if num_left:
        lines.append(f"{number_of(num_left, 'run')} left to train; continue with:")
        lines.append(f"  {facts['resume']}")
    return "\n".join([*lines, f"saved in {facts['sweep']}"])


def _describe_suite(suite: Facts) -> list[str]:
    """Describe the scores of games in a table."""
    rows = []
    for line in suite["games"]:
        score = in_game(line["score"], line["game"])
        rows.append((line["game"], _count_done(line), score, *_describe_shares(line)))
    total = suite["all"]
    if len(rows) > 1:
        rows.append(("all", _count_done(total), "", *_describe_shares(total)))
    heads = "game", "runs", "score", "human-normalised", "interquartile mean"
    lines = [suite["label"]] * bool(suite["label"]) + table(heads, rows)
    if len(suite["games"]) > 1 and total["games"]:
        median = percent(total["median_human_normalised"])
        games = number_of(total["games"], "game")
        lines.append(f"all: over {games} with known scores of a person; their median is {median}")
    return lines


def _count_done(line: Facts) -> str:
    done, trainings = line["done"], line["trainings"]
    return str(done) if done == trainings else f"{done} of {trainings}"


def _describe_shares(line: Facts) -> tuple[str, str]:
    """Format a mean as a share of a person's, and the interquartile mean with its interval."""
    middle = line["interquartile_mean"]
    if middle is None:
        return "–", "–"
    words = percent(middle["mean"])
    if middle["ci95"]:
        words += f" ({' to '.join(map(percent, middle['ci95']))})"
    return percent(line["human_normalised"]), words


def _spread(summary: Facts | None, show: Callable[[float], str]) -> str:
    """Format the median of several runs with its 95 % interval."""
    if summary is None:
        return ""
    median = show(summary["median"])
    if not summary["ci95"]:
        return median
    low, high = map(show, summary["ci95"])
    return f"{median} ({low} to {high})"


def describe_tournament(facts: Facts) -> str:
    """Describe the ladder and the matrix of mean returns."""
    players, rows = facts["players"], []
    for rank, player in enumerate(players, 1):
        low, high = player["ci95"]
        points = player["points_won"] + player["points_lost"]
        share = f"{100 * player['points_won'] / points:.0f} %" if points else "–"
        rating = f"{signed(player['rating'], 0)} ± {(high - low) / 2:.0f}"
        mean = signed(player["mean_return"])
        rows.append((str(rank), shorten(player["name"], 34), rating, mean, share))
    lines = table(("rank", "player", "rating", "mean return", "points won"), rows, left=(1,))
    ranks = [str(rank) for rank in range(1, len(players) + 1)]
    matrix = [
        [rank, shorten(player["name"], 14), *map(signed, returns)]
        for rank, player, returns in zip(ranks, players, facts["matrix"], strict=True)
    ]
    lines += ["", *table(["", "return against", *ranks], matrix, left=(1,))]
    played, planned = facts["games_played"], facts["games_planned"]
    if played == planned:
        lines.append(number_of(played, "game"))
    else:
        lines.append(f"only {played:,} of {planned:,} games were played")
    rules = facts["rules"]
    num_cut = sum(max(game["points"]) < rules["points"] for game in facts["games"])
    if num_cut:
        limit = f"the limit of {rules['frames']:,} frames"
        lines.append(f"{number_of(num_cut, 'game')} ended at {limit}, before either side had won")
    return "\n".join(lines)
