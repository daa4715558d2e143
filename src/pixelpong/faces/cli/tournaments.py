"""``pixelpong tournament``: who plays how well against whom."""

from __future__ import annotations

import json
from typing import Any

from pixelpong.errors import Interrupted
from pixelpong.faces.cli.reporting import count, report_on
from pixelpong.interrupts import stop_on_signals
from pixelpong.machine import count_cores

EXIT_INTERRUPTED = 130


def tournament(options: Any) -> int:
    """``pixelpong tournament PLAYER…``"""
    from pixelpong.faces.text import describe_tournament
    from pixelpong.run.files import require_place, write_whole
    from pixelpong.tournament.games import Rules
    from pixelpong.tournament.players import find_players
    from pixelpong.tournament.tournament import carry_out, summarize

    rules = Rules(options.seed, not options.sampled, options.points)
    workers = options.given.get("workers") or count_cores()
    played: list[Any] = []
    with stop_on_signals() as should_stop:
        players = find_players(options.players)
        if options.out:
            require_place(options.out)
        total = options.games * len(players) * (len(players) - 1)
        try:
            for each in carry_out(players, options.games, rules, workers, should_stop):
                played.append(each)
                count(len(played), total, "games")
        finally:  # also after an error, what has been played is reported
            count(total, total, "games")
            if played:
                report = summarize(players, played, options.games, rules)
                report_on(report, options.json, describe_tournament)
                if options.out:
                    write_whole(options.out, json.dumps(report, indent=1).encode() + b"\n")
    if not played:
        raise Interrupted
    return EXIT_INTERRUPTED if len(played) < total else 0
