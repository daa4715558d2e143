"""The games with their facts, for studies over many of them: ``pixelpong.games()``.

Nothing is compiled and no ROM is read for it: the facts are data.
"""

from __future__ import annotations

from dataclasses import dataclass

from pixelpong.atari.action import Action
from pixelpong.atari.machine.cartridges import cartridge, first_lives, id_of, scored_names
from pixelpong.config import can_be_learned
from pixelpong.scores import find_scores


@dataclass(frozen=True)
class GameFacts:
    """A game that can be an environment.

    Its scores are means of the game's own score, from episodes that start with up to 30 frames
    without a press: random and human as published by Wang et al. (2016), arXiv 1511.06581, DQN's
    after 200 million frames by Bellemare et al. (2017), arXiv 1707.06887; None if the game is not
    among their 57.
    """

    name: str  #: ale-py's, such as "ms_pacman"; the value of the option `game`
    id: str  #: in Gymnasium, such as "pixelpong/MsPacman-v0"
    ale_id: str  #: ale-py's id of the same game, such as "ALE/MsPacman-v5"
    actions: tuple[str, ...]  #: the names of those that the game uses, by index
    modes: tuple[int, ...]  #: ale-py's numbers of the games on the cartridge, for the option `mode`
    difficulties: tuple[int, ...]  #: of the console's switches, for the option `difficulty`
    lives: int  #: that `info` has at the start of an episode; 0 if ALE knows of none
    trains: bool  #: whether our own agent can learn it by `pixelpong train --game`
    random_score: float | None  #: of random play
    human_score: float | None  #: of a professional tester of games
    dqn_score: float | None  #: of DQN, without sticky frames


def games() -> list[GameFacts]:
    """List the games that can be environments, in alphabetical order, each with its facts.

    >>> import pixelpong
    >>> len(pixelpong.games())
    103
    >>> breakout = next(game for game in pixelpong.games() if game.name == "breakout")
    >>> breakout.ale_id, breakout.actions, breakout.lives
    ('ALE/Breakout-v5', ('NOOP', 'FIRE', 'RIGHT', 'LEFT'), 5)
    >>> breakout.random_score, breakout.human_score, breakout.dqn_score
    (1.7, 30.5, 385.5)
    >>> breakout.modes, breakout.difficulties
    ((0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44), (0, 1))
    """
    return [_describe(name) for name in sorted(scored_names())]


def _describe(name: str) -> GameFacts:
    facts, scores = cartridge(name), find_scores(name)
    return GameFacts(
        name,
        id_of(name),
        id_of(name, "ALE", 5),
        tuple(Action(number).name for number in facts.actions),
        facts.modes,
        facts.difficulties,
        first_lives()[name],
        can_be_learned(name),
        scores.random if scores else None,
        scores.human if scores else None,
        scores.dqn if scores else None,
    )
