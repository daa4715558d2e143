"""Games of two players: pure functions of the players, the seed and the number of the game.

An agent plays as in training (`pixelpong.agent.game.Hand`), with draws of its own generator; on the
left it sees the field mirrored. A game against `BUILTIN` is the cartridge's game for one. The
winner of a point must serve at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pixelpong.agent.file import Agent
from pixelpong.agent.game import Hand
from pixelpong.env.duel import LEFT, MAX_FRAMES, MODE, RIGHT, DuelEmulator
from pixelpong.items import STAY
from pixelpong.seeding import make_rng
from pixelpong.tournament.players import Player
from pixelpong.tournament.scripts import Script

GAME_FOR_ONE = 0  # the cartridge's mode in which it plays the left side


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
    is_for_two = left.mind is not None
    game = DuelEmulator(MODE if is_for_two else GAME_FOR_ONE)
    keys = left.key, right.key, number
    hands: list[Hand | Script] = []
    for side, mind in ((LEFT, left.mind), (RIGHT, right.mind)):
        rng = make_rng(rules.seed, "tournament", *keys, side)
        if isinstance(mind, Agent):
            hands.append(Hand(mind, rng, is_left=side == LEFT, is_greedy=rules.is_greedy))
        elif mind is not None:
            hands.append(mind(side, rng))
    while not (game.is_over or max(game.points) >= rules.points or game.num_frames >= rules.frames):
        moves = [hand.move(game) for hand in hands]
        first = moves[LEFT] if is_for_two else STAY
        game.act(first, moves[-1], fires=is_for_two, fires_right=is_for_two)
        yield game
