"""Games of two players: pure functions of the players, the seed and the number of the game.

An agent plays as in training: it decides every few frames on the newest picture and its moves
stick, with coins of a generator of its own; on the left it sees the field mirrored. A game against
`BUILTIN` is the cartridge's game for one. Whoever has won a point serves at once, by rule.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pixelpong.agent.file import Agent
from pixelpong.agent.hand import Hand
from pixelpong.atari.machine import DRAW_NOTHING, DRAW_PICTURE
from pixelpong.bench.followers import Follower
from pixelpong.engines import never
from pixelpong.env.duel import LEFT, MAX_FRAMES, MODE, RIGHT, DuelEmulator
from pixelpong.errors import RunError, expected
from pixelpong.items import ACTIONS, BUILTIN, STAY
from pixelpong.seeding import make_rng
from pixelpong.tournament.players import Player

_PATIENCE = 64
"""Frames from one look whether to stop to the next."""

GAME_FOR_ONE = 0
"""The cartridge's mode in which it plays the left side itself."""


_MOVES = {left << 4 | right for left in ACTIONS for right in ACTIONS}
"""What both sides may do in a frame, as a byte."""

_LONGEST = 0xFFFF
"""Of a rally that is played again; no game has so many."""


@dataclass(frozen=True)
class Rules:
    """What all games of a tournament have in common.

    Attributes:
        seed: of all games.
        is_greedy: whether agents take the most probable action instead of drawing one.
        points: a game ends when a side has so many, at most 21.
        frames: or after so many; the cartridge itself gives up a little later than the default.
    """

    seed: int = 0
    is_greedy: bool = True
    points: int = 21
    frames: int = MAX_FRAMES


@dataclass(frozen=True)
class Played:
    """A game that was played.

    Attributes:
        players: names of the left and the right player.
        number: of the game, among those of the two.
        points: won by left and right.
        frames: of the game.
        rally: the longest that a point ended: the first frame, after the point before, and the last
            one, with the point. None if the game has no point.
        moves: of both sides from the game's start to the rally's end, for `watch_rally`.
    """

    players: tuple[str, str]
    number: int
    points: tuple[int, int]
    frames: int
    rally: tuple[int, int] | None
    moves: str = ""


def order(one: Player, other: Player, number: int) -> tuple[Player, Player]:
    """Who plays on the left and who on the right: they take turns, but for the cartridge."""
    first, second = sorted((one, other), key=lambda each: (each.mind is not None, each.sha256))
    return (second, first) if number % 2 and first.mind is not None else (first, second)


def watch(
    left: Player, right: Player, number: int, rules: Rules, *, is_shown: bool = True
) -> Iterator[DuelEmulator]:
    """Play a game, and yield it after each frame.

    Args:
        left: plays the left side; the cartridge if it has no mind.
        right: plays the right side.
        number: of the game, among those of the two.
        rules: of the tournament.
        is_shown: draw every picture, not only those that an agent looks at.

    Raises:
        EmulatorError: the game cannot be played here.
    """
    is_for_two = left.mind is not None
    game = DuelEmulator(MODE if is_for_two else GAME_FOR_ONE)
    keys = left.key, right.key
    hands = [
        _sit(player, side, make_rng(rules.seed, "tournament", *keys, number, side), rules)
        for side, player in ((LEFT, left), (RIGHT, right))
        if player.mind is not None
    ]
    while not (game.is_over or max(game.points) >= rules.points or game.num_frames >= rules.frames):
        moves = [hand.move(game) for hand in hands]
        _act(
            game,
            (moves[LEFT] if is_for_two else STAY, moves[-1]),
            is_for_two=is_for_two,
            is_drawn=is_shown or any(hand.looks for hand in hands),
        )
        yield game


def _act(game: DuelEmulator, moves: tuple[int, int], *, is_for_two: bool, is_drawn: bool) -> None:
    game.draws = DRAW_PICTURE if is_drawn else DRAW_NOTHING
    game.act(*moves, fires=is_for_two, fires_right=is_for_two)


def _sit(player: Player, side: int, rng: np.random.Generator, rules: Rules) -> Hand | Follower:
    assert player.mind is not None
    if isinstance(player.mind, Agent):
        return Hand(player.mind, rng, is_left=side == LEFT, is_greedy=rules.is_greedy)
    return Follower(player.mind, side, rng)


def play_round(
    one: Player, other: Player, number: int, rules: Rules, should_stop: Callable[[], bool] = never
) -> list[Played]:
    """Play the two games of a round, with sides changed; the cartridge keeps the left side.

    Args:
        one: one of the players.
        other: the other one.
        number: of the round.
        rules: of the tournament.
        should_stop: checked now and then; a game under way is then dropped.
    """
    played = []
    for game in (2 * number, 2 * number + 1):
        if done := play(*order(one, other, game), game, rules, should_stop):
            played.append(done)
    return played


def play(
    left: Player, right: Player, number: int, rules: Rules, should_stop: Callable[[], bool] = never
) -> Played | None:
    """Play a game; None if it was dropped. See `watch` and `play_round`."""
    points, begin, rally = [0, 0], 1, None
    frames, moves = 0, bytearray()
    for game in watch(left, right, number, rules, is_shown=False):
        frames = game.num_frames
        moves.append(game.moves[LEFT] << 4 | game.moves[RIGHT])
        if frames % _PATIENCE == 0 and should_stop():
            return None
        if game.points != points:
            if rally is None or frames - begin > rally[1] - rally[0]:
                rally = begin, frames
            points, begin = game.points, frames + 1
    packed = _pack(moves[: rally[1]]) if rally else ""
    names, score = (left.name, right.name), (points[LEFT], points[RIGHT])
    return Played(names, number, score, frames, rally, packed)


def watch_rally(played: Played) -> Iterator[DuelEmulator]:
    """Play a game's longest rally again, without its players; yield the game after each frame.

    Raises:
        EmulatorError: the game cannot be played here.
        RunError: the game has no rally, or its moves are damaged.
    """
    begin, end = played.rally or (1, 0)
    is_for_two = played.players[LEFT] != BUILTIN
    moves = _unpack(played.moves, end)
    game = DuelEmulator(MODE if is_for_two else GAME_FOR_ONE)
    for frame, both in enumerate(moves, 1):
        _act(game, (both >> 4, both & 15), is_for_two=is_for_two, is_drawn=frame >= begin)
        if frame >= begin:
            yield game
    if not begin <= end or game.frames_since_point:
        raise _damaged("one without")


def _pack(moves: bytearray) -> str:
    """Moves as a text: about 1 kB for a rally late in a game."""
    return base64.b64encode(zlib.compress(moves, 9)).decode()


def _unpack(text: str, size: int) -> bytes:
    try:
        if not 0 < size <= _LONGEST:
            raise ValueError(f"one of {size} frames")
        moves = zlib.decompressobj().decompress(base64.b64decode(text), size + 1)
        if len(moves) != size or not _MOVES.issuperset(moves):
            raise ValueError("other moves")
    except (ValueError, zlib.error) as error:
        raise _damaged(str(error)) from error
    return moves


def _damaged(got: str) -> RunError:
    return RunError(expected("a rally that ends with a point", got, "hold the tournament again"))
