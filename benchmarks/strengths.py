"""Make the agents in the package from four agents of runs, and measure how strong they are.

    python benchmarks/strengths.py RUN@16 RUN@30 RUN@120 RUN@733 --out agents

The four, the weakest first, are written as small files with an evaluation each, and hold a
tournament with the scripted players and the cartridge's. Its result is `strengths.json`.

Covered: the files and the tournament. Not covered: the training; how an agent becomes small
(`shipping.py`). The four that the package has were trained by an earlier version.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from records import made_by, to_text
from shipping import describe_agent, write_agent

from pixelpong.agent.file import SHIPPED
from pixelpong.engines import never
from pixelpong.items import BUILTIN
from pixelpong.machine import count_cores
from pixelpong.run.directory import RunDirectory
from pixelpong.tournaments.games import Player, Rules, find_player
from pixelpong.tournaments.scripts import SCRIPTS
from pixelpong.tournaments.tournament import play_tournament, summarize

KILOBYTES = {"beginner": 50, "club": 60, "strong": 110, "champion": 745}
"""Of their first layers; all four files are to take less than a megabyte."""


def write(word: str, name: str, out: Path, episodes: int) -> Player:
    """Write an agent's file, with its evaluation; return the agent as a player."""
    run, _, update = word.rpartition("@")
    path = out / f"{name}.safetensors"
    report = write_agent(
        RunDirectory(Path(run)),
        update,
        path,
        max_bytes=1000 * KILOBYTES[name],
        episodes=episodes,
        should_stop=never,
    )
    print(describe_agent(report), file=sys.stderr, flush=True)
    return dataclasses.replace(find_player(str(path)), name=name)


def measure(agents: list[Player], rounds: int, workers: int) -> dict[str, Any]:
    """The tournament of the agents and all scripted players, as in `strengths.json`."""
    players = [*agents, *(find_player(word) for word in (BUILTIN, *SCRIPTS))]
    played = list(play_tournament(players, rounds, Rules(), workers, never))
    report = summarize(players, played, rounds, Rules())
    names = [each["name"] for each in report["players"]]
    strengths = {
        each["name"]: {
            "params_sha256": each["sha256"],
            "rating": round(each["rating"], 1),
            "ci95": [round(end, 1) for end in each["ci95"]],
            "returns": {name: mean for name, mean in zip(names, row, strict=True) if mean},
        }
        for each, row in zip(report["players"], report["matrix"], strict=True)
    }
    return {name: strengths[name] for name in SHIPPED}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agents", nargs=4, metavar="RUN@UPDATE", help="the four")
    parser.add_argument("--rounds", type=int, default=10, help="of the tournament")
    parser.add_argument("--episodes", type=int, default=100, help="of each agent's evaluation")
    parser.add_argument("--workers", type=int, default=count_cores())
    parser.add_argument("--out", type=Path, required=True, help="folder for the four files")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    words = zip(options.agents, SHIPPED, strict=True)
    agents = [write(word, name, options.out, options.episodes) for word, name in words]
    strengths = measure(agents, options.rounds, options.workers)
    (options.out / "strengths.json").write_text(to_text(made_by() | strengths), "utf-8")


if __name__ == "__main__":
    main()
