"""The ladder of chapter 14: one training against itself and one in the league, through their lives.

    pixelpong train --preset league --seed 1 --name league
    pixelpong train --preset league --opponent self --seed 1 --name self
    pixelpong tournament league@120 league@240 league@480 league@733 \\
        self@80 self@160 self@320 self@480 self@550 \\
        builtin predictor follower-0 follower-200 --games 2 -o ladder
    python benchmarks/ages.py ladder/tournament.json

Covered: what the chapter shows of the tournament, evaluations against the cartridge, the plot.
Not covered: the trainings and the games, which the commands above repeat.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import pixelpong
from pixelpong.agent.choice import load_named
from pixelpong.faces.display import signed
from pixelpong.faces.plots.drawing import BLUE, GREY, ORANGE, house_style, new_figure, render
from pixelpong.run.checkpoints import fingerprint

HERE = Path(__file__).parent
RUNS = {"league": BLUE, "self": ORANGE}
SCRIPTS = ("predictor", "follower-0", "follower-200")


def shorten(report: dict[str, Any]) -> dict[str, Any]:
    """What the chapter needs of a tournament's report: no single games."""
    kept = ("rules", "rounds", "games_played", "players", "matrix", "triples")
    return {name: report[name] for name in (*kept, "versions", "machine", "commit")}


def look_at(name: str, games: int) -> dict[str, Any]:
    """How old an agent is, and how it plays against the cartridge.

    Args:
        name: as ``league@60``, in the folder ``runs`` or this one.
        games: to evaluate, greedily.
    """
    agent = load_named(name)
    run, _, update = name.partition("@")
    evaluation = pixelpong.evaluate(run, games, checkpoint=update)
    return {
        "steps": agent.about["steps"],
        "sha256": fingerprint(agent.params),
        "cartridge": evaluation.mean_return,
        "ci95": list(evaluation.ci95),
    }


def list_agents(report: dict[str, Any], run: str) -> list[str]:
    """The names of a run's agents, from the youngest to the oldest."""
    names = [name for name in report["agents"] if name.startswith(f"{run}@")]
    return sorted(names, key=lambda name: report["agents"][name]["steps"])


def find_returns(report: dict[str, Any], name: str) -> dict[str, float]:
    """The mean return of a player against each of the others."""
    names = [player["name"] for player in report["players"]]
    row = report["matrix"][names.index(name)]
    return {other: value for other, value in zip(names, row, strict=True) if value is not None}


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw ratings and returns over the steps, and each agent of a run against its other ages."""
    players = {player["name"]: player for player in report["players"]}
    with house_style():
        figure = new_figure(12, 4.2)
        ladder, cartridge, *ages = figure.subplots(1, 4, width_ratios=[4, 3, 3, 3])
        for run, colour in RUNS.items():
            names = list_agents(report, run)
            steps = [report["agents"][name]["steps"] / 1e6 for name in names]
            ratings = np.array([players[name]["rating"] for name in names])
            ends = np.array([players[name]["ci95"] for name in names]).T
            error = np.abs(ends - ratings)
            style = {"fmt": "o-" if run == "league" else "s--", "color": colour, "capsize": 3}
            ladder.errorbar(steps, ratings, yerr=error, label=run, **style)
            means = np.array([report["agents"][name]["cartridge"] for name in names])
            error = np.abs(np.array([report["agents"][name]["ci95"] for name in names]).T - means)
            cartridge.errorbar(steps, means, yerr=error, label=run, **style)
        for name, side in (("builtin", "top"), ("follower-0", "bottom"), ("predictor", "bottom")):
            ladder.axhline(players[name]["rating"], color=GREY, linewidth=0.8)
            ladder.text(9.2, players[name]["rating"], name, fontsize=8, va=side, ha="right")
        ladder.set(xlabel="million steps", ylabel="rating, Elo", ylim=(-200, 720), xlim=(0, 9.4))
        ladder.legend(fontsize=8)
        cartridge.axhline(0, color=GREY, linewidth=0.8)
        cartridge.set(xlabel="million steps", title="return against the cartridge", ylim=(-5, 21))
        for axes, run in zip(ages, RUNS, strict=True):
            draw_ages(axes, report, run)
        path.write_bytes(render(figure, "svg"))


def draw_ages(axes: Any, report: dict[str, Any], run: str) -> None:
    """The mean return of each age of a training against each other."""
    names = list_agents(report, run)
    table = [[find_returns(report, name).get(other, np.nan) for other in names] for name in names]
    axes.imshow(np.array(table), cmap="PuOr", vmin=-21, vmax=21)
    for (row, column), value in np.ndenumerate(np.array(table)):
        if np.isfinite(value):
            colour = "white" if abs(value) > 14 else "black"
            axes.text(
                column,
                row,
                signed(round(value) + 0.0, 0),
                ha="center",
                va="center",
                fontsize=8,
                color=colour,
            )
    labels = [f"{report['agents'][name]['steps'] / 1e6:.1f}" for name in names]
    axes.set(xticks=range(len(names)), yticks=range(len(names)), title=f"{run}: row against column")
    axes.set(xticklabels=labels, yticklabels=labels, xlabel="million steps")
    axes.grid(visible=False)


def describe(report: dict[str, Any]) -> list[str]:
    """The rows of the chapter's table: an agent each, then the other players."""
    ratings = {player["name"]: player["rating"] for player in report["players"]}
    rows = []
    for name in [agent for run in RUNS for agent in list_agents(report, run)]:
        agent, returns = report["agents"][name], find_returns(report, name)
        figures = [agent["cartridge"], *(returns[other] for other in SCRIPTS)]
        cells = [f"`{name}`", f"{agent['steps'] / 1e6:.1f}", f"**{signed(ratings[name], 0)}**"]
        rows.append([*cells, *(signed(figure, 1) for figure in figures)])
    for name in ("builtin", *SCRIPTS):
        rows.append([f"`{name}`", "–", f"**{signed(ratings[name], 0)}**", *"––––"])
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> None:
    """Evaluate and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tournament", type=Path, help="tournament.json")
    parser.add_argument("--games", type=int, default=20, help="against the cartridge")
    parser.add_argument("--out", type=Path, default=HERE / "ages.json", help="the report")
    given = parser.parse_args()
    report = shorten(json.loads(given.tournament.read_text("utf-8")))
    names = [player["name"] for player in report["players"] if "@" in player["name"]]
    report["agents"] = {name: look_at(name, given.games) for name in names}
    given.out.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    plot(report, given.out.with_suffix(".svg"))
    print(*describe(report), sep="\n")
    print(*[" → ".join(ring) for ring in report["triples"]], sep="\n")


if __name__ == "__main__":
    main()
