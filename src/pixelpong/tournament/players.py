"""The players of a tournament, by the words of the command line.

builtin                      the cartridge's own player, always on the left
perfect, person, predictor   scripts (`pixelpong.tournament.scripts`)
champion, FILE               agents: of the package, of a file
RUN, RUN@100                 agents: the best of a run, that of an update
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pixelpong.agent.choice import open_agent
from pixelpong.agent.file import Agent
from pixelpong.errors import ConfigError, RunError, expected
from pixelpong.items import BUILTIN
from pixelpong.run.arrays import fingerprint
from pixelpong.tournament.scripts import SCRIPTS, Script

MAX_PLAYERS = 64  # a thousand players would have half a million pairs


@dataclass(frozen=True)
class Player:
    """A player of a tournament."""

    name: str  # the word that names it
    # What decides: an agent, or what makes a script at a side; None for the cartridge.
    mind: Agent | Callable[[int, np.random.Generator], Script] | None
    sha256: str  # of an agent's parameters, or else of the name

    @property
    def key(self) -> int:
        """A number for its generators that depends on no other player."""
        return int(self.sha256[:8], 16)


def find_players(words: Sequence[str]) -> list[Player]:
    """Load the players, all before the first game; refuse too few, too many and equal ones."""
    if not 2 <= len(words) <= MAX_PLAYERS:
        advice = "name more" if len(words) < 2 else "leave some out"
        raise ConfigError(expected(f"2 to {MAX_PLAYERS} players", len(words), advice))
    players: dict[str, Player] = {}
    for player in map(find_player, words):
        if same := players.get(player.sha256):
            got = f"{same.name} and {player.name}, which are the same"
            raise ConfigError(expected("different players", got, "leave one out"))
        players[player.sha256] = player
    return list(players.values())


def find_player(word: str) -> Player:
    """Load one player."""
    if word == BUILTIN or word in SCRIPTS:
        return Player(word, SCRIPTS.get(word), hashlib.sha256(word.encode()).hexdigest())
    try:
        _, agent = open_agent(word)
    except RunError:
        if near := difflib.get_close_matches(word, [BUILTIN, *SCRIPTS], n=1):
            advice = f"did you mean {near[0]}?"
            raise ConfigError(expected("a player", repr(word), advice)) from None
        raise
    return Player(word, agent, fingerprint(agent.params))
