"""The players of a tournament, and their games.

builtin                      the cartridge's own player, always on the left
perfect, person, predictor   scripts (`pixelpong.tournament.scripts`)
champion, FILE               agents: of the package, of a file
RUN, RUN@100                 agents: the best of a run, that of an update

A game is a pure function of the players, the seed and its number. An agent plays as in training
(`pixelpong.agent.game.Hand`), with draws of its own generator; on the left it sees the field
mirrored. A game against `BUILTIN` is the cartridge's game for one. The winner of a point must serve
at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pixelpong.agent.choice import open_agent
from pixelpong.agent.file import Agent
from pixelpong.agent.game import Hand
from pixelpong.env.duel import LEFT, MAX_FRAMES, MODE, RIGHT, DuelEmulator
from pixelpong.errors import ConfigError, expected
from pixelpong.items import BUILTIN, STAY
from pixelpong.run.arrays import fingerprint
from pixelpong.seeding import make_rng
from pixelpong.tournament.scripts import SCRIPTS, Script


@dataclass(frozen=True)
class Player:
    """A player of a tournament."""

    name: str  # the word that names it
    # What decides: an agent, or what makes a script at a side; None for the cartridge.
    mind: Agent | Callable[[int, np.random.Generator], Script] | None
    sha256: str  # of an agent's parameters, or else of the name


def find_players(words: Sequence[str]) -> list[Player]:
    """Load the players, all before the first game; refuse too few and equal ones."""
    if len(words) < 2:
        raise ConfigError(expected("two players or more", len(words), "name more"))
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
    _, agent = open_agent(word, others=(BUILTIN, *SCRIPTS))
    return Player(word, agent, fingerprint(agent.params))


@dataclass(frozen=True)
class Rules:
    """The rules of all games in a tournament."""

    seed: int = 0
    is_greedy: bool = True
    points: int = 21  # at most 21; a side that has them wins
    frames: int = MAX_FRAMES  # a game ends after them; the cartridge gives up a little later


@dataclass(frozen=True)
class Played:
    """A finished game: its number among those of the pair, and left before right."""

    players: tuple[str, str]
    number: int
    points: tuple[int, int]
    frames: int


def order(one: Player, other: Player, number: int) -> tuple[Player, Player]:
    """The left and the right player: they take turns, except the cartridge."""
    first, second = sorted((one, other), key=lambda each: (each.mind is not None, each.sha256))
    return (second, first) if number % 2 and first.mind is not None else (first, second)


def play(one: Player, other: Player, number: int, rules: Rules) -> Played:
    """Play one of the games of a pair."""
    left, right = order(one, other, number)
    *_, game = watch(left, right, number, rules)
    score = (game.points[LEFT], game.points[RIGHT])
    return Played((left.name, right.name), number, score, game.num_frames)


def watch(left: Player, right: Player, number: int, rules: Rules) -> Iterator[DuelEmulator]:
    """Play a game, and yield it after each frame."""
    game, moves = DuelEmulator(0 if left.mind is None else MODE), []  # 0 is the game for one
    keys = [int(each.sha256[:8], 16) for each in (left, right)]  # they depend on no other player
    for side, player in ((LEFT, left), (RIGHT, right)):
        rng = make_rng(rules.seed, "tournament", *keys, number, side)
        moves.append(_sit(player, side, rng, rules))
    while not (game.is_over or max(game.points) >= rules.points or game.num_frames >= rules.frames):
        game.act(*(move(game) for move in moves), fires=True)
        yield game


def _sit(
    player: Player, side: int, rng: np.random.Generator, rules: Rules
) -> Callable[[DuelEmulator], int]:
    """What gives a player's move in the next frame."""
    if player.mind is None:
        return lambda _: STAY
    if isinstance(player.mind, Agent):
        return Hand(player.mind, rng, is_left=side == LEFT, is_greedy=rules.is_greedy).move
    return player.mind(side, rng).move
