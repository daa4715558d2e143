"""The four agents in the package and how strong they are, from one training.

    pixelpong train --preset half --run runs/half --seed 1
    pixelpong train --preset half --run runs/early --seed 1 --updates 16 --milestone-every 1
    python benchmarks/strengths.py runs/half runs/early --rounds 4 --survey-rounds 2 --episodes 50

The second training is the beginning of the first, bit for bit, with more milestones: a few updates
turn a beginner into more than a club player. All agents of these runs play scripted players, which
gives ratings and the share of games that `PERSON` wins. From these the four are chosen, written as
small files, and hold a tournament with the scripted players. Its result is `strengths.json`.

Covered: choosing, writing, the tournament. Not covered: the training; the small file
(`shipping.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from shipping import describe_agent, write_agent

import pixelpong.agent
from pixelpong.agent.choice import list_updates
from pixelpong.agent.file import SHIPPED
from pixelpong.agent.strengths import FILE, PERSON, describe_share
from pixelpong.bench.followers import SCRIPTS
from pixelpong.engines import never
from pixelpong.items import BUILTIN
from pixelpong.machine import count_cores
from pixelpong.run.directory import RunDirectory
from pixelpong.run.files import write_whole
from pixelpong.tournament.games import Played, Rules, play_round
from pixelpong.tournament.players import Player, find_player
from pixelpong.tournament.tournament import summarize

KILOBYTES = {"beginner": 50, "club": 60, "strong": 110, "champion": 745}
"""Of their first layers; all four files are to take less than a megabyte."""

YARDSTICKS = ("follower-0", "follower-100", PERSON)
"""Whom the agents play to be chosen."""

NEARLY_ALL, HARDLY_ANY = 0.9, 0.1
"""Shares of games that `PERSON` wins against a beginner, at least, and a strong agent, at most."""

Figures = dict[str, dict[str, float]]
"""Of each agent, its ``rating`` and the ``share`` of games that `PERSON` wins against it."""


def play(
    pairs: Sequence[tuple[Player, Player]], rounds: int, workers: int
) -> tuple[list[Player], list[Played], dict[str, Any]]:
    """Play all pairs; return the players, the games and the tournament's report."""
    rules = Rules()
    tasks = [(*pair, number, rules) for pair in pairs for number in range(rounds)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        played = [
            game for games in pool.map(play_round, *zip(*tasks, strict=True)) for game in games
        ]
    players = list({player.name: player for pair in pairs for player in pair}.values())
    return players, played, summarize(players, played, rounds, rules)


def read_figures(report: dict[str, Any]) -> Figures:
    """Ratings, and shares of games that `PERSON` wins."""
    won: dict[str, list[bool]] = {player["name"]: [] for player in report["players"]}
    for game in report["games"]:
        if PERSON in game["players"]:
            side = game["players"].index(PERSON)
            won[game["players"][1 - side]].append(game["points"][side] > game["points"][1 - side])
    return {
        player["name"]: {
            "rating": player["rating"],
            "share": sum(won[player["name"]]) / max(len(won[player["name"]]), 1),
        }
        for player in report["players"]
    }


def choose(figures: Figures) -> dict[str, str]:
    """The names of the four, by strength.

    The champion has the highest rating. The beginner is the strongest that loses nearly all games
    to `PERSON`; against the club player it wins about half. The strong one loses hardly any, and is
    nearest to the middle between club and champion.
    """
    rating = {name: each["rating"] for name, each in figures.items()}
    share = {name: each["share"] for name, each in figures.items()}
    champion = max(figures, key=lambda name: rating[name])
    beaten = [name for name in figures if share[name] >= NEARLY_ALL]
    beginner = max(beaten, key=lambda name: rating[name])
    rest = [name for name in figures if rating[beginner] < rating[name] < rating[champion]]
    club = min(rest, key=lambda name: abs(share[name] - 0.5))
    middle = (rating[club] + rating[champion]) / 2
    rest = [name for name in rest if share[name] <= HARDLY_ANY and name != club]
    strong = min(rest, key=lambda name: abs(rating[name] - middle))
    return dict(zip(SHIPPED, (beginner, club, strong, champion), strict=True))


def survey(runs: Sequence[str], rounds: int, workers: int) -> Figures:
    """Figures of all agents of some runs, each as ``RUN@UPDATE``."""
    agents: dict[str, Player] = {}
    for run in runs:
        for update in list_updates(RunDirectory.open(Path(run))):
            player = find_player(f"{run}@{update}")
            agents.setdefault(str(player.mind.about["params_sha256"]), player)  # type: ignore[union-attr]
    scripts = [find_player(word) for word in YARDSTICKS]
    pairs = list(itertools.product(agents.values(), scripts))
    figures = read_figures(play(pairs, rounds, workers)[2])
    return {player.name: figures[player.name] for player in agents.values()}


def write(chosen: dict[str, str], out: Path, episodes: int) -> dict[str, Player]:
    """Write the agents' files, with evaluations; return the agents as players."""
    players = {}
    for name, word in chosen.items():
        name_of_run, _, update = word.rpartition("@")
        run = RunDirectory.open(Path(name_of_run))
        path = out / f"{name}.safetensors"
        report = write_agent(
            run,
            update,
            path,
            max_bytes=1000 * KILOBYTES[name],
            episodes=episodes,
            should_stop=never,
        )
        tell(describe_agent(report))
        players[name] = dataclasses.replace(find_player(str(path)), name=name)
    return players


def measure_shares(agents: dict[str, Player], rounds: int, workers: int) -> Figures:
    """The shares of games that `PERSON` wins: one pair each, so many games are quick."""
    pairs = [(player, find_player(PERSON)) for player in agents.values()]
    return read_figures(play(pairs, rounds, workers)[2])


def measure(
    agents: dict[str, Player], rounds: int, share_rounds: int, workers: int
) -> dict[str, Any]:
    """The tournament of the agents and all scripted players, as in `strengths.json`."""
    scripts = [find_player(word) for word in (BUILTIN, *SCRIPTS)]
    pairs = [
        *itertools.combinations(agents.values(), 2),
        *itertools.product(agents.values(), scripts),
    ]
    _, _, report = play(pairs, rounds, workers)
    names = [player["name"] for player in report["players"]]
    figures = measure_shares(agents, share_rounds, workers)
    strengths = {}
    for name, player in agents.items():
        place = names.index(name)
        strengths[name] = {
            "params_sha256": player.mind.about["params_sha256"],  # type: ignore[union-attr]
            "rating": round(report["players"][place]["rating"], 1),
            "ci95": [round(end, 1) for end in report["players"][place]["ci95"]],
            "follower_share": figures[name]["share"],
            "games": 2 * share_rounds,
            "returns": {
                other: mean
                for other, mean in zip(names, report["matrix"][place], strict=True)
                if mean is not None
            },
        }
    facts = {key: report[key] for key in ("rules", "versions", "machine", "commit")}
    return {"follower": PERSON, "strengths": strengths, **facts}


def tell(line: str) -> None:
    """Show progress."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", help="runs whose agents are candidates")
    parser.add_argument("--agents", nargs=4, metavar="RUN@UPDATE", help="the four, already chosen")
    parser.add_argument("--rounds", type=int, default=10, help="of the tournament")
    parser.add_argument("--share-rounds", type=int, default=20, help="of the games for the shares")
    parser.add_argument("--survey-rounds", type=int, default=4, help="of the games to choose by")
    parser.add_argument("--episodes", type=int, default=100, help="of each agent's evaluation")
    parser.add_argument("--workers", type=int, default=count_cores())
    package = Path(pixelpong.agent.__file__).parent / "shipped"
    parser.add_argument("--out", type=Path, default=package, help="by default the package's folder")
    options = parser.parse_args()
    if bool(options.runs) == bool(options.agents):
        parser.error("expected runs or --agents, got neither or both; give one of them")
    if options.agents:
        chosen = dict(zip(SHIPPED, options.agents, strict=True))
    else:
        figures = survey(options.runs, options.survey_rounds, options.workers)
        for name, each in sorted(figures.items(), key=lambda item: item[1]["rating"]):
            share = describe_share(each["share"])
            tell(f"{name}: rating {each['rating']:+.0f}, {PERSON} wins {share}")
        chosen = choose(figures)
        tell(f"chosen: {', '.join(chosen.values())}")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out) as folder:  # all, or none
        agents = write(chosen, Path(folder), options.episodes)
        report = measure(agents, options.rounds, options.share_rounds, options.workers)
        for name in SHIPPED:
            file = f"{name}.safetensors"
            (Path(folder) / file).replace(options.out / file)
    write_whole(options.out / FILE, json.dumps(report, indent=1).encode() + b"\n")
    print(json.dumps(report["strengths"], indent=1))


if __name__ == "__main__":
    main()
