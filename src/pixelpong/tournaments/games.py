"""The players of a tournament, and their games.

builtin                      the game's own player, always on the left
perfect, person, predictor   scripts (`pixelpong.tournaments.scripts`)
champion, FILE               agents: from the package, from a file
RUN, RUN@100                 agents: a run's best agent, its agent at an update

A game is a pure function of the players, the seed and its number. An agent plays as in training
(`pixelpong.agent.game.Controller`), with its own generator; on the left it sees the field mirrored.
A game against `BUILTIN` is the one-player game. The winner of a point must serve at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pixelpong.agent.choice import open_agent, require_pong, settle_update
from pixelpong.agent.file import Agent
from pixelpong.agent.game import Controller
from pixelpong.errors import ConfigError
from pixelpong.items import BUILTIN, STAY
from pixelpong.pong.duel import Duel, Move
from pixelpong.pong.modes import LEFT, MAX_FRAMES, MODE, RIGHT
from pixelpong.run.arrays import fingerprint
from pixelpong.seeding import make_rng
from pixelpong.tournaments.scripts import SCRIPTS, Script


@dataclass(frozen=True)
class Player:
    """A player of a tournament."""

    name: str  # the word that names it
    # An agent, or a function that makes a script for one side; None for the built-in player.
    decider: Agent | Callable[[int, np.random.Generator], Script] | None
    sha256: str  # hash of an agent's parameters, or of the name if it is not an agent


def find_players(words: Sequence[str]) -> list[Player]:
    """Load all players before the first game; refuse fewer than two players and equal ones."""
    if len(words) < 2:
        raise ConfigError(f"A tournament needs at least two players, not {len(words)}.")
    players: dict[str, Player] = {}
    for player in map(find_player, words):
        if same := players.get(player.sha256):
            raise ConfigError(f"{same.name} and {player.name} are the same agent. Leave one out.")
        players[player.sha256] = player
    return list(players.values())


def find_player(word: str) -> Player:
    """Load one player."""
    if word == BUILTIN or word in SCRIPTS:
        return Player(word, SCRIPTS.get(word), hashlib.sha256(word.encode()).hexdigest())
    word = settle_update(word, (BUILTIN, *SCRIPTS))
    agent = require_pong(open_agent(word, others=(BUILTIN, *SCRIPTS))[1], word)
    return Player(word, agent, fingerprint(agent.params))


@dataclass(frozen=True)
class Rules:
    """The rules of all games in a tournament."""

    seed: int = 0
    is_greedy: bool = True
    points: int = 21  # number of points that win a game, at most 21
    frames: int = MAX_FRAMES  # frame limit of a game; the cartridge gives up a little later


@dataclass(frozen=True)
class Played:
    """A finished game and its number among the pair's games; left comes before right."""

    players: tuple[str, str]
    number: int
    points: tuple[int, int]
    frames: int


def order(one: Player, other: Player, number: int) -> tuple[Player, Player]:
    """Return the left and the right player; they alternate, but the built-in is always left."""
    first, second = sorted((one, other), key=lambda each: (each.decider is not None, each.sha256))
    return (second, first) if number % 2 and first.decider is not None else (first, second)


def play_duel(one: Player, other: Player, number: int, rules: Rules) -> Played:
    """Play one of a pair's games."""
    left, right = order(one, other, number)
    *_, game = watch(left, right, number, rules)
    score = (game.points[LEFT], game.points[RIGHT])
    return Played((left.name, right.name), number, score, game.num_frames)


def watch(left: Player, right: Player, number: int, rules: Rules) -> Iterator[Duel]:
    """Play a game and yield it after each frame."""
    mode = 0 if left.decider is None else MODE  # 0 is the one-player game
    game, moves = Duel(mode, (_sticky(left), _sticky(right))), []
    keys = [int(each.sha256[:8], 16) for each in (left, right)]  # independent of other players
    for side, player in ((LEFT, left), (RIGHT, right)):
        rng = make_rng(rules.seed, "tournament", *keys, number, side)
        moves.append(_sit(player, side, rng, rules))
    while not (game.is_over or max(game.points) >= rules.points or game.num_frames >= rules.frames):
        game.act(*(move(game) for move in moves), fires=True)
        yield game


def _sticky(player: Player) -> float:
    """Return the probability that a frame keeps the player's action; 0 for scripts."""
    return player.decider.protocol.sticky if isinstance(player.decider, Agent) else 0.0


def _sit(
    player: Player, side: int, rng: np.random.Generator, rules: Rules
) -> Callable[[Duel], Move]:
    """Make the function that returns a player's move in the next frame."""
    if player.decider is None:
        return lambda _: Move(STAY)
    if isinstance(player.decider, Agent):
        return Controller(player.decider, rng, is_left=side == LEFT, is_greedy=rules.is_greedy).move
    script = player.decider(side, rng)
    return lambda game: Move(script.move(game))
