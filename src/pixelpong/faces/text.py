"""Reports as a few lines of text, made from the same dictionaries that ``--json`` prints."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable
from typing import Any

from pixelpong.errors import number_of, on_one_line
from pixelpong.run.words import MIN_GAMES, TOO_FEW, describe_times, duration, signed

Report = dict[str, Any]


def describe_outcome(report: Report) -> str:
    """How a training ended: won or not, and the commands that come next."""
    run = shlex.quote(report["run"])
    verdict, reason = report["verdict"], report["reason"]
    words = {"interrupted": "interrupted", "until_return": "done"}
    ended = words.get(reason, f"budget of {reason} spent")
    more = _NEXT_BUDGET.get(reason, lambda _: "")(report)
    times = describe_times(report["training_seconds"], report["wall_seconds"])
    lines = [] if verdict is None else [describe_verdict(verdict, report["machine"])]
    if report["rank"]:
        place, count = report["rank"]
        lines.append(f"rank {place} of {count} by steps, among the recorded trainings")
    if verdict and verdict["is_won"]:
        commands = [f"{what:16} pixelpong {word} {run}{rest}" for what, word, rest in _NEXT]
        lines += ["", *commands, ""]
    return "\n".join(
        [
            *lines,
            f"{ended}: update {report['update']}, {number_of(report['episodes'], 'episode')}, "
            f"{number_of(report['steps'], 'step')} in {times}, "
            f"mean of the last 100 returns {signed(report['mean_return_100'], 2)}",
            f"params {report['params_sha256']}",
            f"saved in {report['run']}; continue with: pixelpong resume {run}{more}",
        ]
    )


# Options with which an ended training continues, by the reason it ended.
_NEXT_BUDGET: dict[str, Callable[[Report], str]] = {
    "updates": lambda it: f" --updates {2 * it['update']}",
    "episodes": lambda it: f" --episodes {2 * it['episodes']}",
    "total_timesteps": lambda it: f" --total-timesteps {2 * it['steps']}",
    "until_return": lambda it: f" --until-return {min(it['verdict']['target'] + 1, 21):g}",
}
_NEXT = (
    ("watch it", "watch", ""),
    ("play against it", "play", ""),
    ("film it", "record", " --overlay --out best.mp4"),
)


def describe_verdict(verdict: Report, machine: str) -> str:
    """Whether the target return is reached, how sure that is, after how long and where."""
    greedy, target = verdict["greedy"], signed(verdict["target"], 1)
    low, high = greedy["ci95"]
    found = (
        f"mean return {signed(greedy['mean_return'], 2)} over "
        f"{number_of(len(greedy['returns']), 'game')} of greedy play, 95 % interval "
        f"{signed(low, 2)} to {signed(high, 2)}"
    )
    if not verdict["is_won"]:
        return f"Not won yet: {found}; the target is {target}"
    lines = [
        f"Won: {found}, above {target}",
        f"after {number_of(verdict['steps'], 'step')} and "
        f"{describe_times(total=verdict['seconds'])}, on {machine}",
    ]
    if verdict["sampled"]:
        lines.append(describe_returns("sampled", verdict["sampled"]))
    return "\n".join(lines)


def describe_returns(name: str, evaluation: Report) -> str:
    """One way of play: its mean return, with the interval."""
    games, (low, high) = len(evaluation["returns"]), evaluation["ci95"]
    within = f"95 % interval {signed(low, 2)} to {signed(high, 2)}"
    return (
        f"{name:8} mean return {signed(evaluation['mean_return'], 2)}  "
        f"{within if games >= MIN_GAMES else TOO_FEW}  deviation {evaluation['std']:.2f}  "
        f"({number_of(games, 'episode')})"
    )


def describe_evaluation(report: Report) -> str:
    """Greedy and sampled play, one line each."""
    lines = [
        f"{report['run']}, update {report['update']}, on {report['environment']}"
        f"{' in Gymnasium' if report['in_gymnasium'] else ''}, "
        f"seed {report['seed']}",
        *(describe_returns(way, report[way]) for way in ("greedy", "sampled")),
    ]
    if report["sticky"] == 0 and report["frame_skip"][0] == report["frame_skip"][1]:
        lines.append("this protocol draws no random numbers: all greedy episodes are the same")
    return "\n".join(lines)


def fold(line: str, width: int, name: str = "") -> str:
    """Break a long line between two words; further lines are indented as far as its name.

    >>> print(fold("mean return 18.47 over 200 games", 30))
    mean return 18.47 over 200
      games
    """
    return textwrap.fill(
        line, max(width, 30), initial_indent=name, subsequent_indent=" " * (len(name) or 2),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def describe_sweep(report: Report) -> str:
    """Each setting: how many won, after how long, and how well they play; then what went wrong."""
    lines = []
    for group in report["groups"]:
        lines += [group["label"]] * bool(group["label"])
        lines.append(f"won: {group['won']} of {group['trainings']}")
        if group["won"]:
            (low, high), middle = group["seconds"]["ci95"], group["seconds"]["middle"]
            steps = group["steps"]
            lines.append(
                f"median time to win {describe_times(total=middle)} "
                f"({duration(low)} to {duration(high)}), "
                f"{steps['middle']:,.0f} steps ({steps['ci95'][0]:,.0f} to {steps['ci95'][1]:,.0f})"
            )
        if final := group.get("final_return"):
            (low, high), middle = final["ci95"], final["middle"]
            lines.append(
                "interquartile mean of the final return "
                f"{signed(middle, 2)} ({signed(low, 2)} to {signed(high, 2)})"
            )
    wrong = [row for row in report["trainings"] if row["problem"]]
    lines += [f"failed: {row['name']}: {row['problem']}" for row in wrong[:10]]
    if len(wrong) > 10:
        lines.append(f"and {len(wrong) - 10} more: see {report['sweep']}/sweep.csv")
    left = sum(not row["is_done"] for row in report["trainings"])
    word = f"{left} trainings are not done" if left else "saved"
    more = f"; continue with: {report['resume']}" if left else ""
    return "\n".join([*lines, f"{word}: {report['sweep']}{more}"])


def describe_tournament(report: Report) -> str:
    """The ladder, and the table of mean returns if it fits in 80 columns."""
    players = report["players"]
    lines = [f"rank {'player':34}     rating  mean return  points won"]
    for rank, each in enumerate(players, 1):
        low, high = each["ci95"]
        points = each["points_won"] + each["points_lost"]
        share = f"{100 * each['points_won'] / points:.0f} %" if points else "–"
        rating = f"{each['rating']:+.0f} ± {(high - low) / 2:.0f}".replace("-", "−")
        name, mean = _cut(each["name"], 34), signed(each["mean_return"])
        lines.append(f"{rank:4} {name:34} {rating:>12} {mean:>12} {share:>11}")
    lines += ["", *_describe_matrix(report)]
    done, total = report["games_played"], report["games_planned"]
    of_all = f"only {done:,} of {total:,} games were played"
    lines.append(number_of(done, "game") if done == total else of_all)
    return "\n".join(lines)


def _describe_matrix(report: Report) -> list[str]:
    """A row for each player: its mean return against each, by rank."""
    size = len(report["players"])
    room = min(75 - 6 * size, 24)
    if room < 8:
        return [f"{size} players are too many for a table; --json has them all"]
    ranks = "".join(f"{rank:6}" for rank in range(1, size + 1))
    lines = [f"{'mean return against':{room + 5}.{room + 5}}{ranks}"]
    for rank, (each, row) in enumerate(zip(report["players"], report["matrix"], strict=True), 1):
        cells = "".join(f"{signed(value):>6}" for value in row)
        lines.append(f"{rank:4} {_cut(each['name'], room):{room}}{cells}")
    return lines


def _cut(name: str, room: int) -> str:
    """A name in at most `room` columns; the end of a path says more than its beginning."""
    name = on_one_line(name)
    return name if len(name) <= room else f"…{name[len(name) - room + 1 :]}"
